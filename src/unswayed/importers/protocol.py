"""What an importer is: one foreign record in, an item and its decisions out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from unswayed.decisions import Decision
from unswayed.errors import field_and_reason
from unswayed.items import BadFieldError, Item

__all__ = [
    "BadFieldError",
    "Entry",
    "Importer",
    "Joining",
    "Judged",
    "Record",
    "Source",
    "read_as",
    "short_name",
]

Record = Mapping[str, object]
"""One JSON object or table row of a foreign file."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record stands.

    Attributes:
        file: Path as given.
        number: Its (first) line, or its place in a JSON array, from 1.
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
        remarks: What else to count and say, such as a call of the record that failed.
    """

    item: Item | None
    decisions: tuple[Decision, ...]
    left_out: str | None = None
    remarks: tuple[str, ...] = ()


Entry = tuple[Source, Record | BadFieldError]
"""A record and where it stands, or what is wrong there."""


class Importer(Protocol):
    """Reads one foreign format. Implementations are small frozen dataclasses."""

    def detects(self, record: Record) -> bool:
        """Whether the first record of a file looks like this format."""
        ...

    def convert(self, record: Record, source: Source) -> Judged:
        """Turn one record into our types.

        Raises:
            BadFieldError: Naming the field and the reason.
        """
        ...


@runtime_checkable
class Joining(Importer, Protocol):
    """An importer whose format spreads one record over several files."""

    def join(self, files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
        """The records that the files make together, each at its place in the first file.

        Args:
            files: Path and records of each file, in the order given.

        Raises:
            UsageError: If the files do not belong together.
        """
        ...


def read_as(schema: type[T], record: Record) -> T:
    """The record as a typed struct.

    Raises:
        BadFieldError: Naming the field that is missing or of the wrong type.
    """
    try:
        return msgspec.convert(record, schema)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        raise BadFieldError(field or "record", reason) from None


def short_name(file: str) -> str:
    """A file's name without folders and suffixes."""
    return PurePath(file).name.removesuffix(".gz").rsplit(".", 1)[0]
