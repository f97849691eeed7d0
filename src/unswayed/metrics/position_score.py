"""Scores by position: points that each place in a list is worth, whatever candidate is there.

The score of the candidate at a position less that candidate's own mean score over the presentations,
mean over the presentations and over the items: 0 everywhere for a judge who scores what is said. The
values have the sum 0. Over a set of orders that does not show every candidate equally often at every
position, a place is also worth what the candidates that stand there more often are.

Source: ours.
"""

from __future__ import annotations

import numpy as np

from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray


def _by_position(outcomes: Outcomes) -> FloatArray:
    """1 and the points of each position, shape (I, 1 + n). It takes all scores of an item."""
    if outcomes.scores is None:
        return np.zeros((len(outcomes), 1 + outcomes.n))
    scores = outcomes.scores
    whole = ~np.isnan(scores).any(axis=(1, 2)) & outcomes.permutable & (outcomes.n_views > 1)
    apart = scores - scores.mean(axis=1, keepdims=True)
    candidates = np.argsort(outcomes.positions_by_candidate, axis=1)  # [v, p] = candidate at p
    points = np.take_along_axis(apart, candidates[None], axis=2).mean(axis=1)
    return np.column_stack([whole.astype(np.float64), np.where(whole[:, None], points, 0.0)])


POSITION_SCORE = Metric(
    title="Points by position",
    meaning="score of a candidate at each position, the first one first, minus its own mean over the "
    "presentations; mean over items; 0 each without bias",
    statistics=_by_position,
    undefined="no item has every score under every presentation",
    needs=(Need.SCORES, Need.ORDERS, Need.PERMUTABLE),
    constructed=True,
    optional=True,
)
