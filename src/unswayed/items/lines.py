"""Items of large sets: lines of a temporary file, decoded when they are asked for.

A million items as objects take more than a gigabyte, their texts most of it, and hardly any step of
an audit looks at a text. So only what is no text stays in memory: ids, and of everything else one
item for each *kind*, the items that differ in nothing but their texts, `meta`, unit and id.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter, eq, index
from typing import Any, Final, TypeVar, overload

import msgspec

from unswayed.errors import UsageError
from unswayed.files import bytes_at, no_room, unnamed_file
from unswayed.items.item import Item, blind, encode_item

T = TypeVar("T")

LARGE: Final = 1 << 24
"""Bytes of JSON from which items are kept as lines."""
AT_ONCE: Final = 256
"""Lines decoded at a time."""
_SHARED: Final = attrgetter("task", "group", "permutable", "criterion", "criteria", "values")
_DECODER: Final = msgspec.json.Decoder(Item)


class _File:
    """The canonical JSON of items in a temporary file, and what of them is no text.

    The file has no name and lasts as long as the object, so that nobody can change it.

    Attributes:
        ids: Of the items, in order.
        kinds: One item for each kind, without id, texts and `meta`; in order of appearance.
        kind_of: The kind of each item.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.kinds: list[Item] = []
        self.kind_of = array("i")
        self._codes: dict[tuple[object, ...], int] = {}
        self._ends = array("q", [0])
        self._file = unnamed_file(self)

    def add(self, item: Item, line: bytes) -> None:
        """Take an item and its canonical JSON, which ends with a newline.

        Raises:
            UsageError: If the file cannot be written.
            _TextsAreReadError: If the item's gold is not that of its kind.
        """
        gold: object = item.gold
        if isinstance(gold, dict):
            gold = tuple(gold.items())
        key = len(item.candidates), type(gold), gold, _SHARED(item)  # 1 and 1.0 are not the same
        code = self._codes.setdefault(key, len(self.kinds))
        if code == len(self.kinds):
            kind = _kind(item)
            if not _is_read_alike(kind, item):
                raise _TextsAreReadError
            self.kinds.append(kind)
        try:
            self._file.write(line)
        except OSError as error:
            raise no_room(error) from None
        self.ids.append(item.id)
        self._ends.append(self._ends[-1] + len(line))
        self.kind_of.append(code)

    def read(self, first: int, last: int) -> bytes:
        """The lines from one place to before another.

        Raises:
            UsageError: If they are not there.
        """
        begin, end = self._ends[first], self._ends[last]
        try:
            data = bytes_at(self._file, begin, end - begin)
        except OSError as error:
            raise no_room(error) from None
        if len(data) < end - begin:
            raise UsageError("the temporary file of the items is damaged. Run it again.")
        return data

    def finish(self) -> None:
        """Write what is still buffered, before there is anybody who reads it.

        Raises:
            UsageError: If it cannot be written.
        """
        try:
            self._file.flush()
        except OSError as error:
            raise no_room(error) from None


class _TextsAreReadError(Exception):
    """The task finds gold in texts, `meta` or the id, so that items cannot be of a kind."""


def _is_read_alike(kind: Item, item: Item) -> bool:
    right, human = item.gold_candidates(), item.human_score()
    try:
        return (kind.gold_candidates(), kind.human_score()) == (right, human)
    except Exception:  # another package's task, which missed what is no longer there
        return False


def _kind(item: Item) -> Item:
    return msgspec.structs.replace(
        item,
        id="",
        prompt="",
        candidates=("",) * item.n,
        reference=None,
        response=None,
        meta={},
        unit=None,
    )


