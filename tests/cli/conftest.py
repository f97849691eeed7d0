"""The command line in this process, in a folder of its own, without keys; a fake server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_commands import Ran, Run, Server, pair, write_lines

from unswayed.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own, without keys."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def command(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def pairs(folder: Path) -> Path:
    """30 pairs with gold."""
    return write_lines("pairs.jsonl", [pair(number) for number in range(30)])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server(monkeypatch)
    try:
        yield made
    finally:
        made.close()
