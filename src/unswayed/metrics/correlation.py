"""Correlation of a judge's scores with human scores over items: Pearson, Spearman, Kendall's tau-b.

Ranks depend on who else was drawn, so these are no sums over items: they are computed from how often
each item counts, exactly as if it stood there that many times. Items with the same two scores are
one pair with its count. Spearman is Pearson on mid-ranks (average ranks of ties), which follow from
the counts of the distinct scores. For tau-b = (P - Q) / sqrt(pairs untied in one x pairs untied in
the other) the pairs that are ranked the other way round, Q, are counted bit by bit: two human scores
are in the wrong order where their codes agree above some bit and differ in it, so one pass per bit of
the code over sorted pairs counts them all, O(I log I) for any number of distinct scores.

A method is read under every presentation: the value is the mean over those where it is defined,
which takes three items and scores that differ on both sides. Items without a human score, and
answers without a score, are left out.

Source: Knight (1966), JASA 61, 436, for counting tau in sorted order; Kendall (1945), Biometrika
33, 239, for tau-b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.metrics.metric import FEWEST_SCORED, Metric, Need, OfWeights, correlation
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray

Index = NDArray[np.intp]

_DIGITS: Final = 12
"""Digits in which two scores must differ not to be tied: the sum of ten orders rounds elsewhere."""

_CONSTANT: Final = 1e-12
"""Share of the mean square below which a variance is nothing but rounding."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct pairs (x, y) of two scores, sorted by x and then by y."""

    items: Index  # the K items that have both scores, in the order of their pairs
    starts: Index  # where each pair begins among them, shape (C,)
    # x, y: the distinct scores, ascending, as shares of the largest; shapes (X,), (Y,)
    x: FloatArray
    y: FloatArray
    # x_codes, y_codes: which of them each pair has, shape (C,)
    x_codes: Index
    y_codes: Index

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Pairs:
        """Return the pairs of two scores of I items, NaN where unknown.

        Scores that differ by no more than the rounding of a mean are the same.
        """
        scored = np.flatnonzero(~np.isnan(x) & ~np.isnan(y))
        x_values, x_codes = np.unique(_rounded(x[scored]), return_inverse=True)
        y_values, y_codes = np.unique(_rounded(y[scored]), return_inverse=True)
        cells, sizes = np.unique(x_codes * max(len(y_values), 1) + y_codes, return_counts=True)
        order = np.lexsort((y_codes, x_codes))
        return cls(
            items=scored[order],
            starts=np.cumsum(sizes) - sizes,
            x=x_values,
            y=y_values,
            x_codes=cells // max(len(y_values), 1),
            y_codes=cells % max(len(y_values), 1),
        )

    def counts(self, weights: FloatArray) -> FloatArray:
        """Sum item weights, shape (B, I), into counts of pairs, shape (B, C)."""
        return _sums_of_runs(np.take(weights, self.items, axis=1), self.starts)

    def by_x(self, counts: FloatArray) -> FloatArray:
        """Count each x, shape (B, X)."""
        return _sums_of_runs(counts, _starts(self.x_codes))

    def by_y(self, counts: FloatArray) -> FloatArray:
        """Count each y, shape (B, Y)."""
        return _sums_of_runs(np.take(counts, self._y_order, axis=1), self._y_starts)

    @cached_property
    def _y_order(self) -> Index:
        return np.argsort(self.y_codes, kind="stable")

    @cached_property
    def _y_starts(self) -> Index:
        return _starts(self.y_codes[self._y_order])

    @cached_property
    def bits(self) -> list[tuple[Index, NDArray[np.bool_], Index]]:
        """For each bit of `y_codes`: an order of the pairs in which those that agree above it stand
        together, whether each has the bit, and where each such run begins.
        """
        passes = []
        for bit in range(max(len(self.y) - 1, 0).bit_length()):
            above = self.y_codes >> (bit + 1)
            order = np.argsort(above, kind="stable")
            passes.append((order, (self.y_codes[order] >> bit & 1) > 0, _starts(above[order])))
        return passes


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores as shares of the largest, to twelve digits: no correlation depends on the unit."""
    largest = np.abs(scores).max(initial=0.0)
    return np.round(scores / largest, _DIGITS) if largest > 0 else scores


def pearson(pairs: Pairs, counts: FloatArray) -> FloatArray:
    """Pearson's correlation where each pair stands `counts` times, (B, C) -> (B,)."""
    x = (pairs.x - pairs.x.mean())[pairs.x_codes]
    y = (pairs.y - pairs.y.mean())[pairs.y_codes]
    total, *means = (counts @ np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y])).T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y, square_x, square_y, product = (part / total for part in means)
    spreads = []
    for mean, square in ((mean_x, square_x), (mean_y, square_y)):
        variance = square - mean**2
        spreads.append(np.where(variance > _CONSTANT * square, variance, 0.0))
    return _correlation(total, product - mean_x * mean_y, *spreads)


