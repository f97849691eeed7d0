"""Decisions of many items as columns, seen through any view, and the one tie rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions.codes import (
    MISSING,
    UNPARSED,
    BoolArray,
    FloatArray,
    IntArray,
    code_of,
    renumbered,
)
from unswayed.decisions.decision import Decision
from unswayed.digests import digest
from unswayed.errors import ShapeError
from unswayed.items import Item, blind, text_of
from unswayed.permutations import Order, compose, invert
from unswayed.presentation import (
    Ask,
    Presentation,
    canonical,
    content_order,
    label_symbols,
    settled_by,
)
from unswayed.presentation import through as seen_through

__all__ = ["DecisionTable", "TableBuilder", "argmax_by_tie_rule", "leaders_of", "tie_rank"]


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions of items with the same number of candidates, as columns.

    Attributes:
        items: The I items, blind.
        asks: The T questions, one per column, as the reader of the table asked them.
        shown: The T presentations really shown (equal to the asks' own unless the items are seen
            through a view); label and position effects belong to these.
        label_set: The n symbols.
        choices: Candidate or UNPARSED, TIE, MISSING; shape (I, T).
        probs: Probability by candidate, NaN where unknown; shape (I, T, n). None if there are none.
        label_mass: Shape (I, T), NaN where unknown; None if there is none.
        ratings: What the judge rated each candidate with, by name (`Decision.ratings`), NaN where
            unknown; shape (I, T, n) each.
        outer: The view the table is seen through; candidate j is `items[i].candidates[outer[j]]`.
    """

    items: tuple[Item, ...]
    asks: tuple[Ask, ...]
    shown: tuple[Presentation, ...]
    label_set: tuple[str, ...]
    choices: IntArray
    probs: FloatArray | None = None
    label_mass: FloatArray | None = None
    ratings: Mapping[str, FloatArray] = field(default_factory=dict)
    outer: Order | None = None

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.label_set)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def columns(self) -> Mapping[Ask, int]:
        """Column of each ask."""
        return {ask: column for column, ask in enumerate(self.asks)}

    @cached_property
    def allowed(self) -> BoolArray:
        """Cells that may be asked (`presentation.askable`, as columns), shape (I, T).

        All, but for items that are not permutable: those are shown as they were given only. Seen
        through another view nothing of them is allowed.
        """
        cells: BoolArray = np.ones(self.choices.shape, dtype=np.bool_)
        fixed = [row for row, item in enumerate(self.items) if not item.permutable]
        if fixed:
            own = canonical(self.n)
            for row in fixed:
                m = len(self.items[row].criteria or ())
                cells[row] = [
                    (shown == own or ask.arranged == "content") and not ask.criteria_order(m)
                    for ask, shown in zip(self.asks, self.shown, strict=True)
                ]
        return cells

    @cached_property
    def content_orders(self) -> tuple[Order | None, ...]:
        """The candidates of each item, as seen, sorted by content; None where they have no text."""
        orders = map(content_order, self.items)
        if self.outer is None:
            return tuple(orders)
        seen_as = invert(self.outer)
        return tuple(None if order is None else compose(seen_as, order) for order in orders)

    @cached_property
    def values(self) -> FloatArray | None:
        """The value of each level by candidate as seen, shape (I, n); None if levels have none."""
        if not self.items or self.items[0].values is None:
            return None
        unknown = (np.nan,) * self.n
        given = [item.values or unknown for item in self.items]
        values = np.array(given, dtype=np.float64).reshape(len(self), self.n)
        return values if self.outer is None else values[:, list(self.outer)]

    def rows(self, index: NDArray[np.intp]) -> DecisionTable:
        """The table of some items."""
        return replace(
            self,
            items=tuple(self.items[i] for i in index),
            choices=self.choices[index],
            probs=None if self.probs is None else self.probs[index],
            label_mass=None if self.label_mass is None else self.label_mass[index],
            ratings={name: values[index] for name, values in self.ratings.items()},
        )

    def select(self, asks: Sequence[Ask], *, through: Presentation | None = None) -> DecisionTable:
        """The columns that answer `asks`, the items seen through a view.

        Args:
            asks: Questions about the item as seen. A question that was never asked gives a column
                of MISSING.
            through: The view; None for the items as they are.

        Returns:
            A table whose candidates are those of the view: choices and probabilities are mapped.
        """
        own = canonical(self.n)
        outer = through or own
        real = [seen_through(outer, ask) for ask in asks]
        columns = [self.columns.get(ask, -1) for ask in real]
        by_item = [
            (place, rows, column)
            for place, ask in enumerate(real)
            if not ask.is_settled and columns[place] < 0
            for rows, column in self._by_item(ask)
        ]
        choices: IntArray = _columns_of(self.choices, columns, MISSING)
        probs = None if self.probs is None else _columns_of(self.probs, columns, np.nan)
        mass = None if self.label_mass is None else _columns_of(self.label_mass, columns, np.nan)
        ratings = {
            name: _columns_of(values, columns, np.nan) for name, values in self.ratings.items()
        }
        for place, rows, column in by_item:
            choices[rows, place] = self.choices[rows, column]
            if probs is not None and self.probs is not None:
                probs[rows, place] = self.probs[rows, column]
            if mass is not None and self.label_mass is not None:
                mass[rows, place] = self.label_mass[rows, column]
            for name, values in self.ratings.items():
                ratings[name][rows, place] = values[rows, column]
        if outer.order != own.order:
            choices = renumbered(choices, outer.order)
            probs = None if probs is None else probs[:, :, list(outer.order)]
            ratings = {name: values[:, :, list(outer.order)] for name, values in ratings.items()}
        return DecisionTable(
            items=self.items,
            asks=tuple(asks),
            shown=tuple(
                self.shown[column] if column >= 0 else ask.presentation
                for column, ask in zip(columns, real, strict=True)
            ),
            label_set=self.label_set,
            choices=choices,
            probs=probs,
            label_mass=mass,
            ratings=ratings,
            outer=outer.order if self.outer is None else compose(self.outer, outer.order),
        )

    def _by_item(self, ask: Ask) -> Iterator[tuple[NDArray[np.intp], int]]:
        """Rows about which a question means the same, with the column that answers it."""
        sorts = ask.arranged == "content"
        orders = self.content_orders if sorts else (None,) * len(self)
        rows_of: dict[tuple[Order | None, int, bool], list[int]] = {}
        for row, (item, order) in enumerate(zip(self.items, orders, strict=True)):
            if not sorts or order is not None:
                alike = order, len(item.criteria or ()), item.permutable
                rows_of.setdefault(alike, []).append(row)
        for (order, _, _), rows in rows_of.items():
            column = self.columns.get(settled_by(ask, order, self.items[rows[0]]))
            if column is not None:
                yield np.array(rows, dtype=np.intp), column

    def tie_ranks(self, index: NDArray[np.intp]) -> IntArray:
        """Rank under the tie rule of the candidates of some rows, shape (len(index), n)."""
        ranks = np.array([tie_rank(self.items[i]) for i in index], dtype=np.int16)
        ranks = ranks.reshape(len(index), self.n)
        return ranks if self.outer is None else ranks[:, list(self.outer)]

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        decisions: Iterable[Decision],
        *,
        asks: Sequence[Ask] | None = None,
    ) -> DecisionTable:
        """Arrange decisions in columns; the last decision for a question wins.

        Args:
            items: Items with the same number of candidates (used without their gold).
            decisions: Any decisions; those of other items or other questions are left out.
            asks: Columns; default: every question that occurs, in order of appearance.

        Raises:
            ShapeError: If the items differ in their number of candidates, or the decisions in
                their label set.
        """
        builder = TableBuilder(items, asks=asks)
        for decision in decisions:
            builder.add(decision)
        return builder.table()


