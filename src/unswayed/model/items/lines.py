"""Files of lines, of JSON objects, plain or compressed, and standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec

from unswayed.base.errors import ItemError, UsageError, first_line
from unswayed.base.files import LARGEST, open_file
from unswayed.base.registry import require
from unswayed.model.items.tables import BadFieldError, read_rows

T = TypeVar("T", bound=bytes | msgspec.Raw)

ROWS: Final = 1024
"""Rows of a Parquet file in memory at a time."""
BOM: Final = b"\xef\xbb\xbf"
NO_TEXT: Final = (b"PK\x03\x04", b"\x80", b"\xff\xfe", b"\xfe\xff", b"PAR1", b"\x1f\x8b")
"""How workbooks and archives, pickles, UTF-16, Parquet and gzip files begin, which no name gave away."""
AT_ONCE: Final = 1 << 18
"""Bytes of a file that are examined together."""
LARGEST_ARRAY: Final = 512_000_000
"""Most bytes of a JSON array or object over many lines, which is held in memory as a whole."""
ONE_A_LINE: Final = "Write one record per line, with: jq -c '.[]'"
FREE: Final = 256_000_000
"""Bytes to which any file may expand."""
RATIO: Final = 500
"""Largest expansion factor beyond that: records expand 3 to 100 times, a bomb 1,000 times."""


class _Bounded(io.RawIOBase):
    """Bytes of a file (`-` is not closed); read errors become a UsageError."""

    def __init__(self, path: str | Path, source: Any, packed: IO[bytes] | None = None) -> None:
        self._path, self._source, self._packed = path, source, packed
        # a pipe's as they come
        self._read = source.readinto1 if packed is None else source.readinto
        self._line, self._begun, self._is_array = 1, 0, False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._source.fileno())

    def close(self) -> None:
        for file in (self._source, self._packed):
            if file is not None and str(self._path) != "-":
                file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read available bytes, at most `AT_ONCE`; raise a UsageError for a bad or oversized line."""
        try:
            size: int = self._read(memoryview(buffer)[:AT_ONCE])
        except (OSError, EOFError, zlib.error) as error:  # damaged compressed files among them
            raise UsageError(
                f"cannot read {self._path} at line {self._line:,}: {error}. Check that the file is "
                f"complete."
            ) from None
        data = bytes(buffer[:size])
        if self._line == 1 and not self._begun:
            self._is_array = data.removeprefix(BOM).lstrip().startswith(b"[")
        end = data.find(b"\n")
        if self._begun + (size if end < 0 else end) > LARGEST:
            raise UsageError(
                f"{self._path}:{self._line}: the line is longer than {LARGEST / 1e6:g} MB. "
                f"{ONE_A_LINE if self._is_array else 'Split it, or leave it out.'}"
            )
        self._begun = self._begun + size if end < 0 else size - data.rfind(b"\n") - 1
        self._line += data.count(b"\n")
        if self._packed is not None and expands(self._packed.tell(), self._source.tell()):
            raise UsageError(
                f"{self._path}:{self._line}: the file expands more than {RATIO} times up to this line. "
                "If you trust the file, decompress it (gunzip) and use the result."
            )
        return size


def expands(packed: int, size: int) -> bool:
    """Return True if compressed bytes expand beyond the limits: a bomb."""
    return size > max(FREE, RATIO * packed)


def open_text(path: str | Path) -> IO[bytes]:
    """Open a `.jsonl`, `.jsonl.gz` or `-` (standard input) for reading bytes.

    Reading raises a UsageError if a line is too long or the file is a bomb.
    """
    if str(path) == "-":
        return io.BufferedReader(_Bounded(path, sys.stdin.buffer), AT_ONCE)
    try:
        file = open_file(path)
    except OSError as error:
        raise UsageError.cannot(f"read {path}", error, "Check its path and permissions.") from None
    if not is_packed(path):
        return io.BufferedReader(_Bounded(path, file), AT_ONCE)
    packed = file if file.seekable() else None  # what comes through a pipe may be of any size
    return io.BufferedReader(_Bounded(path, gzip.GzipFile(fileobj=file), packed), AT_ONCE)