def spearman(pairs: Pairs, counts: FloatArray) -> FloatArray:
    """Spearman's correlation where each pair stands `counts` times, (B, C) -> (B,)."""
    ranks, spreads = [], []
    for codes, totals in (
        (pairs.x_codes, pairs.by_x(counts)),
        (pairs.y_codes, pairs.by_y(counts)),
    ):
        centred = np.cumsum(totals, axis=1) - (totals + totals.sum(axis=1, keepdims=True)) / 2
        ranks.append(np.take(centred, codes, axis=1))
        spreads.append((totals * centred**2).sum(axis=1))
    together = (counts * ranks[0] * ranks[1]).sum(axis=1)
    return _correlation(counts.sum(axis=1), together, *spreads)


def kendall(pairs: Pairs, counts: FloatArray) -> FloatArray:
    """Kendall's tau-b where each pair stands `counts` times, (B, C) -> (B,)."""
    total = counts.sum(axis=1)
    apart_x = total**2 - (pairs.by_x(counts) ** 2).sum(axis=1)  # ordered pairs of items, like all
    apart_y = total**2 - (pairs.by_y(counts) ** 2).sum(axis=1)
    apart = apart_x + apart_y - total**2 + (counts**2).sum(axis=1)
    return _correlation(total, apart - 4.0 * _reversed(pairs, counts), apart_x, apart_y)


def _reversed(pairs: Pairs, counts: FloatArray) -> FloatArray:
    """Weighted number of pairs of items that x and y put in opposite orders, shape (B,)."""
    total = np.zeros(len(counts))
    for order, has_bit, starts in pairs.bits:
        sorted_counts = np.take(counts, order, axis=1)
        high = np.where(has_bit, sorted_counts, 0.0)
        low = sorted_counts - high
        before = np.cumsum(high, axis=1)
        total += np.einsum("bc,bc->b", low, before)
        # less what came before the run
        earlier = before[:, starts] - high[:, starts]
        total -= np.einsum("bg,bg->b", _sums_of_runs(low, starts), earlier)
    return total


def _correlation(
    total: FloatArray, together: FloatArray, spread_x: FloatArray, spread_y: FloatArray
) -> FloatArray:
    """Return the quotient, NaN for fewer than three items or a side that does not vary; shape (B,)."""
    defined = (total >= FEWEST_SCORED) & (spread_x > 0) & (spread_y > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value: FloatArray = together / np.sqrt(spread_x * spread_y)
    return np.where(defined, np.clip(value, -1.0, 1.0), np.nan)


def _starts(codes: Index) -> Index:
    return np.flatnonzero(np.diff(codes, prepend=-1))


def _sums_of_runs(values: FloatArray, starts: Index) -> FloatArray:
    """Return sums over runs of columns, shape (B, runs)."""
    if len(starts) == values.shape[1]:
        return values
    return np.add.reduceat(values, starts, axis=1)


def _over_presentations(
    statistic: Callable[[Pairs, FloatArray], FloatArray],
) -> Callable[[Outcomes], OfWeights]:
    def prepared(outcomes: Outcomes) -> OfWeights:
        if outcomes.human is None or outcomes.score is None:
            return lambda weights: np.full(len(weights), np.nan)
        # presentations in which every item has the same score are one, counted so often
        times = Counter(column.tobytes() for column in outcomes.score.T)
        tables = [
            (Pairs.of(np.frombuffer(column), outcomes.human), float(count))
            for column, count in times.items()
        ]

        def value(weights: FloatArray) -> FloatArray:
            total, defined = np.zeros(len(weights)), np.zeros(len(weights))
            for pairs, count in tables:
                if not len(pairs.starts):
                    continue
                own = statistic(pairs, pairs.counts(weights))
                total += count * np.where(np.isnan(own), 0.0, own)
                defined += count * ~np.isnan(own)
            total[defined == 0] = np.nan
            return total / np.maximum(defined, 1.0)

        return value

    return prepared


def _counted(outcomes: Outcomes) -> FloatArray:
    """1 for an item with a human score and a score in any presentation, shape (I, 1)."""
    return np.column_stack([outcomes.scored.any(axis=1)]).astype(np.float64)


SPEARMAN = Metric(
    title="Spearman ρ",
    meaning="rank correlation of the scores with the human scores over items (ties: average ranks), "
    "mean over the presentations",
    statistics=_counted,
    weighted=_over_presentations(spearman),
    undefined="in no presentation do both the scores and the human scores vary",
    needs=(Need.HUMAN, Need.SCORE, Need.ENOUGH, Need.HUMAN_VARIES, Need.SCORE_VARIES),
    better=1,
    compared="jointly",
    limits=correlation,
    optional=True,
)

PEARSON = replace(
    SPEARMAN,
    title="Pearson r",
    meaning="linear correlation of the scores with the human scores over items, mean over the "
    "presentations",
    weighted=_over_presentations(pearson),
    compared="paired",
)

KENDALL = replace(
    PEARSON,
    title="Kendall τ-b",
    meaning="share of pairs of items in the same order by scores and human scores minus share in "
    "opposite order, corrected for ties; mean over the presentations",
    weighted=_over_presentations(kendall),
)
