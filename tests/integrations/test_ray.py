"""Ray: shards as tasks give the files of a loop over shards, also when a worker is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from unswayed.cli import main

pytest.importorskip("ray", reason="Ray is not installed: pip install unswayed[ray]")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install unswayed[parquet]")

JUDGE = "simulated/judge?slot=0.6&unparsed=0.01&tie=0.005"
PAIRS = 5_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    with path.open("w") as file:
        for number in range(PAIRS):
            pair = {"prompt": f"question {number}", "candidates": [f"a{number}", f"b{number}"]}
            file.write(json.dumps({"id": str(number), **pair, "gold": number % 2}) + "\n")
    return path


def audit_options(data: Path, out: Path) -> list[str]:
    return ["audit", str(data), "--model", JUDGE, "--methods", "direct,average", "--out", str(out)]


def figures(run: Path) -> dict[str, Any]:
    """The three files of a run, without times of calls."""
    names = ("metrics.json", "answers.json", "flipped.json")
    return {name: json.loads((run / name).read_bytes()) for name in names}


def workers(folder: Path) -> Iterator[int]:
    """Processes of Ray that run a task and keep temporary files in the folder."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            title = (path / "cmdline").read_bytes()
            own = f"TMPDIR={folder}\0".encode() in (path / "environ").read_bytes()
            if own and title.startswith(b"ray::") and b"task" in title:
                yield int(path.name)


def test_shards_on_ray_survive_kill_and_equal_loop(data: Path, tmp_path: Path) -> None:
    loop, on_ray, local = tmp_path / "loop", tmp_path / "on-ray", tmp_path / "local"
    local.mkdir()
    for number in range(6):
        assert main([*audit_options(data, loop), "--shard", f"{number}/6"]) == 0
    assert main(["merge", str(loop)]) == 0
    command = [sys.executable, "-m", "unswayed", *audit_options(data, on_ray)]
    command += ["--shards", "6", "--engine", "ray"]
    driver = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(local), "RAY_TMPDIR": gettempdir()}
    )
    killed = 0
    while driver.poll() is None:
        asked = any(local.glob("unswayed-*/calls.sqlite"))
        if asked and not killed and (pids := list(workers(local))):
            os.kill(pids[0], signal.SIGKILL)
            killed = pids[0]
        time.sleep(0.02)
    assert driver.returncode == 0
    assert killed
    assert figures(on_ray) == figures(loop)
    assert not list(on_ray.glob(".ray-*"))


def test_judge_on_ray_equals_one_process(data: Path, tmp_path: Path) -> None:
    judge = ["judge", str(data), "--model", JUDGE, "--method", "sequential", "--out"]
    whole, on_ray = tmp_path / "whole.jsonl", tmp_path / "on-ray"
    assert main([*judge, str(whole)]) == 0
    assert main([*judge, str(on_ray), "--shards", "3", "--engine", "ray"]) == 0
    assert (on_ray / "verdicts.jsonl").read_bytes() == whole.read_bytes()


def test_error_in_task_ends_command_with_its_message(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["audit", str(data), "--model", "no-such/judge", "--out", str(tmp_path / "run")]
    assert main([*options, "--shards", "2", "--engine", "ray"]) == 2
    assert "no-such" in capsys.readouterr().err
