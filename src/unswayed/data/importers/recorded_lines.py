"""The lines of a decisions file, read once from front to back, and again where they are asked for."""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ItemError, UsageError
from unswayed.base.files import bytes_at, no_room, unnamed_file
from unswayed.data.importers.decisions_file import line_of, without_marks
from unswayed.model.decisions import Decision
from unswayed.model.items import (
    BOM,
    batches_of,
    encoded,
    is_packed,
    is_parquet,
    open_parquet,
    open_text,
    text_begun,
)

AT_ONCE: Final = 1 << 18
"""Bytes read at once: what is made of them stays in the processor's caches."""
MOST_BETWEEN: Final = 1 << 12
"""Bytes that are read over rather than sought over."""
END: Final = 1 << 12
"""Bytes by which a file that grew is told from one with another text."""
DIGITS: Final = 10
"""No candidate's number has as many."""


class RecordedLines:
    """The lines of one file, by place from 0.

    What cannot be read twice (compressed files, standard input, Parquet, whose rows become lines)
    is copied into a temporary file as it is read. The file is held open: one that is replaced or
    removed meanwhile stays readable.

    Args:
        path: `.jsonl`, `.jsonl.gz`, `.parquet`, or `-` for standard input.
        decode: Makes a decision of a line.
    """

    def __init__(self, path: str | Path, decode: Callable[[bytes], Decision]) -> None:
        self.path = path
        self._decode = decode
        self._offsets: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._source = open_text(path)
        once = str(path) == "-" or is_packed(path) or is_parquet(path)
        self._is_plain = not once and stat.S_ISREG(os.fstat(self._source.fileno()).st_mode)
        self._file: IO[Any] = self._source if self._is_plain else unnamed_file(self)
        if self._is_plain:
            weakref.finalize(self, self._file.close)
        state = os.fstat(self._file.fileno())
        self._size, self._written = state.st_size, state.st_mtime_ns
        self._end = b""

    def blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the lines, many at a time, with the place of the first; once only."""
        place, end = 0, 0
        offsets = [self._offsets]
        try:
            for lines in self._blocks():
                if not self._is_plain:
                    self._keep(lines)
                sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
                offsets.append(end + sizes.cumsum())
                end = int(offsets[-1][-1])
                yield place, [text_begun(lines[0], self.path), *lines[1:]] if place == 0 else lines
                place += len(lines)
        finally:
            if not self._is_plain:
                self._source.close()
            self._offsets = np.concatenate(offsets)
            self._end = self._end_now()

    def _keep(self, lines: list[bytes]) -> None:
        try:
            self._file.writelines(lines)
            self._file.flush()
        except OSError as error:
            raise no_room(error) from None

    def _blocks(self) -> Iterator[list[bytes]]:
        if is_parquet(self.path):
            yield from _lines_of_parquet(self.path)
            return
        while lines := self._source.readlines(AT_ONCE):
            yield lines

    def lines(self, places: Sequence[int]) -> list[bytes]:
        """Return the lines at some places, without the newline."""
        at = np.array(places, dtype=np.int64)
        starts, ends = self._offsets[at], self._offsets[at + 1]
        apart = (starts[1:] < ends[:-1]) | (starts[1:] > ends[:-1] + MOST_BETWEEN)
        first, last = starts.tolist(), ends.tolist()
        lines: list[bytes] = []
        for begin, end in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(at)]):
            lines.extend(self._read(first[begin:end], last[begin:end]))
        if self._was_written_over():
            raise self._changed()
        return lines

    def _read(self, starts: list[int], ends: list[int]) -> list[bytes]:
        if not starts:
            return []
        begin = starts[0]
        data = bytes_at(self._file, begin, ends[-1] - begin)
        if len(data) < ends[-1] - begin:
            raise self._changed()
        if starts[1:] == ends[:-1]:
            lines = list(map(bytes.strip, data.split(b"\n")[: len(starts)]))
        else:
            pairs = zip(starts, ends, strict=True)
            lines = [data[start - begin : end - begin].strip() for start, end in pairs]
        return [line.removeprefix(BOM) for line in lines] if begin == 0 else lines

    def _was_written_over(self) -> bool:
        """Return True if what was read is another text now; lines that came behind it do no harm."""
        now = os.fstat(self._file.fileno())
        if not self._is_plain or now.st_mtime_ns == self._written:
            return False
        return now.st_size == self._size or self._end_now() != self._end

    def _end_now(self) -> bytes:
        end = int(self._offsets[-1])
        begin = max(0, end - END)
        return bytes_at(self._file, begin, end - begin)

    def _changed(self) -> UsageError:
        return UsageError(f"{self.path} has changed since it was read. Run the command again.")

    def read(self, places: Sequence[int]) -> Iterator[Decision]:
        """Yield the decisions at some places."""
        return map(self._decode, self.lines(places))


class GivenLines:
    """Decisions in memory as the lines of a file, by place from 0.

    Args:
        decisions: Decisions, or mappings with their fields.
        decode: Makes a decision of a line.

    Raises:
        ItemError: If one is neither, naming its place.
    """

    path = "decisions"

    def __init__(self, decisions: Sequence[object], decode: Callable[[bytes], Decision]) -> None:
        self._decode = decode
        self._lines: list[bytes] = []
        for place, given in enumerate(decisions, start=1):
            if isinstance(given, Decision):
                self._lines.append(line_of(given))
                continue
            try:
                if not isinstance(given, Mapping):
                    raise TypeError(
                        f"{given!r:.60} is neither a decision nor a mapping with its fields"
                    )
                plain = {  # a frame has NaN for a missing value, and floats beside it
                    name: int(own) if isinstance(own, float) and own.is_integer() else own
                    for name, own in encoded(given).items()
                    if own == own
                }
                if type(plain.get("item_id")) is int:  # as ids of items
                    plain["item_id"] = str(plain["item_id"])
                endless = [name for name, own in plain.items() if own in (inf, -inf)]
                if endless:  # JSON has only null for it
                    raise ValueError(f"{endless[0]}: {plain[endless[0]]} is not a finite number")
                self._lines.append(msgspec.json.encode(plain))
            except (TypeError, ValueError) as error:
                raise ItemError(f"decisions:{place}: {error}.") from None

    def blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield all lines, with the place of the first."""
        if self._lines:
            yield 0, self._lines

    def lines(self, places: Sequence[int]) -> list[bytes]:
        """Return the lines at some places."""
        return [self._lines[place] for place in places]

    def read(self, places: Sequence[int]) -> Iterator[Decision]:
        """Yield the decisions at some places."""
        return map(self._decode, self.lines(places))


def _lines_of_parquet(path: str | Path) -> Iterator[list[bytes]]:
    """Yield the rows of a file that `unswayed export --as parquet` wrote, as lines of JSON."""
    encode = msgspec.json.Encoder(enc_hook=str).encode
    with open_parquet(path) as file:
        for batch in batches_of(file, path):
            columns = {
                name: [None] * len(batch) if own.null_count == len(batch) else own.to_pylist()
                for name, own in zip(batch.schema.names, batch.columns, strict=True)
            }
            for name, read in (("choice", _choice), ("flags", _flags)):
                if name in columns:
                    columns[name] = list(map(read, columns[name]))
            names = list(columns)
            rows = zip(*columns.values(), strict=True)
            yield [
                without_marks(encode(dict(zip(names, row, strict=True)))) + b"\n" for row in rows
            ]


def _choice(choice: object) -> object:
    if isinstance(choice, str) and len(choice) < DIGITS and choice.isdecimal():
        return int(choice)
    return choice


def _flags(flags: object) -> object:
    try:
        return msgspec.json.decode(flags) if isinstance(flags, str) else flags
    except (msgspec.DecodeError, RecursionError):
        return flags
