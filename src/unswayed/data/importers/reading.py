"""The records of a foreign file: JSON Lines, one array, one object that holds them, a table, or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from unswayed.data.importers.protocol import Entry, Record, Source, decoded, json_of, object_of
from unswayed.model.items import (
    BadFieldError,
    is_parquet,
    is_table,
    iter_objects,
    read_parquet,
    read_table,
    together,
)

SMALL: Final = 65_536
"""Bytes; a longer field of a file that is one object is decoded by who reads it, part by part."""


class _Parts(dict[str, object]):
    """The fields of a file that is one object, long ones not decoded yet."""


def records_of(file: str) -> Iterator[Entry]:
    """Yield the records of a file (JSON Lines, one array, one object, a table, Parquet), bad ones as the error they are.

    In a file that is one object, long fields are `msgspec.Raw`.
    """
    if is_table(file) or is_parquet(file):
        for number, row in read_table(file) if is_table(file) else read_parquet(file):
            yield Source(file, number), row
        return
    objects = iter_objects(file)
    first = next(objects, None)
    if first is None:
        return
    second = next(objects, None)
    lines = chain([first], [] if second is None else [second], objects)
    if second is None or (isinstance(first[1], bytes) and first[1].strip() == b"{"):
        parts = list(together(lines, file, "Split the record into several."))
        fields = _fields(b"".join(bytes(part) for _, part in parts))
        if fields is not None:
            yield Source(file, first[0]), fields
            return
        lines = chain(parts)
    for number, line in lines:
        yield Source(file, number), object_of(msgspec.Raw(line), "JSON")


def whole(entry: Entry) -> Entry:
    """Return the entry with nothing left to decode; of a field that is no JSON the error that it is."""
    source, record = entry
    if not isinstance(record, _Parts):
        return entry
    try:
        return source, {name: decoded(value, name) for name, value in record.items()}
    except BadFieldError as error:
        return source, error


def peeked(entries: Iterator[Entry]) -> tuple[Record | None, Iterator[Entry]]:
    """Return the first readable record (None if there is none), and all entries again."""
    seen: list[Entry] = []
    for entry in entries:
        seen.append(entry)
        if not isinstance(entry[1], BadFieldError):
            return entry[1], chain(seen, entries)
    return None, iter(seen)


def _fields(text: bytes) -> _Parts | None:
    """Return the fields of the one object that a text is; None if it is none."""
    try:
        fields = json_of(text, dict[str, msgspec.Raw])
        return _Parts(
            (name, msgspec.json.decode(value) if memoryview(value).nbytes <= SMALL else value)
            for name, value in fields.items()
        )
    except (ValueError, RecursionError):
        return None
