"""The file that `unswayed judge` writes: the same command goes on where it was stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NoReturn, Self

import msgspec

from unswayed.base.errors import RunDirectoryError
from unswayed.base.files import LARGEST, lock, sweep, temporary_for
from unswayed.calls.judge import Judge
from unswayed.model.decisions import Verdict
from unswayed.model.items import Item

BEGINNING: Final = b'{"item_id":'


class VerdictFile:
    """Verdicts in the order of the items, one line each, none twice.

    The file is a function of the items, the method and the recorded calls. So a command that was
    stopped begins again: it makes the same lines, and those that are there already are kept. A
    line that was cut off is written again. A verdict that was missing because a call failed comes
    into its place through a second file, which replaces the first once it holds all its lines.
    Verdicts of others are never overwritten. `pool` is where calls are recorded, for messages.
    """

    def __init__(self, path: Path, judge: Judge, pool: Path) -> None:
        self._path, self._judge, self._pool = path, judge, pool
        self._mended: IO[bytes] | None = None
        try:
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
            self._lock(self._file)
            self._ahead = path.open("rb")
        except OSError as error:
            raise _unwritable(path, error) from None
        sweep(path)
        self._old: bytes | None = None
        self._next()
        self._expected = self._read_ahead()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._file, self._ahead, self._mended):
            if file is not None:
                with suppress(OSError):  # a full disk, which was told when it was written to
                    file.close()
        if self._mended is not None:
            self._temporary.unlink(missing_ok=True)

    def check(self, items: Sequence[Item]) -> None:
        """Check, before their calls are paid for, that items are those the file goes on with."""
        for item in items:
            if self._expected is None:
                return
            if self._expected.method != self._judge.method.name:
                self._refuse(f"verdicts of {self._expected.method}")
            if not self._judge.was_asked(item):
                self._refuse(
                    "verdicts of another model, prompt or data, or verdicts whose calls are gone "
                    f"({self._pool} has no call on {item.id}; the file goes on with "
                    f"{self._expected.item_id})"
                )
            if self._expected.item_id == item.id:
                self._expected = self._read_ahead()

    def write(self, line: bytes) -> bool:
        """Write a verdict, unless it stands there already; True, because a file is always read."""
        try:
            if line == self._old:
                self._keep()
            elif self._old is None:
                self._append(line)
            else:
                self._insert(line)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        return True

    def finish(self) -> None:
        """Check, after the last item, that no line of the file is left over."""
        if self._old is not None:
            self._refuse(
                f"verdicts on items that are not in the data or not in its order, such as {self._id()}"
            )

    def _lock(self, file: IO[bytes]) -> None:
        try:
            lock(file)
        except BlockingIOError:
            raise RunDirectoryError(
                f"{self._path} is being written by another process. Wait for it to finish, stop "
                "it, or choose another --out."
            ) from None
        except OSError:
            return  # no locks here

    def _next(self) -> None:
        self._place = self._file.tell()
        line = self._file.readline(LARGEST)
        self._old = line if line.endswith(b"\n") else None
        is_begun = line.startswith(BEGINNING) or BEGINNING.startswith(line)
        if self._old is None and (not is_begun or len(line) == LARGEST):
            self._refuse("something other than verdicts")

    def _read_ahead(self) -> Verdict | None:
        line = self._ahead.readline(LARGEST)
        if not line.endswith(b"\n"):
            return None
        try:
            return msgspec.json.decode(line, type=Verdict)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._refuse("something other than verdicts")

    def _keep(self) -> None:
        if self._mended is not None and self._old is not None:
            self._mended.write(self._old)
        self._next()
        if self._mended is not None and self._old is None:
            self._mended.flush()
            self._temporary.replace(self._path)
            self._file.close()
            self._file, self._mended = self._mended, None
            self._place = self._file.tell()

    def _append(self, line: bytes) -> None:
        self._file.seek(self._place)
        self._file.write(line)
        self._file.truncate()
        self._file.flush()
        self._place += len(line)

    def _insert(self, line: bytes) -> None:
        if msgspec.json.decode(line, type=Verdict).item_id == self._id():
            self._refuse(
                f"another verdict on {self._id()}, from a different fitted file, other data, other "
                "reading rules or another use of --no-reask"
            )
        if self._mended is None:
            self._temporary = temporary_for(self._path)
            self._mended = self._temporary.open("x+b")
            self._lock(self._mended)
            with self._path.open("rb") as whole:
                self._mended.write(whole.read(self._place))
        self._mended.write(line)

    def _id(self) -> str:
        return msgspec.json.decode(self._old or b"", type=Verdict).item_id

    def _refuse(self, content: str) -> NoReturn:
        raise RunDirectoryError(
            f"{self._path} holds {content} and was not changed. Choose another --out, or delete "
            "the file to start over."
        )


def _unwritable(out: Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError.cannot(f"write {out}", error)
