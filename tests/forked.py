"""Work in a process that is forked from this one: it need not import torch again, and ends as a script does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from unswayed.cli import main

MOST_S = 60


class Forked:
    """A child with its standard output and error in files of a folder."""

    def __init__(self, folder: Path, work: Callable[[], object]) -> None:
        self.out, self.err = (folder / f"{name}.txt" for name in ("out", "err"))
        self._process = multiprocessing.get_context("fork").Process(target=self._be, args=(work,))
        self._process.start()

    def _be(self, work: Callable[[], object]) -> None:
        for number, file in enumerate((self.out, self.err), start=1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", 1) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(work())  # type: ignore[arg-type]

    def wait_for(self, text: str) -> None:
        """Wait until it has said so on either."""
        end = time.monotonic() + MOST_S
        while not any(f.exists() and text in f.read_text() for f in (self.out, self.err)):
            assert self._process.is_alive()
            assert time.monotonic() < end
            time.sleep(0.01)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def code(self) -> int:
        """Wait for its end; the exit code."""
        self._process.join(MOST_S)
        code = self._process.exitcode
        self.kill()
        assert code is not None, f"it did not end within {MOST_S} s"
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def command(folder: Path, *words: object) -> Forked:
    """A command of Unswayed."""
    return Forked(folder, lambda: main([*map(str, words)]))
