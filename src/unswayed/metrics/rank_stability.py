"""Stability of the candidates' ranking under a change of presentation.

The rankings of one item under every two presentations are compared with Kendall's tau-b over the
candidates that have a score in both: 1 if every pair of candidates is in the same order, -1 if every
pair is reversed. Where one side has no order at all (all candidates tied) nothing is compared.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from unswayed.metrics.metric import Metric, Need, correlation, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray

_ROUNDING: Final = 1e-9
"""Scores that differ by less are tied: means over several orders round differently."""

_ENTRIES: Final = 1 << 20
"""Comparisons that are held at a time: 8 MB."""


def rank_agreement(scores: FloatArray) -> FloatArray:
    """Mean tau-b between the rankings of each item under every two presentations, (I, V, n) ->
    (I,); NaN where no two can be compared.
    """
    items, views, n = scores.shape
    first, second = np.array(list(itertools.combinations(range(n), 2))).T
    mean = np.full(items, np.nan)
    size = max(1, _ENTRIES // (views * max(views, len(first))))
    for start in range(0, items, size):
        part = scores[start : start + size]
        apart = part[:, :, first] - part[:, :, second]
        both = (~np.isnan(apart)).astype(np.float64)
        signs = np.sign(np.where(np.abs(apart) > _ROUNDING, apart, 0.0))
        untied = signs**2
        alike = signs @ signs.transpose(0, 2, 1)
        sides = untied @ both.transpose(0, 2, 1)  # pairs untied in v that are known in w
        spread = np.sqrt(sides * sides.transpose(0, 2, 1))
        compared = (spread > 0) & np.triu(np.ones((views, views), dtype=np.bool_), k=1)
        taus = np.where(compared, alike / np.where(compared, spread, 1.0), 0.0)
        count = compared.sum(axis=(1, 2))
        own = taus.sum(axis=(1, 2)) / np.maximum(count, 1)
        mean[start : start + size] = np.where(count > 0, own, np.nan)
    return mean


def _stability(outcomes: Outcomes) -> FloatArray:
    """1 and the item's mean tau-b, shape (I, 2)."""
    if outcomes.scores is None:
        return np.zeros((len(outcomes), 2))
    agreement = rank_agreement(outcomes.scores)
    return item_means(agreement, outcomes.permutable & ~np.isnan(agreement))


RANK_STABILITY = Metric(
    title="Rank stability",
    meaning="Kendall's tau-b between the rankings of the candidates under every two presentations, "
    "mean over items; 1 if the ranking is always the same",
    statistics=_stability,
    undefined="no item has two rankings to compare",
    needs=(Need.SCORES, Need.ORDERS, Need.PERMUTABLE),
    better=1,
    compared="paired",
    constructed=True,
    limits=correlation,
    across=True,
    optional=True,
)
