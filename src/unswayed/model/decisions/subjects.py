"""The items of a table, with what is the same of them in every view and for every method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unswayed.base.digests import digest
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.decisions.codes import BoolArray, FloatArray, IntArray
from unswayed.model.items import Item, blind, text_of, units_of
from unswayed.model.permutations import Order, invert
from unswayed.model.presentation import content_order

Alike = Mapping[tuple[Order | None, int, bool], NDArray[np.intp]]
"""Rows by order of the candidates by content, number of criteria, and whether they are permutable."""


class Subjects(tuple[Item, ...]):
    """Items with the same number of candidates; what is computed of them is computed once.

    Tables that are seen through views, or of a part of the items, share it.
    """

    _whole: Subjects | None = None  # which these are a part of
    _index: NDArray[np.intp]  # rows of it

    @classmethod
    def of(cls, items: Iterable[Item]) -> Self:
        """Return the items; themselves where they are subjects already."""
        return items if isinstance(items, cls) else cls(items)

    @classmethod
    def blind(cls, items: Iterable[Item]) -> Self:
        """Return the items without their gold; themselves where they are blind subjects already."""
        own = cls.of(items)
        return own if all(item.gold is None for item in own) else cls(map(blind, own))

    def rows(self, index: NDArray[np.intp]) -> Subjects:
        """Return some of them."""
        chosen = Subjects(self[place] for place in index.tolist())
        chosen._whole = self if self._whole is None else self._whole
        chosen._index = index if self._whole is None else self._index[index]
        return chosen

    @cached_property
    def permutable(self) -> BoolArray:
        """True for items that may be shown in other orders, shape (I,)."""
        if self._whole is not None:
            return self._whole.permutable[self._index]
        return np.array([item.permutable for item in self], dtype=np.bool_)

    @cached_property
    def groups(self) -> NDArray[np.object_]:
        """The group of each, None where it has none, shape (I,)."""
        if self._whole is not None:
            return self._whole.groups[self._index]
        return np.array([item.group for item in self], dtype=np.object_)

    @cached_property
    def units(self) -> NDArray[np.object_]:
        """Unit of each item: items of one unit count once, shape (I,)."""
        if self._whole is not None:
            return self._whole.units[self._index]
        return np.array(units_of(self)[0], dtype=np.object_)

    def clusters(self, kept: BoolArray | np.bool_ | slice = slice(None)) -> Clusters:
        """Return some of them, those of a unit together."""
        return Clusters.among(self.units[kept].tolist())

    @cached_property
    def values(self) -> FloatArray | None:
        """The value of each level by candidate, shape (I, n); None if levels have none."""
        if not self or self[0].values is None:
            return None
        unknown = (np.nan,) * self[0].n
        given = [item.values or unknown for item in self]
        return np.array(given, dtype=np.float64).reshape(len(self), self[0].n)

    @cached_property
    def content_orders(self) -> tuple[Order | None, ...]:
        """The candidates of each sorted by content; None where they have no text."""
        if self._whole is not None:
            orders = self._whole.content_orders
            return tuple(orders[row] for row in self._index.tolist())
        distinct: dict[Order | None, Order | None] = {}  # a few, each held once
        return tuple(distinct.setdefault(order, order) for order in map(content_order, self))

    @cached_property
    def alike(self) -> Alike:
        """Rows that are alike but for their texts: criteria, permutability."""
        return _alike(self, (None,) * len(self))

    @cached_property
    def alike_by_content(self) -> Alike:
        """Rows that are alike in their order by content as well; those without text are left out."""
        return {key: rows for key, rows in _alike(self, self.content_orders).items() if key[0]}

    @cached_property
    def _ranks(self) -> tuple[IntArray, BoolArray]:
        """Ranks under the tie rule, shape (I, n), and which rows are computed already."""
        n = self[0].n if self else 0
        return np.zeros((len(self), n), dtype=np.int16), np.zeros(len(self), dtype=np.bool_)

    def tie_ranks(self, index: NDArray[np.intp]) -> IntArray:
        """Rank under the tie rule of the candidates of some rows, shape (len(index), n)."""
        if self._whole is not None:
            return self._whole.tie_ranks(self._index[index])
        ranks, computed = self._ranks
        for row in index[~computed[index]].tolist():
            ranks[row] = tie_rank(self[row])
        computed[index] = True
        return ranks[index]


def _alike(items: Sequence[Item], orders: Sequence[Order | None]) -> Alike:
    rows_of: dict[tuple[Order | None, int, bool], list[int]] = {}
    kinds = [(len(item.criteria or ()), item.permutable) for item in items]
    for row, (kind, order) in enumerate(zip(kinds, orders, strict=True)):
        rows_of.setdefault((order, *kind), []).append(row)
    return {key: np.array(rows, dtype=np.intp) for key, rows in rows_of.items()}


def tie_rank(item: Item) -> tuple[int, ...]:
    """Rank of each candidate under the one tie rule (0 wins).

    Candidates are ranked by sha256 of item id and candidate text, so the rule does not depend on
    order, position or label. Without any text (recorded decisions) the index is hashed instead.
    """
    texts = [text_of(candidate) for candidate in item.candidates]
    if not any(texts):
        texts = [f"\x00{candidate}" for candidate in range(item.n)]
    keys = [digest(item.id, text) for text in texts]
    by_rank = sorted(range(item.n), key=lambda candidate: (keys[candidate], candidate))
    return invert(tuple(by_rank))
