"""95% intervals of learned numbers that cover as often as they say, or none.

A percentile interval of the bootstrap is too narrow for few items: it takes the items' spread for
the truth's. Means get the bootstrap-t interval, which also follows their skewness; everything else
percentiles whose levels are widened to what Student's t makes of them (the expanded percentile
interval, Hesterberg 2015). Below `FEWEST` items, where skewed answers still escape both, there is
none. Medians need no bootstrap: how often each side of the true one is seen is binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.base.quantiles import expanded_tail, student
from unswayed.model.decisions import Clusters, FloatArray

FEWEST: Final = 60
"""Estimation items below which a bootstrap interval is not given."""


def expanded_levels(count: int) -> tuple[float, float]:
    """Percentiles of the bootstrap between which the mean of `count` items lies in 95%."""
    outside = 100 * expanded_tail(count)
    return outside, 100 - outside


def mean_interval(
    values: FloatArray, *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """95% bootstrap-t intervals of the means over items, (I, F) -> low and high, (F,) each."""
    rows = len(values)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(rows, np.full(rows, 1 / rows), resamples) / rows
    mean = values.mean(axis=0)
    centred = values - mean
    error = np.sqrt((centred**2).mean(axis=0) / (rows - 1))
    means = weights @ centred
    errors = np.sqrt(np.maximum(weights @ centred**2 - means**2, 0) / (rows - 1))
    # a resample of nearly equal values would put the mean infinitely far away
    deviates = means / np.maximum(errors, np.maximum(error / 10, 1e-300))
    below, above = np.percentile(deviates, (2.5, 97.5), axis=0)
    return mean - above * error, mean - below * error


def expanded_interval(
    statistic: Callable[[NDArray[np.intp]], FloatArray],
    clusters: Clusters,
    *,
    resamples: int,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """95% expanded percentile intervals of numbers, low and high of shape (F,) each, that
    `statistic` computes from the rows of some items.
    """
    rng = np.random.default_rng(seed)
    draws = [statistic(clusters.drawn(rng)) for _ in range(resamples)]
    low, high = np.percentile(np.stack(draws), expanded_levels(clusters.count), axis=0)
    return low, high


def median_interval(
    values: FloatArray, clusters: Clusters | None = None
) -> tuple[float, float] | None:
    """Return the 95% interval of the median of all values, shape (I, 2): one pair per item. None where
    even the outermost value is not rejected (4 items or fewer).

    An item with both values above the true median is as likely as one with both below it, so the
    numbers of such items are binomial: the interval holds every split that a two-sided sign test
    (mid-p) does not reject. It assumes nothing about the distribution. Of items that share clusters
    the difference of these numbers is held against its spread over clusters.
    """
    from scipy.special import bdtr

    points = np.sort(values.ravel())
    over = values.min(axis=1)[:, None] > points
    under = values.max(axis=1)[:, None] <= points
    above, below = over.sum(axis=0), under.sum(axis=0)
    less, both = np.minimum(above, below), above + below
    tail = bdtr(less, both, 0.5)
    lower = np.where(less > 0, bdtr(np.maximum(less - 1, 0), both, 0.5), 0.0)
    kept = np.flatnonzero(tail + lower > 0.05)  # twice (tail + lower) / 2
    if clusters is not None and clusters.count < len(values):
        spread = np.sqrt((clusters.sums(over.astype(float) - under) ** 2).sum(axis=0))
        kept = np.flatnonzero(abs(above - below) <= student(clusters.count) * spread)
    if not len(kept) or kept[-1] + 1 == len(points):
        return None
    return float(points[kept[0]]), float(points[kept[-1] + 1])
