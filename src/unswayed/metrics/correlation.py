"""Scores against human scores: correlations of item means, spread within items, order of rankings.

For rubrics and listwise judging, where an answer is a number or a ranking. Spearman and Kendall
give tied values average ranks (tau-b); a correlation is undefined for a constant side or fewer than
three items. The spread within an item has ddof 1 over its presentations and is averaged over items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import Estimate
from unswayed.errors import ShapeError
from unswayed.metrics.protocol import FloatArray
from unswayed.metrics.uncertainty import interval, resample_sums

__all__ = [
    "Scores",
    "kendall_tau",
    "measure_scores",
    "pearson",
    "ranking_agreement",
    "spearman",
    "within_item_sd",
]

Correlation = Callable[[FloatArray, FloatArray], float]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of I items under V presentations.

    Attributes:
        item_ids: The I ids.
        scores: NaN where a presentation gave none; shape (I, V).
        human: Human scores, NaN where unknown; shape (I,). None if there are none.
    """

    item_ids: tuple[str, ...]
    scores: FloatArray
    human: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check the shapes."""
        items = len(self.item_ids)
        if self.scores.ndim != 2 or len(self.scores) != items:
            raise ShapeError(f"scores have shape {self.scores.shape} for {items} items")
        if self.human is not None and self.human.shape != (items,):
            raise ShapeError(f"human scores have shape {self.human.shape} for {items} items")

    def means(self) -> FloatArray:
        """Mean over the presentations that gave a score, NaN where none did; shape (I,)."""
        known = ~np.isnan(self.scores)
        count = known.sum(axis=1)
        total = np.where(known, self.scores, 0.0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def measure_scores(scores: Scores, *, resamples: int = 1000, seed: int = 0) -> dict[str, object]:
    """Correlations with human scores and the spread within items, with bootstrap intervals.

    Returns:
        `pearson`, `spearman`, `kendall_tau` and `within_item_sd` as estimates in dict form.
    """
    made = {"within_item_sd": within_item_sd(scores, resamples=resamples, seed=seed)}
    for name, function in _CORRELATIONS.items():
        made[name] = _correlation(scores, function, resamples=resamples, seed=seed)
    return {name: msgspec.to_builtins(estimate) for name, estimate in sorted(made.items())}


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Product-moment correlation of two lists, shape (I,); NaN if constant or fewer than 3."""
    if len(x) < 3:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x * x).sum() * (y * y).sum()))
    scale = max(float(np.abs(x).max() * np.abs(y).max()), 1e-300)
    return float((x * y).sum()) / spread if spread > 1e-12 * scale else float("nan")


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Rank correlation with average ranks for ties; NaN if constant or fewer than 3."""
    return pearson(_ranks(x), _ranks(y))


def kendall_tau(x: FloatArray, y: FloatArray) -> float:
    """Kendall's tau-b; NaN if constant or fewer than 3."""
    if len(x) < 3:
        return float("nan")
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)


_CORRELATIONS: dict[str, Correlation] = {
    "kendall_tau": kendall_tau,
    "pearson": pearson,
    "spearman": spearman,
}


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, ties at their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2.0)[inverse]
    return ranks


def _correlation(scores: Scores, function: Correlation, *, resamples: int, seed: int) -> Estimate:
    if scores.human is None:
        return Estimate(value=None, reason="no human scores")
    means = scores.means()
    used = np.flatnonzero(~np.isnan(means) & ~np.isnan(scores.human))
    x, y = means[used], scores.human[used]
    value = function(x, y)
    if np.isnan(value):
        reason = "fewer than three items" if len(x) < 3 else "one side is constant"
        return Estimate(value=None, n=len(x), reason=reason)
    generator = np.random.default_rng([seed, 3])
    samples = np.empty(resamples)
    for b in range(resamples):
        drawn = generator.integers(0, len(x), len(x))
        samples[b] = function(x[drawn], y[drawn])
    bounds = interval(value, samples, n_items=len(x), limits=None)
    low, high = bounds or (None, None)
    return Estimate(value=value, low=low, high=high, n=len(x))


def within_item_sd(scores: Scores, *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """Mean over items of the sample standard deviation (ddof 1) over presentations.

    Items with fewer than two scores are left out.
    """
    used = np.flatnonzero((~np.isnan(scores.scores)).sum(axis=1) >= 2)
    if not len(used):
        return Estimate(value=None, reason="no item has two scores")
    spread: FloatArray = np.nanstd(scores.scores[used], axis=1, ddof=1, dtype=np.float64)
    return _mean(spread, resamples=resamples, seed=seed)


def ranking_agreement(
    rankings: NDArray[np.int16], *, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """Mean over items of Kendall's tau between the rankings under each two presentations.

    Args:
        rankings: Candidates, best first; -1 throughout a ranking that is missing; shape (I, V, n).
        resamples: Bootstrap resamples of items.
        seed: Seed of the resamples.

    Returns:
        The mean over items with at least two rankings; 1 where the order never changes a ranking.
    """
    places = np.argsort(rankings, axis=2)  # places[i, v, c] = rank of candidate c
    n = rankings.shape[2]
    upper = np.triu_indices(n, k=1)
    signs = np.sign(places[:, :, upper[0]] - places[:, :, upper[1]])
    made = rankings.min(axis=2) >= 0
    signs = np.where(np.expand_dims(made, 2), signs, 0).astype(float)
    present = made.sum(axis=1)
    total = signs.sum(axis=1)
    pairs = present * (present - 1)
    used = np.flatnonzero(pairs > 0)
    if not len(used) or n < 2:
        return Estimate(value=None, reason="no item has two rankings")
    # sum over ordered pairs of presentations of s_v s_w = (sum s)^2 - sum s^2, per candidate pair
    agreement = (total**2 - (signs**2).sum(axis=1)).mean(axis=1)
    return _mean(agreement[used] / pairs[used], resamples=resamples, seed=seed, limits=(-1.0, 1.0))


def _mean(
    per_item: FloatArray,
    *,
    resamples: int,
    seed: int,
    limits: tuple[float, float] | None = None,
) -> Estimate:
    items = len(per_item)
    ones = np.ones(items, dtype=np.int64)
    draws = np.full(resamples, items, dtype=np.int64)
    generator = np.random.default_rng([seed, 4])
    samples = resample_sums(per_item[:, None], ones, draws, generator)[:, 0] / items
    value = float(per_item.mean())
    bounds = interval(value, samples, n_items=items, limits=limits)
    low, high = bounds or (None, None)
    return Estimate(value=value, low=low, high=high, n=items)
