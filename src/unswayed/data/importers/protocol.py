"""Importer protocol: one foreign record in, an item and its decisions out.

An importer is one value: the fields that tell its format, the schema of a record, and the function
that says what a record means. Reading files, checking and counting are the driver's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, Generic, TypeVar

import msgspec

from unswayed.base.errors import field_and_reason
from unswayed.model.decisions import Choice, Decision
from unswayed.model.items import BadFieldError, Item
from unswayed.model.permutations import Order, invert
from unswayed.model.presentation import Presentation

Record = Mapping[str, object]
"""One JSON object or table row of a foreign file."""

UNKNOWN: Final = "figures by position mean nothing for these decisions"
"""What a remark on calls whose order was not recorded says."""

_NOT_NUMBERS: Final = re.compile(rb"\b(?:NaN|Infinity)\b")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """Place of a record.

    Attributes:
        file: Path as given.
        number: Its (first) line, or its place in a JSON array, from 1.
    """

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Item and decisions read from one record.

    Attributes:
        item: The item, with the gold where the record has it; None if it only names it.
        decisions: The calls it records; none where the format is of items alone.
        left_out: Why there are none although the format records calls.
        remarks: What else to count and say, such as a call of the record that failed.
        unread: Fields and values that gave no `choice`, `gold`, `scores` or `ranking`, by that name.
    """

    item: Item | None
    decisions: tuple[Decision, ...]
    left_out: str | None = None
    remarks: tuple[str, ...] = ()
    unread: Mapping[str, tuple[str, object]] = field(default_factory=dict)


Entry = tuple[Source, Record | BadFieldError]
"""A record and where it stands, or what is wrong there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer(Generic[T]):
    """Reads one foreign format.

    Attributes:
        title: What it reads, in a sentence.
        detects: Whether the first record of a file looks like this format.
        schema: A record's fields; unknown ones are ignored.
        read: What a record means; raises BadFieldError naming the field and the reason.
        join: Where one record is spread over several files: the records that the files (paths and
            records) make together. Raises UsageError if they do not belong together.
        unfold: Where one record holds many (a file that is one object, a row with lists): these, with
            their places. Long fields of a file that is one object are `msgspec.Raw`.
        suffix: How the names of its files end that only it can open.
        opened: The records of such a file. Raises UsageError if it cannot be read.
        answer: Field with the answer, which is named if it cannot be read.
    """

    title: str
    detects: Callable[[Record], bool]
    schema: type[T]
    read: Callable[[T, Source], ReadRecord]
    join: Callable[[Sequence[tuple[str, Iterator[Entry]]]], Iterator[Entry]] | None = None
    unfold: Callable[[Record, Source], Iterator[Entry]] | None = None
    suffix: str | None = None
    opened: Callable[[str], Iterator[Entry]] | None = None
    answer: str = ""

    def convert(self, record: Record, source: Source) -> ReadRecord:
        """Turn one record into our types.

        Raises:
            BadFieldError: Naming the field and the reason.
        """
        return self.read(read_as(self.schema, record), source)


class LeftOut(str):
    """Why a record has no calls although its format records them."""

    __slots__ = ()


Part = Item | Decision | LeftOut | str
"""What a record says, one by one: its item, its calls, why it has none, and remarks."""


def importer(
    title: str,
    schema: type[T],
    parts: Callable[[T, Source], Iterable[Part]],
    *,
    detects: Callable[[Record], bool] | None = None,
    left_out: str | None = "no verdict was recorded",
    **more: Any,
) -> Importer[T]:
    """Return an importer by what a record says; `left_out` is why where it says of no call.

    Without `detects` a record of the format has all fields that the schema requires.
    """

    def read(row: T, source: Source) -> ReadRecord:
        item, reason, said = None, left_out, list(parts(row, source))
        for part in said:
            if isinstance(part, Item):
                item = part
            elif isinstance(part, LeftOut):
                reason = part
        decisions = tuple(part for part in said if isinstance(part, Decision))
        remarks = tuple(part for part in said if type(part) is str)
        return ReadRecord(item, decisions, None if decisions else reason, remarks)

    if detects is None:
        detects = has(*(f.encode_name for f in msgspec.structs.fields(schema) if f.required))  # type: ignore[arg-type]
    return Importer(title=title, detects=detects, schema=schema, read=read, **more)


def read_as(schema: type[T], record: Record) -> T:
    """Return the record as a typed struct."""
    try:
        return msgspec.convert(record, schema)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        raise BadFieldError(field or "record", reason) from None


def json_of(text: bytes | msgspec.Raw, kind: Any = Any) -> Any:
    """Return the value of JSON; NaN and infinities, which Python writes and JSON lacks, become null."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        if not _NOT_NUMBERS.search(memoryview(text)):
            raise
    plain = json.loads(bytes(text), parse_constant=lambda name: None)
    return msgspec.json.decode(json.dumps(plain), type=kind)


