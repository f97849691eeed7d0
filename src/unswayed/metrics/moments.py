"""Means and spread of per-item statistics: all that a bootstrap of the sums of many items needs.

The sum of n items drawn with replacement has mean n m and covariance S, the scatter of the items'
statistics around their mean m, and is normal where n is large. Metrics of continuous quantities are
maps of such sums, so normal draws through the same map replace drawn items. The scatter is kept around
the mean, where no digits cancel.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions import FloatArray

EXACT_UP_TO: Final = 5_000
"""Most items that count for which items are drawn one by one."""

FEWEST_EFFECTIVE: Final = 200
"""Effective items below which items are drawn one by one, however many count."""

_ROUNDING: Final = 1e-13
"""Share of the largest spread below which one is rounding: its root would be 1e-8 of a sum."""


def resampled_sums(
    statistics: FloatArray, draws: NDArray[np.int64], generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of statistics, (I, k) -> (k,), and sums over as many items as each resample draws,
    (B,) -> (B, k), as a normal distribution has them.

    The root of the covariance is symmetric, so a small change of the covariance changes the draws
    little.
    """
    # in rows numpy adds pairwise, with no rounding that grows
    mean = np.ascontiguousarray(statistics.T).mean(axis=1)
    sums, share = len(statistics) * mean, draws[:, None] / len(statistics)
    apart = statistics - mean
    spread, directions = np.linalg.eigh(apart.T @ apart)
    spread[spread < _ROUNDING * spread[-1]] = 0.0
    root = (directions * np.sqrt(spread)) @ directions.T
    noise = generator.standard_normal((len(draws), len(mean))) @ root
    return sums, share * sums + np.sqrt(share) * noise


def effective_items(statistics: FloatArray) -> float:
    """Return the number of items behind the spread, in the column where it is lowest, (I, k) -> ().

    `(sum d^2)^2 / sum d^4` over the deviations d from the mean: a third of the items where these are
    normal, about m where m of very many differ from the rest. Infinite where nothing differs.
    """
    fewest = np.inf
    for column in np.ascontiguousarray(statistics.T):  # one by one, in less memory
        squares = (column - column.mean()) ** 2
        spread, fourth = squares.sum(), (squares**2).sum()
        if spread > _ROUNDING * (column**2).sum():
            fewest = min(fewest, float(spread**2 / fourth))
    return fewest
