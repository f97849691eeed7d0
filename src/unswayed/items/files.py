"""Files of lines, of JSON objects, plain or compressed, and standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec

from unswayed.errors import ItemError, UsageError, first_line
from unswayed.items.tables import BadFieldError, read_rows
from unswayed.registry import require

__all__ = [
    "BOM",
    "READ_ERRORS",
    "is_packed",
    "is_parquet",
    "iter_lines",
    "iter_objects",
    "open_parquet",
    "open_text",
    "read_parquet",
    "read_table",
    "text_begun",
]

ROWS: Final = 1024
"""Of a Parquet file in memory at a time."""
BOM: Final = b"\xef\xbb\xbf"
NO_TEXT: Final = (b"PK\x03\x04", b"\x80", b"\xff\xfe", b"\xfe\xff", b"PAR1", b"\x1f\x8b")
"""How workbooks and archives, pickles, UTF-16, Parquet and gzip files begin, which no name gave away."""
READ_ERRORS: Final = (OSError, EOFError, zlib.error)
"""What reading an open file raises, a damaged compressed one included."""


def open_text(path: str | Path) -> IO[bytes]:
    """Open a `.jsonl`, `.jsonl.gz` or `-` (standard input) for reading bytes.

    Raises:
        UsageError: If the file does not exist or cannot be read.
    """
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        if is_packed(path):
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from None


@contextmanager
def _reading(path: str | Path) -> Iterator[IO[bytes]]:
    """An open file whose errors while it is read are told as the user's."""
    with open_text(path) as file:
        try:
            yield file
        except READ_ERRORS as error:
            raise UsageError(f"cannot read {path}: {error}.") from None


def iter_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """The non-empty lines of a file with their numbers, from 1.

    Raises:
        UsageError: If the file cannot be read, is a damaged gzip file or no text.
    """
    with _reading(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = text_begun(line, path)
            if line and not line.isspace():  # nothing: a byte order mark alone
                yield number, line


def text_begun(line: bytes, path: str | Path) -> bytes:
    """The first line of a file without its byte order mark.

    Raises:
        UsageError: If it begins like a file that is no text.
    """
    if line.startswith(NO_TEXT):
        raise UsageError(
            f"{path}: not UTF-8 text. Read are .jsonl, .json, .csv and .tsv, also .gz, and "
            ".parquet: save it as one of these, a spreadsheet as .csv."
        )
    return line.removeprefix(BOM)


def iter_objects(path: str | Path) -> Iterator[tuple[int, bytes | msgspec.Raw]]:
    """The JSON texts of JSON Lines with their lines, or of one JSON array with their places.

    Raises:
        ItemError: If an array is not valid JSON.
        UsageError: If the file cannot be read.
    """
    lines = iter_lines(path)
    first = next(lines, None)
    if first is None:
        return iter(())
    if not first[1].lstrip().startswith(b"["):
        return chain([first], lines)
    text = first[1] + b"".join(line for _, line in lines)
    try:
        return enumerate(msgspec.json.decode(text, type=list[msgspec.Raw]), start=1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ItemError(f"{path}: not a valid JSON array ({error}).") from None


def is_packed(path: str | Path) -> bool:
    """Whether the file's name says that it is compressed."""
    return str(path).lower().endswith(".gz")


def is_parquet(path: str | Path) -> bool:
    """Whether the file's name says Parquet."""
    return str(path).lower().endswith(".parquet")


@contextmanager
def open_parquet(
    path: str | Path, *, extra: str = "parquet", feature: str = "Reading Parquet"
) -> Iterator[Any]:
    """An open `pyarrow.parquet.ParquetFile` whose errors while it is read are told as the user's.

    Args:
        path: The file.
        extra: What installs pyarrow for those who need it here.
        feature: What they need it for.

    Raises:
        MissingExtraError: If pyarrow is not installed.
        UsageError: If the file cannot be read.
    """
    require("pyarrow", extra=extra, feature=feature)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            yield table
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:  # text, dates
        raise UsageError(f"cannot read {path}: {first_line(error)}.") from None


def read_parquet(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a Parquet file by column name, with their numbers; some in memory at a time.

    Raises:
        MissingExtraError: If pyarrow is not installed.
        UsageError: If the file cannot be read.
    """
    with open_parquet(path) as table:
        batches = table.iter_batches(ROWS)
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from enumerate(rows, start=1)


def read_table(path: str | Path) -> Iterator[tuple[int, dict[str, str] | BadFieldError]]:
    """The rows of a CSV or TSV file by column name, each with its first line.

    Raises:
        ItemError: If nothing can be told: not UTF-8, or two columns of one name.
        UsageError: If the file cannot be read.
    """
    with _reading(path) as file:
        try:
            yield from read_rows(file)
        except BadFieldError as error:
            raise ItemError(f"{path}: {error}.") from None