def _columns_of(
    values: NDArray[Any], columns: Sequence[int], unknown: float
) -> NDArray[Any]:  # Any: codes or numbers
    """Some columns of an array (I, T, ...), a copy; -1 stands for a column of `unknown`."""
    absent = [place for place, column in enumerate(columns) if column < 0]
    if len(absent) == len(columns):
        shape = (len(values), len(columns), *values.shape[2:])
        return np.full(shape, unknown, dtype=values.dtype)
    chosen = values[:, [max(column, 0) for column in columns]]
    if absent:
        chosen[:, absent] = unknown
    return chosen


class TableBuilder:
    """Collects decisions, one after the other, as columns; keeps numbers, not records.

    Args:
        items: Items with the same number of candidates (used without their gold).
        asks: Columns; default: every question that occurs, in order of appearance.

    Raises:
        ShapeError: If there is no item, or they differ in their number of candidates.
    """

    def __init__(self, items: Sequence[Item], *, asks: Sequence[Ask] | None = None) -> None:
        if not items:
            raise ShapeError("a decision table needs at least one item")
        self._n = items[0].n
        if any(item.n != self._n for item in items):
            raise ShapeError("items of one decision table need the same number of candidates")
        self._items = tuple(blind(item) for item in items)
        self._row = {item.id: row for row, item in enumerate(items)}
        self._label_set: tuple[str, ...] | None = None
        self._open = asks is None
        self._choices = {ask: self._unasked() for ask in asks or ()}
        self._probs: dict[Ask, FloatArray] = {}
        self._mass: dict[Ask, FloatArray] = {}
        self._ratings: dict[str, dict[Ask, FloatArray]] = {}

    def _unasked(self) -> IntArray:
        return np.full(len(self._items), MISSING, dtype=np.int16)

    def add(self, decision: Decision) -> None:
        """Take one decision; those of other items or other questions are left out.

        Raises:
            ShapeError: If its label set differs from the others'.
        """
        row = self._row.get(decision.item_id)
        if row is None:
            return
        if self._label_set is None:
            self._label_set = decision.label_set
        elif decision.label_set != self._label_set:
            raise ShapeError(
                f"{decision.item_id}: label set {list(decision.label_set)} differs from "
                f"{list(self._label_set)} of the other decisions."
            )
        ask = decision.ask
        if ask not in self._choices:
            if not self._open:
                return
            self._choices[ask] = self._unasked()
        self._choices[ask][row] = code_of(decision.choice)
        size = len(self._items)
        if decision.probs is not None and ask not in self._probs:
            self._probs[ask] = np.full((size, self._n), np.nan)
        if ask in self._probs:  # an earlier decision's probabilities must not outlive it
            self._probs[ask][row] = np.nan if decision.probs is None else decision.probs
        if decision.label_mass is not None and ask not in self._mass:
            self._mass[ask] = np.full(size, np.nan)
        if ask in self._mass:
            self._mass[ask][row] = np.nan if decision.label_mass is None else decision.label_mass
        ratings = decision.ratings
        if ratings or self._ratings:
            self._rate(row, ask, ratings)

    def _rate(self, row: int, ask: Ask, given: Mapping[str, Sequence[float | None]]) -> None:
        """Take the ratings of one decision, those of an earlier one forgotten."""
        for by_ask in self._ratings.values():
            if ask in by_ask:
                by_ask[ask][row] = np.nan
        for name, values in given.items():
            by_ask = self._ratings.setdefault(name, {})
            if ask not in by_ask:
                by_ask[ask] = np.full((len(self._items), self._n), np.nan)
            by_ask[ask][row] = [np.nan if value is None else value for value in values]

    def table(self) -> DecisionTable:
        """The collected table."""
        asks = tuple(self._choices)
        size = len(self._items)
        choices = np.full((size, len(asks)), MISSING, dtype=np.int16)
        probs = np.full((*choices.shape, self._n), np.nan) if self._probs else None
        mass = np.full(choices.shape, np.nan) if self._mass else None
        ratings = {name: np.full((*choices.shape, self._n), np.nan) for name in self._ratings}
        for column, ask in enumerate(asks):
            choices[:, column] = self._choices[ask]
            for name, by_ask in self._ratings.items():
                if ask in by_ask:
                    ratings[name][:, column] = by_ask[ask]
            if probs is not None and ask in self._probs:
                probs[:, column] = self._probs[ask]
            if mass is not None and ask in self._mass:
                mass[:, column] = self._mass[ask]
        return DecisionTable(
            items=self._items,
            asks=asks,
            shown=tuple(ask.presentation for ask in asks),
            label_set=self._label_set or label_symbols(self._n),
            choices=choices,
            probs=probs,
            label_mass=mass,
            ratings=ratings,
        )


