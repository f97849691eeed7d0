"""Intraclass correlation of the judge's probability over presentations, and its spread.

The score of an item under a presentation is P(candidate 0) for two candidates and P(gold candidate)
for more. Two-way analysis of variance, items x presentations; with I items and k presentations
`ICC(2,k) = (MSR - MSE) / (MSR + (MSC - MSE) / I)` and `ICC(3,k) = (MSR - MSE) / MSR` (Shrout and
Fleiss 1979; "ICC(A,k)" and "ICC(C,k)" in pingouin 0.7). CalibraEval prints other formulas; its code
calls these. Items without all probabilities are left out. Where items differ so much less than
presentations do that the denominator is not above 0, disagreement would give values above 1: null.

ICC does not see a common shift or scale: a judge collapsed to 0.5 +- a little can have 0.94. So
`score_sd`, the standard deviation of all the scores, is always shown beside it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rare import of_agreement
from unswayed.model.decisions import BoolArray, FloatArray

_ROUNDING: Final = 1e-13
"""Share of a sum of squares below which what is left of it is rounding."""


def _squares(outcomes: Outcomes) -> FloatArray:
    """1, mean, squared mean, sum of squares within, and the scores; shape (I, 4 + V)."""
    scores, used = _scores(outcomes)
    safe = np.where(used[:, None], scores, 0.0)
    mean = safe.mean(axis=1) if outcomes.n_views else np.zeros(len(outcomes))
    within = ((safe - mean[:, None]) ** 2).sum(axis=1)
    return np.column_stack([used, mean, mean**2, within, safe])


def absolute_agreement(sums: FloatArray) -> FloatArray:
    """ICC(2,k) from sums of `_squares`, shape (B,)."""
    between, columns, error = mean_squares(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = between + (columns - error) / sums[:, 0]
        value: FloatArray = (between - error) / whole
    return np.where((between > 0) & (whole > 0), value, np.nan)  # else above 1, by disagreement


def shifted_agreement(sums: FloatArray) -> FloatArray:
    """ICC(3,k) from sums of `_squares`, shape (B,)."""
    between, _, error = mean_squares(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        value: FloatArray = (between - error) / between
    return np.where(between > 0, value, np.nan)


def spread(sums: FloatArray) -> FloatArray:
    """Return the population standard deviation of the scores from sums of `_squares`, shape (B,)."""
    views = sums.shape[1] - 4
    with np.errstate(invalid="ignore", divide="ignore"):
        items = np.where(sums[:, 0] > 0, sums[:, 0], np.nan)
        square = sums[:, 2] / items + sums[:, 3] / (items * views)
        variance = square - (sums[:, 1] / items) ** 2
        deviation: FloatArray = np.sqrt(np.where(variance <= _ROUNDING * square, 0.0, variance))
    return deviation


def mean_squares(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean squares MSR of items, MSC of presentations and MSE of error from the sums of `_squares`,
    (B,) each.

    MSR is exactly 0 where the items' means are equal up to rounding, and NaN for fewer than two
    items.
    """
    views = sums.shape[1] - 4
    items = np.where(np.rint(sums[:, 0]) >= 2, sums[:, 0], np.nan)  # mean times n is not whole
    grand = sums[:, 1] / items
    rows = sums[:, 2] - items * grand**2
    rows = np.where(
        rows > _ROUNDING * np.abs(sums[:, 2]), views * rows, np.where(items >= 2, 0.0, np.nan)
    )
    columns = items * ((sums[:, 4:] / items[:, None] - grand[:, None]) ** 2).sum(axis=1)
    error = np.maximum(sums[:, 3] - columns, 0.0)
    return rows / (items - 1), columns / (views - 1), error / ((items - 1) * (views - 1))


def _scores(outcomes: Outcomes) -> tuple[FloatArray, BoolArray]:
    """P(candidate 0) or P(gold) of every item and presentation, and the items that have all."""
    if outcomes.probs is None:
        return np.zeros((len(outcomes), outcomes.n_views)), np.zeros(len(outcomes), dtype=np.bool_)
    used = outcomes.complete
    if outcomes.n == 2:
        scores = outcomes.probs[:, :, 0]
    else:
        right = outcomes.gold.argmax(axis=1)
        scores = np.take_along_axis(outcomes.probs, right[:, None, None], axis=2)[:, :, 0]
        used = used & (outcomes.gold_kind == GOLD_ONE)
    return scores, np.asarray(used & ~np.isnan(scores).any(axis=1), dtype=np.bool_)


ICC2K = Metric(
    title="ICC(2,k)",
    meaning="agreement of probabilities between presentations; shifts count as disagreement",
    statistics=_squares,
    values=absolute_agreement,
    undefined="fewer than two items with every probability (and, for more than two candidates, one "
    "right candidate), or scores that do not differ between items",
    needs=(Need.PROBS, Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    better=1,
    constructed=True,
    interval=partial(of_agreement, absolute_agreement),
)

ICC3K = replace(
    ICC2K,
    title="ICC(3,k)",
    meaning="agreement of probabilities between presentations; shifts are ignored",
    values=shifted_agreement,
    interval=partial(of_agreement, shifted_agreement),
)

SCORE_SD = replace(
    ICC2K,
    title="Score sd",
    meaning="standard deviation of the probabilities behind the ICC; near 0, the ICC means little",
    values=spread,
    undefined="no item has every probability",
    better=0,
    constructed=False,
    interval=None,
)
