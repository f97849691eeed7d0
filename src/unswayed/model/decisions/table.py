"""Decisions of many items as columns, seen through any view, and the one tie rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.model.decisions.codes import (
    MISSING,
    UNPARSED,
    BoolArray,
    FloatArray,
    IntArray,
    renumbered,
)
from unswayed.model.decisions.decision import Decision
from unswayed.model.decisions.recorder import AnswerColumns
from unswayed.model.decisions.recording import Recording
from unswayed.model.decisions.subjects import Subjects
from unswayed.model.items import Item
from unswayed.model.permutations import Order, compose, invert
from unswayed.model.presentation import Ask, Presentation, canonical, label_symbols, settled_by
from unswayed.model.presentation import through as seen_through


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions of items with the same number of candidates, as columns."""

    items: Sequence[Item]  # the I items, blind
    asks: tuple[Ask, ...]  # the T questions, one per column, as the reader of the table asked them
    # the T presentations really shown (equal to the asks' own unless the items are seen through a
    # view); label and position effects belong to these
    shown: tuple[Presentation, ...]
    label_set: tuple[str, ...]  # the n symbols
    choices: IntArray  # candidate or UNPARSED, TIE, MISSING; shape (I, T)
    # Probability by candidate, NaN where unknown; shape (I, T, n). None if there are none.
    probs: FloatArray | None = None
    label_mass: FloatArray | None = None  # shape (I, T), NaN where unknown; None if there is none
    # `Decision.marks`, 0 where nothing was answered; shape (I, T). None if there are none.
    marks: IntArray | None = None
    # what the judge rated each candidate with, by name (`Decision.ratings`), NaN where unknown;
    # shape (I, T, n) each
    ratings: Mapping[str, FloatArray] = field(default_factory=dict)
    # the view the table is seen through; candidate j is `items[i].candidates[outer[j]]`
    outer: Order | None = None
    # the right candidates of estimation items, for methods that learn from them; shape (I, n)
    gold: BoolArray | None = None

    def __post_init__(self) -> None:
        """Keep what is computed of the items with them, for every table made of this one."""
        object.__setattr__(self, "items", Subjects.of(self.items))

    @property
    def subjects(self) -> Subjects:
        """The items, with what is computed of them."""
        return Subjects.of(self.items)

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

    def marked(self, mark: int) -> BoolArray:
        """Find decisions with a mark (REASKED or DISAGREES), shape (I, T)."""
        marks = np.zeros(self.choices.shape, np.int16) if self.marks is None else self.marks
        return (marks & mark) > 0

    @cached_property
    def allowed(self) -> BoolArray:
        """Cells that may be asked (`presentation.askable`, as columns), shape (I, T).

        All, but for items that are not permutable: those are shown as they were given only. Seen
        through another view nothing of them is allowed.
        """
        cells: BoolArray = np.ones(self.choices.shape, dtype=np.bool_)
        if self.subjects.permutable.all():
            return cells
        own = canonical(self.n)
        for (_, m, permutable), rows in self.subjects.alike.items():
            if not permutable:
                cells[rows] = [
                    (shown == own or ask.arranged == "content") and not ask.criteria_order(m)
                    for ask, shown in zip(self.asks, self.shown, strict=True)
                ]
        return cells

    @cached_property
    def values(self) -> FloatArray | None:
        """The value of each level by candidate as seen, shape (I, n); None if levels have none."""
        values = self.subjects.values
        return values if values is None or self.outer is None else values[:, list(self.outer)]

    # Any: codes or numbers
    def _changed(self, change: Callable[[NDArray[Any], float], NDArray[Any]]) -> DecisionTable:
        """Return the table after a change of its columns, which is told what stands for no answer."""

        def changed(values: NDArray[Any] | None, unknown: float) -> NDArray[Any] | None:
            return None if values is None else change(values, unknown)

        return replace(
            self,
            choices=change(self.choices, MISSING),
            probs=changed(self.probs, np.nan),
            label_mass=changed(self.label_mass, np.nan),
            marks=changed(self.marks, 0),
            ratings={name: change(values, np.nan) for name, values in self.ratings.items()},
        )

    def rows(self, index: NDArray[np.intp]) -> DecisionTable:
        """Return the table of some items."""
        return replace(
            self._changed(lambda values, _: values[index]),
            items=self.subjects.rows(index),
            gold=None if self.gold is None else self.gold[index],
        )

    def select(self, asks: Sequence[Ask], *, through: Presentation | None = None) -> DecisionTable:
        """Return the columns that answer `asks`, the items seen through a view; candidates are those of the view.

        A question that was never asked gives a column of MISSING.
        """
        outer = through or canonical(self.n)
        real = [seen_through(outer, ask) for ask in asks]
        columns = [self.columns.get(ask, -1) for ask in real]
        by_item = [
            (place, rows, column)
            for place, ask in enumerate(real)
            if not ask.is_settled and columns[place] < 0
            for rows, column in self._by_item(ask)
        ]
        turns = outer.order != canonical(self.n).order

        def seen(values: NDArray[Any], unknown: float) -> NDArray[Any]:
            cells = _columns_of(values, columns, unknown)
            for place, rows, column in by_item:
                cells[rows, place] = values[rows, column]
            return cells[:, :, list(outer.order)] if turns and values.ndim == 3 else cells

        table = self._changed(seen)
        return replace(
            table,
            asks=tuple(asks),
            shown=tuple(
                self.shown[column] if column >= 0 else ask.presentation
                for column, ask in zip(columns, real, strict=True)
            ),
            choices=renumbered(table.choices, outer.order) if turns else table.choices,
            outer=outer.order if self.outer is None else compose(self.outer, outer.order),
            gold=None,
        )

    def _by_item(self, ask: Ask) -> Iterator[tuple[NDArray[np.intp], int]]:
        """Rows about which a question means the same, with the column that answers it."""
        sorts = ask.arranged == "content"
        seen_as = None if self.outer is None else invert(self.outer)
        groups = self.subjects.alike_by_content if sorts else self.subjects.alike
        for (order, _, _), rows in groups.items():
            if order is not None and seen_as is not None:
                order = compose(seen_as, order)
            column = self.columns.get(settled_by(ask, order, self.items[rows[0]]))
            if column is not None:
                yield rows, column

    def tie_ranks(self, index: NDArray[np.intp]) -> IntArray:
        """Rank under the tie rule of the candidates of some rows, shape (len(index), n)."""
        ranks = self.subjects.tie_ranks(index)
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

        The columns are every question that occurs, in order of appearance, unless `asks` says which.
        Decisions about other items or questions are left out; items are used without their gold. A
        `ShapeError` without any item, or where sizes or label sets differ.
        """
        subjects = Subjects.blind(items)
        row_of = {name: row for row, name in enumerate([item.id for item in subjects])}
        own = [decision for decision in decisions if decision.item_id in row_of]
        label_set = own[0].label_set if own else label_symbols(_size_of(subjects))
        for decision in own:
            if decision.label_set != label_set:
                raise _differs(decision.item_id, decision.label_set, label_set)
        questions = [decision.ask for decision in own]
        column_of = _numbered(questions if asks is None else asks)
        if asks is not None:
            own = [own[k] for k, ask in enumerate(questions) if ask in column_of]
            questions = [ask for ask in questions if ask in column_of]
        width = len(column_of)
        cells = [
            row_of[decision.item_id] * width + column_of[ask]
            for decision, ask in zip(own, questions, strict=True)
        ]
        in_order = cells == list(range(len(subjects) * width))
        answers = AnswerColumns.of(own)
        return cls._filled(
            subjects,
            tuple(column_of),
            label_set,
            answers,
            None if in_order else np.array(cells, dtype=np.intp),
        )

    @classmethod
    def of_recording(cls, items: Sequence[Item], recording: Recording) -> DecisionTable:
        """`of` decisions that are columns already: a column for every question that occurs."""
        subjects = Subjects.blind(items)
        ids = [item.id for item in subjects]
        recording = recording.rows(recording.places_among(ids)[recording.item] >= 0)
        label_set = _label_set(recording) or label_symbols(_size_of(subjects))
        column_of = _numbered(recording.asks)
        rows = recording.places_among(ids)[recording.item]
        columns = np.array([column_of[ask] for ask in recording.asks], dtype=np.intp)
        cells = rows * len(column_of) + columns[recording.kind]
        # as files are written, item by item: the columns of the recording are those of the table
        in_order = np.array_equal(cells, np.arange(len(subjects) * len(column_of)))
        return cls._filled(
            subjects, tuple(column_of), label_set, recording, None if in_order else cells
        )

    @classmethod
    def _filled(
        cls,
        subjects: Subjects,
        asks: tuple[Ask, ...],
        label_set: tuple[str, ...],
        answers: AnswerColumns | Recording,
        cells: NDArray[np.intp] | None,
    ) -> DecisionTable:
        """Return the table with each answer in its cell, counted along the rows; None: all cells in order."""
        n = _size_of(subjects)
        shape = len(subjects), len(asks)

        def filled(given: NDArray[Any], unknown: float) -> NDArray[Any]:  # Any: codes or numbers
            values = given
            if cells is not None:
                size = (shape[0] * shape[1], *given.shape[1:])
                values = np.full(size, unknown, dtype=given.dtype)
                values[cells] = given  # of answers to the same question the last one stays
            return values.reshape(*shape, *values.shape[1:])

        has_mass = not np.isnan(answers.label_mass).all()
        ratings = {name: own for name, own in answers.ratings.items() if not own.is_empty}
        return cls(
            items=subjects,
            asks=asks,
            shown=tuple([ask.presentation for ask in asks]),
            label_set=label_set,
            choices=answers.choices,
            probs=None if answers.probs.is_empty else answers.probs.cells(n),
            label_mass=answers.label_mass if has_mass else None,
            marks=answers.marks if answers.marks.any() else None,
            ratings={name: own.cells(n) for name, own in ratings.items()},
        )._changed(filled)


def _size_of(items: Subjects) -> int:
    if not items:
        raise ShapeError("a decision table needs at least one item")
    n = items[0].n
    if any(len(item.candidates) != n for item in items):
        raise ShapeError("items of one decision table need the same number of candidates")
    return n


def _numbered(asks: Iterable[Ask]) -> dict[Ask, int]:
    return {ask: column for column, ask in enumerate(dict.fromkeys(asks))}


def _label_set(recording: Recording) -> tuple[str, ...] | None:
    """Return the label set that all share; None where nothing is recorded."""
    first, *others = (kind.label_set for kind in recording.kinds) if recording.kinds else (None,)
    if any(own != first for own in others):
        differs = np.array([kind.label_set != first for kind in recording.kinds])
        row = int(differs[recording.kind].argmax())
        own = recording.kinds[recording.kind[row]].label_set
        raise _differs(recording.item_ids[recording.item[row]], own, first or ())
    return first


def _differs(item_id: str, own: tuple[str, ...], first: tuple[str, ...]) -> ShapeError:
    return ShapeError(
        f"{item_id}: label set {list(own)} differs from {list(first)} of the other decisions."
    )


# Any: codes or numbers
def _columns_of(values: NDArray[Any], columns: Sequence[int], unknown: float) -> NDArray[Any]:
    """Return some columns of an array (I, T, ...), a copy; -1 stands for a column of `unknown`."""
    absent = [place for place, column in enumerate(columns) if column < 0]
    if len(absent) == len(columns):
        shape = (len(values), len(columns), *values.shape[2:])
        return np.full(shape, unknown, dtype=values.dtype)
    chosen = values[:, [max(column, 0) for column in columns]]
    if absent:
        chosen[:, absent] = unknown
    return chosen


def leaders_of(scores: FloatArray, tolerance: FloatArray | float) -> BoolArray:
    """Mark the highest scores of each row, within the tolerance; (I, n) -> (I, n).

    None of a row with NaN. The tolerance may differ by row, shape (I, 1).
    """
    complete = ~np.isnan(scores).any(axis=1, keepdims=True)
    safe = np.where(complete, scores, 0.0)
    leaders: BoolArray = complete & (safe >= safe.max(axis=1, keepdims=True) - tolerance)
    return leaders


def argmax_by_tie_rule(
    scores: FloatArray, table: DecisionTable, *, tolerance: float = 0.0
) -> IntArray:
    """Return the highest-scored candidate of each row of a table, (I, n) -> (I,); ties go to the one tie rule.

    Scores within the tolerance of the best are tied; a row with NaN gives UNPARSED.
    """
    best = leaders_of(scores, tolerance)
    choice: IntArray = best.argmax(axis=1).astype(np.int16)
    tied = np.flatnonzero(best.sum(axis=1) > 1)
    if len(tied):
        ranks = table.tie_ranks(tied)
        choice[tied] = np.where(best[tied], ranks, np.iinfo(np.int16).max).argmin(axis=1)
    choice[~best.any(axis=1)] = UNPARSED
    return choice