def tie_rank(item: Item) -> tuple[int, ...]:
    """Rank of each candidate under the one tie rule (0 wins).

    Candidates are ranked by sha256 of item id and candidate text, so the rule does not depend on
    order, position or label. Without text (recorded decisions) the index is hashed instead.
    """
    keys = []
    for candidate, text in enumerate(item.candidates):
        content = text_of(text) or f"\x00{candidate}"
        keys.append(digest(item.id, content))
    by_rank = sorted(range(item.n), key=lambda candidate: (keys[candidate], candidate))
    return invert(tuple(by_rank))


def leaders_of(scores: FloatArray, tolerance: FloatArray | float) -> BoolArray:
    """Which scores of each row are the highest, or within the tolerance of it; (I, n) -> (I, n).

    None of a row with NaN. The tolerance may differ by row, shape (I, 1).
    """
    complete = ~np.isnan(scores).any(axis=1, keepdims=True)
    safe = np.where(complete, scores, 0.0)
    leaders: BoolArray = complete & (safe >= safe.max(axis=1, keepdims=True) - tolerance)
    return leaders


def argmax_by_tie_rule(
    scores: FloatArray, table: DecisionTable, *, tolerance: float = 0.0
) -> IntArray:
    """The highest-scored candidate of each row; exact ties go to the one tie rule.

    Args:
        scores: Shape (I, n); a row with NaN gives UNPARSED.
        table: The table the rows belong to.
        tolerance: Scores within this of the best count as tied.

    Returns:
        Candidates, shape (I,).
    """
    best = leaders_of(scores, tolerance)
    choice: IntArray = best.argmax(axis=1).astype(np.int16)
    tied = np.flatnonzero(best.sum(axis=1) > 1)
    if len(tied):
        ranks = table.tie_ranks(tied)
        choice[tied] = np.where(best[tied], ranks, np.iinfo(np.int16).max).argmin(axis=1)
    choice[~best.any(axis=1)] = UNPARSED
    return choice
