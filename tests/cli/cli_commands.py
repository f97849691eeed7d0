"""What the tests of the command line share: results, data files, processes, a fake server."""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import warm
from forked import Forked
from scripts import load_script
from unswayed.cli import main

SIMULATED = "simulated/judge"


@dataclass(frozen=True)
class Ran:
    """What a command returned and printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> list[str]:
        """The lines for the user on standard error, without progress."""
        return [line for line in self.err.splitlines() if line.startswith("unswayed: ")]


Run = Callable[..., Ran]


def command_of(*arguments: str | Path) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "unswayed", *map(str, arguments)]


def forked(*arguments: str | Path, first: Callable[[], object] = int) -> Ran:
    """Run a command in a fork of this process, in which `first` may set limits or plan a kill before."""

    def work() -> int:
        first()
        return main([str(argument) for argument in arguments])

    with tempfile.TemporaryDirectory() as folder:
        child = Forked(Path(folder), work)
        return Ran(child.code(), child.out.read_text("utf-8"), child.err.read_text("utf-8"))


def shell(line: str, *, fresh: bool = False) -> Ran:
    """Run a shell line in which `unswayed` is the command, `fresh` where the shell sets more than files."""
    command = f'"{sys.executable}" -m unswayed'
    if not fresh:
        command = str(warm.folder_of_command(warm.AUDIT) / "unswayed")
    done = subprocess.run(
        ["bash", "-c", f'unswayed() {{ {command} "$@"; }}\n{line}'],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def pair(number: int, **changes: object) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "task": "pairwise",
        "prompt": f"Question {number}?",
        "candidates": [f"first answer {number}", f"second answer {number}"],
        "gold": number % 2,
        **changes,
    }


def choice(number: int, n: int = 4, **changes: object) -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "task": "mcq",
        "prompt": f"Question {number}?",
        "candidates": [f"option {place} of {number}" for place in range(n)],
        "gold": number % n,
        **changes,
    }


def write_lines(path: str | Path, rows: Sequence[object]) -> Path:
    """JSON Lines; strings are written as they are."""
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def write_prices(usd: int) -> None:
    """The price of a million tokens of the fake server's model, in `prices.json`."""
    models = {Server.model: {"input": usd, "output": usd}}
    Path("prices.json").write_text(json.dumps({"as_of": "2026-01-01", "models": models}))


def copied_judge(folder: str | Path) -> Path:
    """The tiny judge as a model of one's own."""
    from unswayed.tiny.formats import FORMATS

    shutil.copytree(FORMATS["judge"].folder, folder)
    return Path(folder)


def judge_without_template(folder: str | Path) -> Path:
    """The tiny judge as a model that is asked in the words of a recipe's style."""
    (copied_judge(folder) / "prompt_template.jinja").unlink()
    return Path(folder)


class Server:
    """A fake server in a thread; the model is `openai-api/local/m`. Commands in this process try it again soon."""

    model = "openai-api/local/m"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._module = load_script("tests/backends/fake_server.py")
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("unswayed.backends.pacing.BACKOFF_BASE_S", 0.05)
        monkeypatch.setattr("unswayed.backends.pacing.FIRST_CONTACT_S", 0.3)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: Any = None

    def start(self, *faults: dict[str, object], **settings: object) -> None:
        """Serve, with these planned faults, instead of what was served before."""
        self.stop()
        planned = [self._module.Fault(**fault) for fault in faults]
        self._server = self._module.FakeServer(faults=planned, **settings)
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)
        self._monkeypatch.setenv("LOCAL_BASE_URL", self._server.url)

    @property
    def received(self) -> int:
        """Requests so far."""
        return int(self._server.received)

    @property
    def headers(self) -> list[dict[str, str]]:
        """Headers of the requests so far."""
        return list(self._server.headers)

    @property
    def url(self) -> str:
        return str(self._server.url)

    def stop(self) -> None:
        """Serve no more; the address stays in the environment."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(10)
            self._server = None

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