def iter_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines of a file with their numbers, from 1."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = text_begun(line, path)
            if line and not line.isspace():  # nothing: a byte order mark alone
                yield number, line


def text_begun(line: bytes, path: str | Path) -> bytes:
    """Return the first line of a file without its byte order mark."""
    if line.startswith(NO_TEXT):
        raise UsageError(
            f"{path}: not UTF-8 text. Save it as .jsonl, .json, .csv or .tsv (each also as .gz), "
            "or as .parquet; export a spreadsheet as .csv."
        )
    return line.removeprefix(BOM)


def iter_objects(path: str | Path) -> Iterator[tuple[int, bytes | msgspec.Raw]]:
    """Yield the JSON texts of JSON Lines with their lines, or of one JSON array with their places."""
    lines = iter_lines(path)
    first = next(lines, None)
    if first is None:
        return iter(())
    if not first[1].lstrip().startswith(b"["):
        return chain([first], lines)
    text = b"".join(line for _, line in together(chain([first], lines), path))
    try:
        return enumerate(msgspec.json.decode(text, type=list[msgspec.Raw]), start=1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ItemError(
            f"{path}: not a valid JSON array ({error}). Correct it, or write one object per line."
        ) from None


def together(
    parts: Iterable[tuple[int, T]], path: str | Path, remedy: str = ONE_A_LINE
) -> Iterator[tuple[int, T]]:
    """Yield the parts of one JSON array or object; raise a UsageError if it is too large."""
    size = 0
    for number, part in parts:
        size += memoryview(part).nbytes
        if size > LARGEST_ARRAY:
            raise UsageError(
                f"{path}:{number}: the JSON text is larger than {LARGEST_ARRAY / 1e6:g} MB. {remedy}"
            )
        yield number, part


def is_packed(path: str | Path) -> bool:
    """Return True if the file's name says that it is compressed."""
    return str(path).lower().endswith(".gz")


def is_parquet(path: str | Path) -> bool:
    """Return True if the file's name says Parquet."""
    return str(path).lower().endswith(".parquet")


@contextmanager
def open_parquet(
    path: str | Path, *, extra: str = "parquet", feature: str = "Reading Parquet"
) -> Iterator[Any]:
    """Yield an open `pyarrow.parquet.ParquetFile` whose errors while it is read are told as the user's."""
    require("pyarrow", extra=extra, feature=feature)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_file(path) as file, pq.ParquetFile(file) as table:
            yield table
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:  # text, dates
        raise UsageError(
            f"cannot read {path}: {first_line(error).rstrip('.')}. Check that it is a complete Parquet "
            f"file."
        ) from None


def read_parquet(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet file by column name, with their numbers; some in memory at a time."""
    with open_parquet(path) as table:
        rows = (row for batch in batches_of(table, path) for row in batch.to_pylist())
        yield from enumerate(rows, start=1)


def batches_of(table: Any, path: str | Path, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the rows of an open Parquet file in batches; batches are small if rows may be long."""
    metadata = table.metadata
    groups = [metadata.row_group(place).total_byte_size for place in range(table.num_row_groups)]
    most = min(ROWS, max(16, LARGEST_ARRAY // max([1, *groups])))
    packed, size = Path(path).stat().st_size, 0
    for batch in table.iter_batches(most, columns=columns, use_threads=False):
        size += batch.nbytes
        if expands(packed, max(size, sum(groups))):
            raise UsageError(
                f"{path}: its rows expand to more than {RATIO} times its size. If you trust the "
                "file, write it as JSON Lines."
            )
        yield batch


def read_table(
    path: str | Path, names: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str] | BadFieldError]]:
    """Yield the rows of a CSV or TSV file by column name, each with its first line; `names` if it has no header."""
    with open_text(path) as file:
        try:
            yield from read_rows(file, names)
        except BadFieldError as error:
            raise ItemError(f"{path}: {error}.") from None
