"""Shards: parts of a data set, drawn by the ids of its items."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from unswayed.base.digests import number_of
from unswayed.base.errors import UsageError
from unswayed.model.items.item import Item

MOST_SHARDS: Final = 99_999


class Shard(NamedTuple):
    """One part of several; numbers count from 0."""

    number: int
    total: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `K/N`."""
        if (typed := re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)) is None:
            raise UsageError(f"--shard {text}: write K/N, such as 0/4 for the first of four.")
        shard = cls(int(typed[1]), int(typed[2]))
        if shard.total > MOST_SHARDS:
            raise UsageError(f"--shard {text}: use at most {MOST_SHARDS:,} shards.")
        if shard.number >= shard.total:
            raise UsageError(f"--shard {text}: K counts from 0, so it must be below N.")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @property
    def name(self) -> str:
        """Name of its files, without the suffix."""
        return f"{self.number:05d}-of-{self.total:05d}"

    def holds(self, item: Item) -> bool:
        """Return True if the item, or the item of a criterion, is in the shard."""
        return shard_of(item.asked_as, self.total) == self.number


def shard_of(item_id: str, count: int) -> int:
    """Return the shard of an item among so many: by its id alone, so that growing data move no item."""
    return number_of(item_id) % count
