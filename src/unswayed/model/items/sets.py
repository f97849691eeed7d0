"""`ItemSet`: the items of one task, with where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

from unswayed.base.errors import ItemError
from unswayed.model.items.item import BadLine, Item, Task, fingerprint, units_of


@dataclass(frozen=True)
class ItemSet(Sequence[Item]):
    """Items of one task, with where they came from."""

    name: str  # name for reports and run directories
    items: Sequence[Item] = field(repr=False)  # in file order; ids are unique
    fingerprint: str  # sha256 over the items' canonical JSON
    bad_lines: tuple[BadLine, ...] = field(default=())  # lines left out with `on_bad_item="skip"`
    # of a benchmark: where it was fetched, revision, licence, as `run.json` keeps them
    origin: Mapping[str, str | int] = field(default_factory=dict)
    read_as: str = ""  # what of other people's columns was taken for what, as a sentence

    @property
    def task(self) -> Task:
        """Task shared by all items of the set."""
        return self.items[0].task

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each item."""
        return self.counted[0]

    @cached_property
    def counted(self) -> tuple[tuple[str, ...], str | None]:
        """The units, and a warning where a text is taken for a placeholder."""
        return units_of(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return tuple(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    @classmethod
    def of(
        cls,
        items: Iterable[Item],
        *,
        name: str,
        bad_lines: Iterable[BadLine] = (),
        origin: Mapping[str, str | int] | None = None,
    ) -> ItemSet:
        """Collect items, checking that ids are unique and the task is one."""
        kept = tuple(items)
        bad = tuple(bad_lines)
        if not kept:
            left_out = f" ({len(bad)} bad lines left out)" if bad else ""
            raise ItemError(f"{name}: no items{left_out}. Give at least one.")
        tasks = Counter([item.task for item in kept])
        if len(tasks) > 1:
            counts = ", ".join(f"{count} {task.value}" for task, count in tasks.most_common())
            raise ItemError(f"{name}: mixed tasks ({counts}). Choose one with --task.")
        ids = [item.id for item in kept]
        if len(set(ids)) < len(ids):
            twice = next(item_id for item_id, count in Counter(ids).items() if count > 1)
            raise ItemError(f"{name}: id {twice!r} occurs more than once. Give each item its own.")
        return cls(
            name=name,
            items=kept,
            fingerprint=fingerprint(kept),
            bad_lines=bad,
            origin={} if origin is None else origin,
        )
