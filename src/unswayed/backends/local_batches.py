"""Which prompts run together: of like length, or with a common beginning that is read once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["Batch", "by_length", "common_length", "plan"]

SAVED_TOKENS: Final = 256
"""Sharing costs a second pass; below this many tokens saved it is not worth it."""
SAVED_SHARE: Final = 0.1
"""The same, as a share of all tokens of the group."""


class Batch(NamedTuple):
    """Prompts that run together.

    Attributes:
        rows: Their indices.
        shared: Leading tokens that all of them begin with and that are read once; 0 for none.
    """

    rows: list[int]
    shared: int


def plan(
    prompts: Sequence[list[int]],
    groups: Sequence[Hashable],
    *,
    cap: int,
    pads: bool,
    shares: bool,
    cap_apart: int | None = None,
) -> Iterator[Batch]:
    """Every prompt in one batch.

    Args:
        prompts: Token ids.
        groups: Prompts of one group are likely to begin alike (presentations of one item).
        cap: Most padded tokens of a batch (a longer prompt runs alone).
        pads: Whether prompts of different lengths may run together.
        shares: Whether a common beginning may be read once.
        cap_apart: Another cap for the batches that share nothing; None for `cap`.
    """
    alone: list[int] = []
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    for rows in members.values():
        shared = common_length([prompts[row] for row in rows]) if shares and pads else 0
        saved = shared * (len(rows) - 1)
        total = sum(len(prompts[row]) for row in rows)
        if saved < max(SAVED_TOKENS, SAVED_SHARE * total):
            alone += rows
            continue
        for part in by_length([len(prompts[row]) for row in rows], cap=cap):
            yield Batch([rows[index] for index in part], shared if len(part) > 1 else 0)
    cap = cap if cap_apart is None else cap_apart
    for part in by_length([len(prompts[row]) for row in alone], cap=cap, same=not pads):
        yield Batch([alone[index] for index in part], 0)


def by_length(lengths: Sequence[int], *, cap: int, same: bool = False) -> Iterator[list[int]]:
    """Indices in batches of at most `cap` padded tokens (at least one each), longest first.

    Args:
        lengths: Tokens of each prompt.
        cap: Rows x longest row of a batch.
        same: Only equal lengths together.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        full = (len(batch) + 1) * longest > cap
        if batch and (full or (same and lengths[index] != longest)):
            yield batch
            batch = []
        if not batch:
            longest = lengths[index]
        batch.append(index)
    if batch:
        yield batch


def common_length(prompts: Sequence[list[int]]) -> int:
    """Tokens that all prompts begin with, leaving each at least one of its own."""
    first, last = min(prompts), max(prompts)  # what these two share, all share
    limit = min(map(len, prompts)) - 1
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return min(place, limit)
    return max(limit, 0)
