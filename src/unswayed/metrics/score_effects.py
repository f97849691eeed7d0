"""Effects of an order on scores: of levels, of the candidates in a list, of the criteria asked at once.

**Levels.** `within_item_sd` is how far the scores of one item lie apart under several presentations,
and `score_shift` what its own order adds, in points of the scale. Shares by position
(`position_rate`) say neither: they do not know which level stood where.

**Lists.** `position_score` gives the points that each place is worth, whatever candidate is there:
the score of the candidate at a position less that candidate's own mean score over the presentations,
mean over the presentations and over the items: 0 everywhere for a judge who scores what is said. The
values have the sum 0. Over a set of orders that does not show every candidate equally often at every
position, a place is also worth what the candidates that stand there more often are.
`rank_stability` compares the rankings of one item under every two presentations, with Kendall's tau-b
over the candidates that have a score in both: 1 if every pair of candidates is in the same order, -1
if every pair is reversed. Where one side has no order at all (all candidates tied) nothing is compared.

**Criteria.** `criterion_place` is the score of an item under each order of the criteria, less the
item's mean over them, by the place of its criterion: 0 everywhere if the order does not matter. In
values of the scale, over items with a score in every order.

Source: the standard deviation within items of arXiv 2602.02219, which does not state ddof (ours is
1); the others are ours.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final

import numpy as np

from unswayed.metrics.metric import Metric, Need, correlation, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import BoolArray, FloatArray, sd_of_rows

_ROUNDING: Final = 1e-9
"""Scores that differ by less are tied: means over several orders round differently."""

_ENTRIES: Final = 1 << 20
"""Comparisons that are held at a time: 8 MB."""


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


def _points_by_position(outcomes: Outcomes) -> FloatArray:
    """1 and the points of each position, shape (I, 1 + n). It takes all scores of an item."""
    if outcomes.scores is None:
        return np.zeros((len(outcomes), 1 + outcomes.n))
    scores = outcomes.scores
    whole = ~np.isnan(scores).any(axis=(1, 2)) & outcomes.permutable & (outcomes.n_views > 1)
    apart = scores - scores.mean(axis=1, keepdims=True)
    candidates = np.argsort(outcomes.positions_by_candidate, axis=1)  # [v, p] = candidate at p
    points = np.take_along_axis(apart, candidates[None], axis=2).mean(axis=1)
    return np.column_stack([whole.astype(np.float64), np.where(whole[:, None], points, 0.0)])


def _by_criterion_place(outcomes: Outcomes) -> FloatArray:
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


def _means_by_place(sums: FloatArray) -> FloatArray:
    """Mean deviation at each place, (B, m); NaN where nothing stood there."""
    m = (sums.shape[1] - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        means: FloatArray = sums[:, 1 : 1 + m] / sums[:, 1 + m :]
    return means[:, 0] if m == 1 else means


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

POSITION_SCORE = Metric(
    title="Points by position",
    meaning="score of a candidate at each position, the first one first, minus its own mean over the "
    "presentations; mean over items; 0 each without bias",
    statistics=_points_by_position,
    undefined="no item has every score under every presentation",
    needs=(Need.SCORES, Need.ORDERS, Need.PERMUTABLE),
    constructed=True,
    optional=True,
)

CRITERION_PLACE = Metric(
    title="Places of the criterion",
    meaning="score of a criterion at each place in the list of criteria, the first one first, minus "
    "its mean over the orders; 0 each without bias",
    statistics=_by_criterion_place,
    values=_means_by_place,
    undefined="no item has a score in every order of the criteria",
    needs=(Need.SCORE, Need.PLACES),
    constructed=True,
    optional=True,
)

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
