"""The records of a foreign file: objects of JSON Lines or of one array, rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unswayed.importers.protocol import BadFieldError, Entry, Record, Source
from unswayed.items import is_table, iter_objects, read_table

__all__ = ["records_of"]


def records_of(file: str) -> Iterator[Entry]:
    """The records of a file, bad ones as the error they are.

    Raises:
        ItemError: If nothing can be told: a broken array, or a table that is not UTF-8.
        UsageError: If the file cannot be read.
    """
    if is_table(file):
        for number, row in read_table(file):
            yield Source(file, number), row
        return
    for number, text in iter_objects(file):
        yield Source(file, number), _object(text)


def _object(text: bytes | msgspec.Raw) -> Record | BadFieldError:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return BadFieldError("JSON", f"not valid JSON ({error})")
    if isinstance(value, dict):
        return value
    return BadFieldError("JSON", f"expected an object, got {type(value).__name__}")
