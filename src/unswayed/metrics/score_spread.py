"""Effect of the order of the levels on the score of an item.

`within_item_sd` is how far the scores of one item lie apart under several presentations, and
`score_shift` what its own order adds, in points of the scale. Shares by position (`position_rate`)
say neither: they do not know which level stood where.

Source: the standard deviation within items of arXiv 2602.02219, which does not state ddof (ours is
1); the shift is ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unswayed.metrics.metric import Metric, Need, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray, sd_of_rows


def _deviations(outcomes: Outcomes) -> FloatArray:
    """1 and the sd (ddof 1) of the item's scores; shape (I, 2). It takes two scores."""
    deviations = sd_of_rows(_scores(outcomes))
    return item_means(deviations, ~np.isnan(deviations))


def _shifts(outcomes: Outcomes) -> FloatArray:
    """1 and the score in the item's own order less its mean score; (I, 2). It takes all scores."""
    scores = _scores(outcomes)
    has_own = outcomes.shown[0].order == tuple(range(outcomes.n))  # of recorded answers it may lack
    whole = ~np.isnan(scores).any(axis=1) & (outcomes.n_views > 1) & has_own
    return item_means(scores[:, 0] - scores.mean(axis=1), np.asarray(whole, dtype=np.bool_))


def _scores(outcomes: Outcomes) -> FloatArray:
    """Scores of permutable items, NaN elsewhere; shape (I, V)."""
    if outcomes.score is None:
        return np.full(outcomes.choices.shape, np.nan)
    return np.where(outcomes.permutable[:, None], outcomes.score, np.nan)


WITHIN_ITEM_SD = Metric(
    title="Score sd within items",
    meaning="standard deviation of an item's scores over the presentations, mean over items",
    statistics=_deviations,
    undefined="no item has scores under two presentations",
    needs=(Need.SCORE, Need.ORDERS, Need.PERMUTABLE),
    better=-1,
    compared="paired",
    constructed=True,
    across=True,
    optional=True,
)

SCORE_SHIFT = replace(
    WITHIN_ITEM_SD,
    title="Score shift",
    meaning="score of an item in its own order minus its mean over the presentations; mean over items",
    statistics=_shifts,
    undefined="no item has a score under every presentation, its own order among them",
    better=0,
    compared="no",
)
