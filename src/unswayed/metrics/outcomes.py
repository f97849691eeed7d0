"""Outcomes: what a judge or a method answered under every presentation, joined with gold.

Everything is by candidate; the only label and position quantities are the two maps derived from the
presentations really shown. `recorded.py` joins gold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.metrics.gold import GOLD_ONE, GOLD_SEVERAL, GOLD_TIE
from unswayed.metrics.patterns import patterns_of_rows, unique_rows
from unswayed.model.decisions import (
    MISSING,
    TIE,
    BoolArray,
    FloatArray,
    IntArray,
)
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.permutations import invert
from unswayed.model.presentation import Presentation

CONTINUOUS: Final = ("probs", "label_mass", "human", "score", "scores", "places")
"""Continuous quantities, which the needs of metrics are named after."""
_BY_ITEM: Final = ("choices", "gold", "gold_kind", "permutable", "tied", "weights", *CONTINUOUS)
"""Arrays with a row per item, continuous quantities among them."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The answers to I items with the same number n of candidates under V presentations.

    Attributes:
        item_ids: The I ids.
        groups: The group of each item, None where it has none.
        shown: The V presentations really shown.
        label_set: The n symbols.
        choices: Candidate, or the codes UNPARSED, TIE, MISSING, ABSTAINED; shape (I, V).
        gold: The right candidates, all False where there is none; shape (I, n).
        gold_kind: GOLD_NONE, GOLD_ONE, GOLD_SEVERAL or GOLD_TIE; shape (I,).
        permutable: False for items asked in their own order only (column 0); they stay out of
            every metric that compares or pools presentations; shape (I,).
        probs: Probability by candidate, NaN where unknown; shape (I, V, n). None if there are none.
        label_mass: Probability mass on the labels, NaN where unknown; shape (I, V).
        tied: Which candidates are tied where the choice is TIE; shape (I, V, n). None: all of them.
        tie_is_class: A gold tie is a third class that a TIE answers rightly. By default items with
            a gold tie are left out of what needs gold.
        abstains: The method may withhold verdicts (ABSTAINED), which are neither right nor wrong.
        yardstick: Without gold, verdicts of the average over the full pool stand in its place.
        human: The score that people gave the item, NaN where unknown; shape (I,). None if there
            are none.
        score: The score that the judge or method gave the item (rubric: the value of the chosen
            level, or a mean of such), NaN where there is none; shape (I, V).
        scores: The score of each candidate (listwise), NaN where unknown; shape (I, V, n).
        clusters: Items that are drawn together; None for each by itself.
        places: Where the criterion that an item is about stands among those asked at once, -1 where
            it is the only one; shape (I, V). None if no item has others beside it.
        weights: How many items each row stands for, at least one; shape (I,). None: one each.
    """

    item_ids: tuple[str, ...]
    groups: tuple[str | None, ...]
    shown: tuple[Presentation, ...]
    label_set: tuple[str, ...]
    choices: IntArray
    gold: BoolArray
    gold_kind: NDArray[np.int8]
    permutable: BoolArray
    probs: FloatArray | None = None
    label_mass: FloatArray | None = None
    tied: BoolArray | None = None
    tie_is_class: bool = False
    yardstick: bool = False
    abstains: bool = False
    human: FloatArray | None = None
    score: FloatArray | None = None
    scores: FloatArray | None = None
    clusters: Clusters | None = None
    places: IntArray | None = None
    weights: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        items, views, n = len(self.item_ids), len(self.shown), len(self.label_set)
        shapes = (
            ((items, views), ("choices", "label_mass", "score", "places")),
            ((items, n), ("gold",)),
            ((items,), ("gold_kind", "permutable", "human", "weights")),
            ((items, views, n), ("probs", "tied", "scores")),
        )
        arrays = self._arrays
        if self.clusters is not None and self.clusters.of_item.shape != (items,):
            raise ShapeError(f"outcomes: {len(self.clusters.of_item)} clusters for {items} items")
        for shape, names in shapes:
            for name in names:
                if name in arrays and arrays[name].shape != shape:
                    own = arrays[name].shape
                    raise ShapeError(f"outcomes: {name} has shape {own}, expected {shape}")
        if len(self.groups) != items:
            raise ShapeError(f"outcomes: {len(self.groups)} groups for {items} items")
        if any(presentation.n != n for presentation in self.shown):
            raise ShapeError(f"outcomes: a presentation is not of {n} candidates")
        if self.weights is not None and (self.weights < 1).any():
            raise ShapeError("outcomes: a row stands for no item: leave it out")
        if self.weights is not None and self.clusters is not None:
            raise ShapeError("outcomes: a row of a cluster stands for one item, leave out weights")

    def __len__(self) -> int:
        return len(self.item_ids)

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.label_set)

    @property
    def n_views(self) -> int:
        """Number of presentations V."""
        return len(self.shown)

    def rows(self, index: NDArray[np.intp]) -> Outcomes:
        """Return the outcomes of some items; answer patterns are counted once, for the whole."""
        at = index.tolist()
        own = {name: array[index] for name, array in self._arrays.items()}
        own["item_ids"] = tuple(map(self.item_ids.__getitem__, at))
        own["groups"] = tuple(map(self.groups.__getitem__, at))
        clusters = None if self.clusters is None else self.clusters.rows(index)
        part = replace(self, clusters=clusters, **own)
        if "patterns" in self.__dict__:
            part.__dict__["patterns"] = patterns_of_rows(self.patterns[1], index)
        return part

    @property
    def _arrays(self) -> dict[str, Any]:
        """The arrays that there are, a row per item each."""
        arrays = {name: getattr(self, name) for name in _BY_ITEM}
        return {name: array for name, array in arrays.items() if array is not None}

    @cached_property
    def recorded(self) -> frozenset[str]:
        """The continuous quantities that there are; places of a criterion only if it moved."""
        still = self.places is None or bool((self.places == self.places[:, :1]).all())
        return frozenset(CONTINUOUS) & self._arrays.keys() - ({"places"} if still else set())

    def categorical(self) -> Outcomes:
        """Return the part in which items that answered alike are the same: choices, gold and ties."""
        nothing: dict[str, Any] = dict.fromkeys(CONTINUOUS)
        return replace(self, clusters=None, **nothing)

    @cached_property
    def tally(self) -> Outcomes:
        """The categorical part with one row per answer pattern, each with its number of items."""
        first, pattern = self.patterns
        weights = np.bincount(pattern, weights=self.weights, minlength=len(first)).astype(np.int64)
        tally = replace(self.categorical().rows(first), weights=weights)
        tally.__dict__["patterns"] = np.arange(len(first)), np.arange(len(first))
        return tally

    @property
    def each(self) -> Outcomes:
        """The items one by one."""
        if self.weights is None:
            return self
        return replace(self, weights=None).rows(np.repeat(np.arange(len(self)), self.weights))

    @property
    def n_items(self) -> int:
        """Number of items behind the rows."""
        return len(self) if self.weights is None else int(self.weights.sum())

    @property
    def times(self) -> NDArray[np.int64]:
        """Number of items that each row represents, shape (I,)."""
        return np.ones(len(self), np.int64) if self.weights is None else self.weights

    def count(self, rows: BoolArray) -> int:
        """Items, or calls, of which something is so, (I,) or (I, V)."""
        if self.weights is None:
            return int(np.count_nonzero(rows))
        return int(self.weights @ rows.reshape(len(self), -1).sum(axis=1, dtype=np.int64))

    @property
    def n_draws(self) -> int:
        """Number of units to draw from: clusters, each a single item where none are joined."""
        return self.n_items if self.clusters is None else self.clusters.count

    @cached_property
    def labels_by_candidate(self) -> NDArray[np.intp]:
        """`[v, c]` = label that candidate c carries in presentation v, shape (V, n)."""
        rows = [presentation.labels_by_candidate() for presentation in self.shown]
        return np.array(rows, dtype=np.intp).reshape(self.n_views, self.n)

    @cached_property
    def positions_by_candidate(self) -> NDArray[np.intp]:
        """`[v, c]` = position of candidate c in presentation v, shape (V, n)."""
        rows = [invert(presentation.order) for presentation in self.shown]
        return np.array(rows, dtype=np.intp).reshape(self.n_views, self.n)

    @cached_property
    def even(self) -> bool:
        """True if every candidate stands equally often at every position and under every label."""
        return is_even(self.positions_by_candidate) and is_even(self.labels_by_candidate)

    @cached_property
    def answered(self) -> BoolArray:
        """Calls that were made and answered, where no verdict is withheld, shape (I, V)."""
        return np.asarray(self.choices > MISSING, dtype=np.bool_)

    @cached_property
    def pooled(self) -> BoolArray:
        """Calls that position and label quantities pool: answered, of permutable items, (I, V)."""
        return self.answered & self.permutable[:, None]

    @cached_property
    def complete(self) -> BoolArray:
        """Permutable items answered under every one of several presentations, shape (I,)."""
        return self.permutable & self.answered.all(axis=1) & (self.n_views > 1)

    @cached_property
    def scored(self) -> BoolArray:
        """Scores of the judge with a human score beside them, shape (I, V)."""
        if self.human is None or self.score is None:
            return np.zeros(self.choices.shape, dtype=np.bool_)
        return np.asarray(~np.isnan(self.score) & ~np.isnan(self.human)[:, None], dtype=np.bool_)

    @cached_property
    def unanimous(self) -> BoolArray:
        """Items whose answers are all the same, shape (I,); unparsed ones agree with nothing."""
        return np.asarray(self.choice_counts.max(axis=1) == self.n_views, dtype=np.bool_)

    @cached_property
    def flipped(self) -> BoolArray:
        """Complete items whose answers are not all the same, shape (I,)."""
        return self.complete & ~self.unanimous

    @cached_property
    def decided(self) -> BoolArray:
        """Items that can be answered rightly or wrongly, shape (I,)."""
        kinds = [GOLD_ONE, GOLD_SEVERAL, *([GOLD_TIE] if self.tie_is_class else [])]
        return np.asarray(np.isin(self.gold_kind, kinds), dtype=np.bool_)

    @cached_property
    def right(self) -> BoolArray:
        """Calls whose choice is right, shape (I, V)."""
        named = np.maximum(self.choices, 0).astype(np.intp)
        hit = np.take_along_axis(self.gold, named, axis=1) & (self.choices >= 0)
        if self.tie_is_class:
            hit |= (self.gold_kind == GOLD_TIE)[:, None] & (self.choices == TIE)
        return np.asarray(hit, dtype=np.bool_)

    @cached_property
    def patterns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Items that answered alike: the first of each pattern, (P,), and each item's pattern, (I,).

        Alike are rows of choices, gold, permutability and ties.
        """
        columns = [self.choices, self.gold, self.gold_kind[:, None], self.permutable[:, None]]
        if self.tied is not None:
            columns.append(self.tied.reshape(len(self), math.prod(self.tied.shape[1:])))
        return unique_rows(np.hstack([column.astype(np.int16) for column in columns]))

    @cached_property
    def choice_counts(self) -> FloatArray:
        """Presentations that named each candidate, and declared ties last; shape (I, n + 1).

        Unparsed and missing answers are in no column.
        """
        counts = np.empty((len(self), self.n + 1))
        for candidate in range(self.n):
            counts[:, candidate] = (self.choices == candidate).sum(axis=1)
        counts[:, self.n] = (self.choices == TIE).sum(axis=1)
        return counts

    def counts_by(self, map_of_candidate: NDArray[np.intp]) -> FloatArray:
        """Pooled, parsed, untied choices by what `labels_by_candidate` or `positions_by_candidate`
        gives each candidate, shape (I, n).
        """
        named = np.maximum(self.choices, 0).astype(np.intp)
        target = map_of_candidate[np.arange(self.n_views)[None, :], named]
        target[~(self.pooled & (self.choices >= 0))] = -1
        return np.stack([(target == k).sum(axis=1) for k in range(self.n)], axis=1).astype(float)


def is_even(places: NDArray[np.intp]) -> bool:
    """Return True if every candidate stands equally often at every place, `places[v, c]`."""
    counts = (places == np.arange(places.shape[1])[:, None, None]).sum(axis=1)
    return bool(np.ptp(counts) == 0)
