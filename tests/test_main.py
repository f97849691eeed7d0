"""Ctrl-C ends the command with 130 at the moments at which Python itself would end with -2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import needs

COMMAND = """
import os, signal, sys, types

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)  # the names of the module are gone by then

class Importer:
    def find_spec(self, name, path=None, target=None):
        if name == "unswayed.cli":
            interrupt()

def main():
    {main}

{before}
if "unswayed.cli" not in sys.modules and Importer not in map(type, sys.meta_path):
    sys.modules["unswayed.cli"] = types.SimpleNamespace(main=main)
from unswayed.__main__ import run
run()
"""
FREED = """class Freed:
        def __del__(self):
            interrupt()
    freed = Freed()
    del freed
    return 0"""
WITHIN_EXEC = """try:
        exec("interrupt()", globals())
    except KeyboardInterrupt:
        return 130"""


def run_module(folder: Path, before: str, main: str) -> subprocess.CompletedProcess[str]:
    """With -m, as `python -m unswayed`: only then does Python end as if nobody had caught it."""
    code = COMMAND.replace("{before}", before).replace("{main}", main)
    (folder / "interrupted.py").write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs.posix
@pytest.mark.parametrize(
    ("before", "main", "code"),
    [
        pytest.param("sys.meta_path.insert(0, Importer())", "return 0", 130, id="imports"),
        pytest.param("", WITHIN_EXEC, 130, id="within exec"),
        pytest.param("", "interrupt()", 130, id="not caught"),
        pytest.param("", FREED, 130, id="while an object is freed"),
        pytest.param("sys.late = Late()", "return 3", 3, id="while Python ends"),
        pytest.param("", "return 2", 2, id="no interrupt"),
    ],
)
def test_an_interrupt_ends_with_130_or_comes_too_late(
    tmp_path: Path, before: str, main: str, code: int
) -> None:
    done = run_module(tmp_path, before, main)
    assert (done.returncode, done.stderr) == (code, "")


@needs.posix
def test_interrupts_stay_ignored_where_the_caller_ignores_them(tmp_path: Path) -> None:
    done = run_module(
        tmp_path, "signal.signal(signal.SIGINT, signal.SIG_IGN)", "interrupt(); return 0"
    )
    assert done.returncode == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_one_of_several_processes_ends_without_tidying_up(processes: str) -> None:
    main = 'import atexit; atexit.register(print, "tidied"); print("done"); return 3'
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND.format(main=main, before="")],
        env={**os.environ, "WORLD_SIZE": processes},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3
    assert ran.stdout.split() == (["done", "tidied"] if processes == "1" else ["done"])
