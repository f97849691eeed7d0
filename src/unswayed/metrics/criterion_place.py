"""Effect of a criterion's place in the list on its score.

The score of an item under each order of the criteria, less the item's mean over them, by the place of
its criterion: 0 everywhere if the order does not matter. In values of the scale, over items with a
score in every order.
"""

from __future__ import annotations

import numpy as np

from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import BoolArray, FloatArray


def _by_place(outcomes: Outcomes) -> FloatArray:
    """1 for an item that counts; deviations and scores at each place; shape (I, 1 + 2m)."""
    score, places = outcomes.score, outcomes.places
    if score is None or places is None:
        return np.zeros((len(outcomes), 1))
    m = max(int(places.max(initial=0)) + 1, 1)
    counted: BoolArray = ~np.asarray(np.isnan(score).any(axis=1)) & (places >= 0).all(axis=1)
    apart = np.where(counted[:, None], score - score.mean(axis=1, keepdims=True), 0.0)
    at_place = (places[:, :, None] == np.arange(m)) & counted[:, None, None]
    moved = (apart[:, :, None] * at_place).sum(axis=1)
    return np.column_stack([counted, moved, at_place.sum(axis=1)])


def _means(sums: FloatArray) -> FloatArray:
    """Mean deviation at each place, (B, m); NaN where nothing stood there."""
    m = (sums.shape[1] - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        means: FloatArray = sums[:, 1 : 1 + m] / sums[:, 1 + m :]
    return means[:, 0] if m == 1 else means


CRITERION_PLACE = Metric(
    title="Places of the criterion",
    meaning="score of a criterion at each place in the list of criteria, the first one first, minus "
    "its mean over the orders; 0 each without bias",
    statistics=_by_place,
    values=_means,
    undefined="no item has a score in every order of the criteria",
    needs=(Need.SCORE, Need.PLACES),
    constructed=True,
    optional=True,
)
