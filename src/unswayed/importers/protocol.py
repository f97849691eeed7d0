"""What an importer is: one foreign record in, an item and its decisions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol, TypeVar

import msgspec

from unswayed.decisions import Decision
from unswayed.errors import ItemError
from unswayed.items import Item

__all__ = ["BadRecordError", "Importer", "Judged", "Record", "Source", "read_as", "short_name"]

Record = Mapping[str, object]
"""One JSON object of a foreign file."""

T = TypeVar("T")


class BadRecordError(ItemError):
    """A record that the importer cannot read; the driver adds file and line."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record stands.

    Attributes:
        file: Path as given.
        number: Its line, or its place in a JSON array, from 1.
    """

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True, slots=True)
class Judged:
    """What one record says.

    Attributes:
        item: The item, with the gold where the record has it; None if it only names it.
        decisions: The calls it records.
        left_out: Why there are none although the record is well-formed.
    """

    item: Item | None
    decisions: tuple[Decision, ...]
    left_out: str | None = None


class Importer(Protocol):
    """Reads one foreign format. Implementations are small frozen dataclasses."""

    def detects(self, record: Record) -> bool:
        """Whether the first record of a file looks like this format."""
        ...

    def convert(self, record: Record, source: Source) -> Judged:
        """Turn one record into our types.

        Raises:
            BadRecordError: Naming the field and the reason.
        """
        ...


def read_as(schema: type[T], record: Record) -> T:
    """The record as a typed struct.

    Raises:
        BadRecordError: Naming the field that is missing or of the wrong type.
    """
    try:
        return msgspec.convert(record, schema)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        raise BadRecordError(where.strip("`.") or "record", reason) from None


def short_name(file: str) -> str:
    """A file's name without folders and suffixes."""
    return PurePath(file).name.removesuffix(".gz").rsplit(".", 1)[0]
