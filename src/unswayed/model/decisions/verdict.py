"""Verdicts: a method's answer for one item, and for many as columns."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions.codes import (
    ABSTAINED,
    TIE,
    BoolArray,
    FloatArray,
    IntArray,
    choice_of,
    renumbered,
)
from unswayed.model.permutations import Order

ROUNDING: Final = 1e-9
"""Scores closer than this are equal."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A method's answer for one item."""

    item_id: str
    choice: int | Literal["tie"] | None  # candidate, "tie", or None where no verdict was possible
    method: str
    # whether the method withholds its verdict because it is not sure enough; `choice` is None then
    abstained: bool = False
    null_reason: str | None = None  # why `choice` is None, in words
    tie: tuple[int, ...] | None = None  # the tied candidates where `choice` is "tie"
    # what the method ranks the candidates by; `ranking` is the order it makes
    scores: tuple[float, ...] | None = None
    # mean corrected probability of the chosen candidate over the presentations read; without
    # probabilities its vote share
    confidence: float | None = None
    # whether all presentations read named the same candidate; None for one call
    consistent: bool | None = None
    n_calls: int = 0  # decisions read for this item
    # the score of the response, where the candidates are levels with values
    score: float | None = None
    # standard deviation (n - 1) of the scores of the decisions read; None for one
    sd: float | None = None
    # what `scores` are made of and what was recorded beside them, by name, by candidate; None where
    # no decision said
    parts: dict[str, tuple[float | None, ...]] | None = None

    @property
    def ranking(self) -> tuple[tuple[int, ...], ...] | None:
        """The candidates by `scores`, best first; None without scores.

        Each place holds the candidates that share it, in the order of their numbers: the tied of
        a tie, and equal scores (within 1e-9, rounding).

        >>> Verdict(item_id="q", choice=2, method="average", scores=(40.0, 40.0, 55.0)).ranking
        ((2,), (0, 1))
        """
        if self.scores is None:
            return None
        tied = self.tie or ()
        heights = [inf if c in tied else score for c, score in enumerate(self.scores)]
        places: list[list[int]] = []
        for candidate in sorted(range(len(heights)), key=lambda c: (-heights[c], c)):
            if not places or heights[candidate] < heights[places[-1][0]] - ROUNDING:
                places.append([])
            places[-1].append(candidate)
        return tuple(tuple(sorted(place)) for place in places)

    def _repr_html_(self) -> str:
        fields = msgspec.to_builtins(self).items()
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in fields
        )
        return f"<table>{rows}</table>"


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """A method's verdicts for the rows of a `DecisionTable`."""

    # candidate, TIE, UNPARSED (no verdict possible), ABSTAINED (withheld) or MISSING (a call
    # that the method needs is missing); shape (I,)
    choices: IntArray
    # which candidates are tied where `choices` is TIE, False elsewhere; shape (I, n)
    tied: BoolArray
    scores: FloatArray | None  # shape (I, n), NaN where unknown; None if the method has none
    confidence: FloatArray  # shape (I,), NaN where unknown
    # 1 yes, 0 no, -1 not defined (fewer than two decisions); shape (I,)
    consistent: NDArray[np.int8]
    n_calls: NDArray[np.int32]  # decisions read; shape (I,)
    # Score of the response where the candidates are levels with values, NaN where there is none;
    # shape (I,). None if levels have no values.
    score: FloatArray | None = None
    # standard deviation (n - 1) of the scores of the decisions read, NaN for fewer than two; shape
    # (I,)
    sd: FloatArray | None = None
    # what `scores` are made of and what was recorded beside them, by name; shape (I, n) each, NaN
    # where unknown
    parts: Mapping[str, FloatArray] = field(default_factory=dict)

    def verdict(self, row: int, *, item_id: str, method: str) -> Verdict:
        """One row as a record."""
        code, agreed = int(self.choices[row]), int(self.consistent[row])
        tie = tuple(np.flatnonzero(self.tied[row]).tolist()) if code == TIE else None
        scores = None if self.scores is None else tuple(self.scores[row].tolist())
        return Verdict(
            item_id=item_id,
            choice=choice_of(code),
            method=method,
            abstained=code == ABSTAINED,
            tie=tie,
            scores=None if scores is None or any(map(isnan, scores)) else scores,
            confidence=_number(self.confidence, row),
            consistent=None if agreed < 0 else bool(agreed),
            n_calls=int(self.n_calls[row]),
            score=_number(self.score, row),
            sd=_number(self.sd, row),
            parts=self._parts(row),
        )

    def _parts(self, row: int) -> dict[str, tuple[float | None, ...]] | None:
        """Return the parts of which anything is known in a row."""
        return {
            name: tuple(None if np.isnan(value) else float(value) for value in values[row])
            for name, values in self.parts.items()
            if not np.isnan(values[row]).all()
        } or None

    def renumbered(self, order: Order) -> VerdictTable:
        """Return the verdicts after renumbering: new candidate j is old candidate `order[j]`."""
        return replace(
            self,
            choices=renumbered(self.choices, order),
            tied=self.tied[:, list(order)],
            scores=None if self.scores is None else self.scores[:, list(order)],
            parts={name: values[:, list(order)] for name, values in self.parts.items()},
        )


def _number(values: FloatArray | None, row: int) -> float | None:
    """Return the number of a row; None where it is unknown."""
    number = nan if values is None else float(values[row])
    return None if isnan(number) else number