def decoded(value: object, field: str) -> object:
    """Decode the value of a field; `msgspec.Raw` is JSON that is still encoded."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return json_of(value)
    except (ValueError, RecursionError) as error:
        raise BadFieldError(field, f"not valid JSON ({error})") from None


def parts_of(value: object, field: str) -> Sequence[object]:
    """Return the elements of an array; of one that is not decoded yet, as `msgspec.Raw`."""
    if isinstance(value, msgspec.Raw):
        try:
            value = json_of(value, list[msgspec.Raw])
        except msgspec.ValidationError:
            value = decoded(value, field)
    if not isinstance(value, list):
        raise BadFieldError(field, f"expected an array, got {type(value).__name__}")
    return value


def object_of(part: object, field: str) -> Record | BadFieldError:
    """Return the object that an element of an array or a text (`msgspec.Raw`) is, or what is wrong with it."""
    try:
        value = decoded(part, field)
    except BadFieldError as error:
        return error
    if isinstance(value, dict):
        return value
    return BadFieldError(field, f"expected an object, got {type(value).__name__}")


def elements(record: Record, field: str, source: Source) -> Iterator[Entry]:
    """Yield the objects of an array that a record holds, with their places."""
    for number, part in enumerate(parts_of(record[field], field), start=1):
        yield Source(source.file, number), object_of(part, field)


def changed(entries: Iterable[Entry], change: Callable[[Record], Record]) -> Iterator[Entry]:
    """Yield entries with their records changed; what could not be read stays."""
    for source, record in entries:
        yield source, record if isinstance(record, BadFieldError) else change(record)


def readable(entries: Iterable[Entry]) -> Iterator[Record]:
    """Yield the records that could be read."""
    return (record for _, record in entries if not isinstance(record, BadFieldError))


MARK: Final = "unswayed"


class Mark(msgspec.Struct):
    """One presentation of a question in a log, in an order of ours: which question, the candidate at each place, and the right one."""

    item: str | int
    order: Order
    gold: int | list[int] | None = None
    permutable: bool = True


def mark_of(fields: Mapping[str, Any] | None, *, field: str) -> Mark | None:
    """Return the mark among the fields that a log keeps of a question; None where there is none."""
    if not fields or fields.get(MARK) is None:
        return None
    try:
        return msgspec.convert(fields[MARK], Mark)
    except msgspec.ValidationError as error:
        raise BadFieldError(f"{field}.{MARK}", str(error)) from None


def has(*names: str) -> Callable[[Record], bool]:
    """Return True where a record has all of these fields."""
    return lambda record: record.keys() >= set(names)


def candidate_at(shown: Presentation, position: Choice) -> Choice:
    """Return the candidate shown at a position; "tie" and None stay."""
    return shown.order[position] if isinstance(position, int) else position


def named(names: Mapping[Any, Choice], value: object, field: str, allowed: str) -> Choice:
    """Return the choice that the value of a field names."""
    if value not in names:
        raise BadFieldError(field, f"{value!r} is not {allowed}")
    return names[value]


def by_candidate(order: Order, by_position: Sequence[T]) -> tuple[T, ...]:
    """Return by candidate what is given by position."""
    return tuple(by_position[place] for place in invert(order))


def decision(item: Item, order: Order, labels: tuple[str, ...], **more: Any) -> Decision:
    """One call on an item in an order, the first label at the first position."""
    return Decision(item_id=item.id, order=order, labels=labels, label_set=labels, **more)


def pair_decision(
    item: Item, shown: Presentation, labels: tuple[str, str], choice: Choice, **more: Any
) -> Decision:
    """One call on a pair; choice, scores and probabilities by candidate."""
    return decision(item, shown.order, labels, choice=choice, **more)


def short_name(file: str) -> str:
    """Return a file's name without folders and suffixes."""
    return PurePath(file).name.removesuffix(".gz").rsplit(".", 1)[0]