class ItemLines(Sequence[Item]):
    """Items that lie in a file, all or some of them: a sequence of items like any other.

    An item is another object each time it is asked for.

    Args:
        file: Where they lie.
        rows: Which of them; None for all.
        is_blind: Whether they are without their gold.
    """

    __hash__ = None  # type: ignore[assignment]  # as lists

    def __init__(
        self, file: _File, rows: Sequence[int] | None = None, *, is_blind: bool = False
    ) -> None:
        file.finish()
        self._file = file
        self._rows: Sequence[int] = range(len(file.ids)) if rows is None else array("q", rows)
        self._is_blind = is_blind

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, place: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(place, slice):
            return tuple(self._items(self._rows[place]))
        row = self._rows[index(place)]
        return next(self._decoded((row,)))

    def __iter__(self) -> Iterator[Item]:
        return self._items(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | ItemLines):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)

    def _items(self, rows: Sequence[int]) -> Iterator[Item]:
        for start in range(0, len(rows), AT_ONCE):
            yield from self._decoded(rows[start : start + AT_ONCE])

    def _decoded(self, rows: Sequence[int]) -> Iterator[Item]:
        """The items of some rows, at once where they lie one behind the other."""
        if not rows:
            return
        ids, change = self._file.ids, msgspec.structs.force_setattr
        together = rows[-1] - rows[0] == len(rows) - 1 and list(rows) == list(
            range(rows[0], rows[-1] + 1)
        )
        parts = [(rows[0], rows[-1] + 1)] if together else [(row, row + 1) for row in rows]
        for first, last in parts:
            items = _DECODER.decode_lines(self._file.read(first, last))
            for row, item in enumerate(items, start=first):
                change(item, "id", ids[row])  # equal, and one object for all that remember it
                if self._is_blind:
                    change(item, "gold", None)
                yield item

    def ids(self) -> list[str]:
        """Of the items."""
        ids = self._file.ids
        return ids.copy() if isinstance(self._rows, range) else [ids[row] for row in self._rows]

    @cached_property
    def kinds(self) -> dict[int, Item]:
        """One item of each kind that occurs, by number, without id, texts and `meta`."""
        kinds = {code: self._file.kinds[code] for code in dict.fromkeys(self.kind_of())}
        return {code: blind(own) for code, own in kinds.items()} if self._is_blind else kinds

    def kind_of(self) -> Sequence[int]:
        """The number of each item's kind."""
        codes = self._file.kind_of
        return codes if isinstance(self._rows, range) else [codes[row] for row in self._rows]

    def blind(self) -> ItemLines:
        """The items without their gold."""
        return ItemLines(self._file, self._chosen(), is_blind=True)

    def picked(self, places: Iterable[int]) -> ItemLines:
        """Some of the items, by place."""
        rows = self._rows
        return ItemLines(self._file, [rows[place] for place in places], is_blind=self._is_blind)

    def _chosen(self) -> Sequence[int] | None:
        return None if isinstance(self._rows, range) else self._rows


class Gathered:
    """Items as they come: objects, or lines once their JSON takes more than `LARGE`.

    Args:
        are_json: Whether items are what JSON says, nothing else in `meta`, so that they may become
            lines.
    """

    def __init__(self, items: Iterable[Item] = (), *, are_json: bool = False) -> None:
        self._objects: list[Item] = []
        self._file: _File | None = None
        self._room = LARGE if are_json else math.inf
        self._whole = hashlib.sha256()
        for item in items:
            self.add(item)

    @classmethod
    def derived(cls, items: Iterable[Item], *, source: Sequence[Item]) -> Gathered:
        """Items that were made of others; they may become lines where those are lines."""
        return cls(items, are_json=isinstance(source, ItemLines))

    def add(self, item: Item) -> None:
        """Take an item.

        Raises:
            UsageError: If no temporary file can be written.
        """
        line = encode_item(item) + b"\n"
        self._whole.update(line)
        self._room -= len(line)
        self._objects.append(item)
        if self._room >= 0:
            return
        file = self._file or _File()
        try:
            for kept in self._objects:
                file.add(kept, line if kept is item else encode_item(kept) + b"\n")
        except _TextsAreReadError:
            written = [] if self._file is None else list(ItemLines(self._file))
            self._objects, self._file, self._room = [*written, *self._objects], None, math.inf
        else:
            self._objects, self._file = [], file

    def __len__(self) -> int:
        return len(self._objects if self._file is None else self._file.ids)

    @property
    def items(self) -> Sequence[Item]:
        """The items."""
        return tuple(self._objects) if self._file is None else ItemLines(self._file)

    @property
    def fingerprint(self) -> str:
        """As `fingerprint` of the items."""
        return f"sha256:{self._whole.hexdigest()}"


def by_kind(items: Sequence[Item]) -> Sequence[Item]:
    """Items among which there is one of each kind: of lines the kinds, else the items themselves.

    What is asked of them must be no text, id, unit or `meta`.
    """
    return tuple(items.kinds.values()) if isinstance(items, ItemLines) else items


def of_kinds(items: Sequence[Item], read: Callable[[Item], T]) -> list[T]:
    """What `read` says of each item; it looks at no text, id, unit or `meta`."""
    if not isinstance(items, ItemLines):
        return list(map(read, items))
    said = {code: read(kind) for code, kind in items.kinds.items()}
    return [said[code] for code in items.kind_of()]


def ids_of(items: Sequence[Item]) -> list[str]:
    """The id of each item."""
    return items.ids() if isinstance(items, ItemLines) else [item.id for item in items]


def blinded(items: Sequence[Item]) -> Sequence[Item]:
    """The items without their gold: what methods and backends are given."""
    return items.blind() if isinstance(items, ItemLines) else tuple(map(blind, items))


def picked(items: Sequence[Item], places: Iterable[int]) -> Sequence[Item]:
    """Some of the items, by place."""
    if isinstance(items, ItemLines):
        return items.picked(places)
    return tuple(items[place] for place in places)
