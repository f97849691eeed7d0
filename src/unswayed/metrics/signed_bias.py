"""Signed bias on the log scale: how much a position or a label adds to the log-probability.

For every call the log-probabilities are centred over the candidates and read by position (or by
label); their mean over items and presentations is the bias of each position in nats, summing to 0.
For two candidates the difference of the two is the bias in logits. Content cancels only where every
candidate stands equally often at every position (carries every label equally often); elsewhere the
value is undefined, and only an additive fit separates position from label. On coupled
presentations the two lists are equal: they measure the sum of both effects.

[Ours; the additive presentation model.]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.outcomes import Outcomes, is_even
from unswayed.model.decisions import FloatArray

_FLOOR = 1e-10
"""Smallest probability: a label of probability 0 would be infinitely unlikely."""

_ROWS = 4096
"""Items at a time: their logarithms stay in cache."""


def _centred_means(outcomes: Outcomes, places: NDArray[np.intp]) -> FloatArray:
    """Item means of centred log-probabilities by place, `places[v, c]` = place of candidate c."""
    statistics = np.zeros((len(outcomes), 1 + outcomes.n))
    if outcomes.probs is None or not is_even(places):
        return statistics
    candidates = np.argsort(places, axis=1)  # [v, k] = candidate at place k
    views = np.arange(outcomes.n_views)[:, None]
    for start in range(0, len(outcomes), _ROWS):
        probs = outcomes.probs[start : start + _ROWS]
        used = outcomes.complete[start : start + _ROWS] & ~np.isnan(probs).any(axis=(1, 2))
        logs = np.log(np.maximum(probs[used], _FLOOR))
        logs -= logs.mean(axis=2, keepdims=True)
        own = statistics[start : start + _ROWS]
        own[used, 0] = 1.0
        own[used, 1:] = logs[:, views, candidates].mean(axis=1)
    return statistics


POSITION_BIAS = Metric(
    title="Position bias",
    meaning="amount that each position adds to the log-probability of a candidate, in nats",
    statistics=lambda own: _centred_means(own, own.positions_by_candidate),
    undefined="the presentations do not show every candidate equally often everywhere, or no item "
    "has every probability",
    needs=(Need.PROBS, Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    constructed=True,
    optional=True,
)

LABEL_BIAS = replace(
    POSITION_BIAS,
    title="Label bias",
    meaning="amount that each label adds to the log-probability of a candidate, in nats",
    statistics=lambda own: _centred_means(own, own.labels_by_candidate),
)
