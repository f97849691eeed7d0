"""The command line in this process, in a folder of its own, without keys; a fake server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_commands import Ran, Run, Server, pair, write_lines

from unswayed.cli import main


@pytest.fixture(autouse=True)
def folder(keyless_folder: Path) -> Path:
    """Every test runs in a folder of its own, without keys."""
    return keyless_folder


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
