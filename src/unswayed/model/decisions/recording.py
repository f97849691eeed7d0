"""Recorded decisions as columns: a row for each, what very many of them share held once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import eq
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions.codes import BoolArray, FloatArray, IntArray
from unswayed.model.decisions.decision import RANK, SCORE, Decision
from unswayed.model.items import BadLine
from unswayed.model.presentation import Ask


class Originals(Protocol):
    """Recorded decisions in their original form, by place."""

    def read(self, places: Sequence[int]) -> Iterator[Decision]:
        """Yield the decisions at some places, as they were recorded."""
        ...

    def lines(self, places: Sequence[int]) -> list[bytes]:
        """Return the same as lines of a file, without the newline."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class ByCandidate:
    """Numbers by candidate of the rows that have them, one row after the other."""

    start: NDArray[np.int64]  # where those of a row begin, -1 where it has none; shape (R,)
    values: FloatArray  # naN where one is unknown

    def rows(self, index: NDArray[np.intp]) -> ByCandidate:
        """Select the values of some rows."""
        return ByCandidate(self.start[index], self.values)

    @property
    def is_empty(self) -> bool:
        """True if no row has any."""
        return not len(self.values) or not bool((self.start >= 0).any())

    def cells(self, n: int) -> FloatArray:
        """Return the values of rows with n candidates each, shape (R, n); NaN for missing values.

        They may be these very numbers: write into a copy.
        """
        whole = len(self.values) == n * len(self.start)
        if whole and np.array_equal(self.start, np.arange(0, len(self.values), n)):
            return self.values.reshape(-1, n)
        cells = np.full((len(self.start), n), np.nan)
        held = self.start >= 0
        cells[held] = self.values[self.start[held][:, None] + np.arange(n)]
        return cells


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded decisions as columns, R rows in the order they were recorded."""

    # what rows share: decisions without item and answer, in order of appearance
    kinds: tuple[Decision, ...]
    item_ids: tuple[str, ...]  # the items, in order of appearance
    kind: NDArray[np.int32]  # the kind of each row, shape (R,)
    item: NDArray[np.int32]  # the item of each row, shape (R,)
    choices: IntArray  # candidate, UNPARSED or TIE; shape (R,)
    finish: NDArray[np.int32]  # why each answer ended, by number; shape (R,)
    label_mass: FloatArray  # naN where unknown, shape (R,)
    marks: IntArray  # `Decision.marks`, shape (R,)
    probs: ByCandidate  # by candidate
    ratings: Mapping[str, ByCandidate]  # `Decision.ratings` by name
    places: NDArray[np.int64]  # where a row lies among the originals, shape (R,)
    finish_reasons: tuple[str | None, ...]  # by number
    # `Item.unit` by item id, where decisions name one
    units: Mapping[str, str] = field(default_factory=dict)
    # where the decisions can be read again; None if they were not kept
    originals: Originals | None = None
    bad_lines: tuple[BadLine, ...] = ()  # what was left out when they were read
    is_changed: bool = False  # whether the questions of some kinds are others than those recorded

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        """The question of each kind."""
        return tuple(kind.ask for kind in self.kinds)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of candidates of each kind."""
        return np.array([len(kind.order) for kind in self.kinds], dtype=np.intp)

    @cached_property
    def ask_codes(self) -> Mapping[Ask, int]:
        """The distinct questions, numbered."""
        return {ask: code for code, ask in enumerate(dict.fromkeys(self.asks))}

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Item and question of each row as one number, shape (R,)."""
        of_kind = np.array([self.ask_codes[ask] for ask in self.asks], dtype=np.int64)
        return self.item.astype(np.int64) * len(self.ask_codes) + of_kind[self.kind]

    def places_among(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """Return the index of each of `item_ids` among ids, -1 for absent ones."""
        if len(ids) == len(self.item_ids) and all(map(eq, ids, self.item_ids)):
            return np.arange(len(ids), dtype=np.intp)
        rows = {name: row for row, name in enumerate(ids)}
        return np.array([rows.get(name, -1) for name in self.item_ids], dtype=np.intp)

    def counts(self) -> NDArray[np.intp]:
        """Count the rows of each kind."""
        return np.bincount(self.kind, minlength=len(self.kinds))

    def rows(self, chosen: BoolArray) -> Recording:
        """Return some of the rows, shape (R,) of yes or no; itself if it is all of them."""
        if chosen.all():
            return self
        index = np.flatnonzero(chosen)
        return replace(
            self,
            kind=self.kind[index],
            item=self.item[index],
            choices=self.choices[index],
            finish=self.finish[index],
            label_mass=self.label_mass[index],
            marks=self.marks[index],
            probs=self.probs.rows(index),
            ratings={name: values.rows(index) for name, values in self.ratings.items()},
            places=self.places[index],
        ).tidy()

    def tidy(self) -> Recording:
        """Return the same without what no row has; kinds, items and ratings in order of appearance."""
        kind, kinds = _renumbered(self.kind)
        item, items = _renumbered(self.item)
        return replace(
            self,
            kinds=tuple(self.kinds[code] for code in kinds.tolist()),
            item_ids=tuple(self.item_ids[code] for code in items.tolist()),
            kind=kind,
            item=item,
            ratings=dict(
                sorted(
                    (own for own in self.ratings.items() if not own[1].is_empty), key=_appearance
                )
            ),
        )

    def without(self, bad_lines: Sequence[BadLine]) -> Recording:
        """Return the same, with what was left out when it was read."""
        return replace(self, bad_lines=tuple(bad_lines))

    def asked_as(self, kinds: Sequence[Decision]) -> Recording:
        """Return the same answers to other questions, one for each kind."""
        return replace(self, kinds=tuple(kinds), is_changed=True)

    def decisions(self, rows: NDArray[np.intp]) -> Iterator[Decision]:
        """Yield some rows as decisions again, as they are asked here."""
        if self.originals is None:
            return
        kinds = self.kind[rows].tolist()
        originals = self.originals.read(self.places[rows].tolist())
        for code, decision in zip(kinds, originals, strict=True):
            asked = self.kinds[code].prompt_id, self.kinds[code].criteria_order
            if (decision.prompt_id, decision.criteria_order) != asked:
                prompt, order = asked
                decision = msgspec.structs.replace(decision, prompt_id=prompt, criteria_order=order)
            yield decision


def _appearance(rating: tuple[str, ByCandidate]) -> tuple[int, int]:
    """Return a sort key: first decision with the rating, then flags before scores before rankings."""
    name, values = rating
    return int((values.start >= 0).argmax()), (SCORE, RANK).index(name) if name in (
        SCORE,
        RANK,
    ) else -1


def _renumbered(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    old, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = first.argsort()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[inverse.reshape(-1)], old[order].astype(np.intp)
