"""Item-clustered bootstrap: resample items with all their presentations.

The presentations of one item are not independent: an interval over single calls is several times
too narrow (150 items x 24 orders: it covers 49 % instead of 95 %). So items are drawn with
replacement, 1 000 times, and the 2.5 % and 97.5 % quantiles of the values are the interval,
conditional on fitted parameters.

A resample enters a metric only through sums of per-item statistics. Where few answer patterns occur
the counts of the patterns are drawn (multinomial, exact); elsewhere items are drawn block by block
and the sums are matrix products. Both are the same distribution.

Two rules go beyond the plain percentile interval. It always contains its own value. And where all
items are alike (0 of 200 unparsed, every item consistent) a bootstrap has width zero, which would
claim certainty: `alike_interval` takes its place for means over items, and other quantities get
none.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.metrics.protocol import FloatArray

__all__ = ["alike_interval", "interval", "percentile_interval", "resample_sums"]

_TAIL: Final = 0.025
"""Probability left out on each side of a 95 % interval."""

_BLOCK: Final = 8192
"""Items drawn at a time; a power of two, so that 16 random bits give a draw without rejection."""
_CHUNK: Final = 32
"""Resamples per matrix product: block x chunk of float64 is 2 MB, which stays in cache."""
_PATTERN_COST: Final = 18
"""Drawing one pattern's count takes about as long as drawing this many single items (measured)."""


def resample_sums(
    statistics: FloatArray,
    counts: NDArray[np.int64],
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> FloatArray:
    """Sums of statistics over items drawn with replacement.

    Args:
        statistics: One row per pattern, shape (P, k).
        counts: Items of each pattern, shape (P,); not all 0.
        draws: Items to draw in each resample, shape (B,).
        generator: Source of randomness.

    Returns:
        Shape (B, k).
    """
    items = int(counts.sum())
    if len(counts) * _PATTERN_COST <= items:
        return _by_pattern(statistics, counts, draws, generator)
    return _by_item(np.repeat(statistics, counts, axis=0), draws, generator)


def _by_pattern(
    statistics: FloatArray,
    counts: NDArray[np.int64],
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> FloatArray:
    shares = counts / counts.sum()
    chunk = max(1, 2_000_000 // max(len(counts), 1))
    sums = np.empty((len(draws), statistics.shape[1]))
    for start in range(0, len(draws), chunk):
        part = draws[start : start + chunk]
        drawn = generator.multinomial(part, shares, size=len(part))
        sums[start : start + chunk] = drawn.astype(float) @ statistics
    return sums


def _by_item(
    statistics: FloatArray, draws: NDArray[np.int64], generator: np.random.Generator
) -> FloatArray:
    """Draw how many items fall into each block, then the items within the blocks."""
    items = len(statistics)
    sizes = np.full(-(-items // _BLOCK), _BLOCK, dtype=np.int64)
    sizes[-1] = items - _BLOCK * (len(sizes) - 1)
    per_block = generator.multinomial(draws, sizes / items, size=len(draws))
    sums = np.zeros((len(draws), statistics.shape[1]))
    for block, size in enumerate(sizes):
        rows = np.ascontiguousarray(statistics[block * _BLOCK : block * _BLOCK + size])
        for start in range(0, len(draws), _CHUNK):
            wanted = per_block[start : start + _CHUNK, block]
            cell = np.repeat(np.arange(len(wanted)) * size, wanted)
            cell += _draw_below(int(size), int(wanted.sum()), generator)
            weights = np.bincount(cell, minlength=len(wanted) * int(size))
            sums[start : start + _CHUNK] += weights.reshape(len(wanted), -1).astype(float) @ rows
    return sums


def _draw_below(size: int, count: int, generator: np.random.Generator) -> NDArray[np.uint16]:
    if size == _BLOCK:
        return generator.integers(0, 1 << 16, count, dtype=np.uint16) & np.uint16(_BLOCK - 1)
    return generator.integers(0, size, count, dtype=np.uint16)


def interval(
    value: float, samples: FloatArray, *, n_items: int, limits: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The 95 % interval of a value.

    Args:
        value: The point estimate.
        samples: Its bootstrap values, shape (B,).
        n_items: Items behind it.
        limits: Range of one item's share, if the value is a mean over items.

    Returns:
        Low and high; None where none can be given: the items are all alike and the value is not a
        mean over them, half of the resamples leave it undefined, or it is infinite in so many that
        an end of the interval is.
    """
    known = samples[~np.isnan(samples)]
    finite = known[np.isfinite(known)]
    if len(known) * 2 <= len(samples) or len(known) - len(finite) > len(known) * _TAIL:
        return None
    known = np.where(np.isfinite(known), known, finite.max())  # beyond both quantiles
    if known.max() - known.min() <= 1e-12 * max(1.0, abs(value)):
        return None if limits is None else alike_interval(value, n_items, limits)
    return percentile_interval(value, known)


def percentile_interval(value: float, samples: FloatArray) -> tuple[float, float]:
    """The quantiles of bootstrap values, shape (B,), widened to contain the value itself."""
    low, high = np.quantile(samples, [_TAIL, 1.0 - _TAIL], method="linear")
    return min(float(low), value), max(float(high), value)


def alike_interval(value: float, n_items: int, limits: tuple[float, float]) -> tuple[float, float]:
    """An interval for the mean of items that are all alike.

    If more than a share u = 1 - 0.025^(1/n) of all items were different, n items alike would be
    seen less than 2.5 % of the time; those that differ can be as far away as the limits. For a
    rate observed 0 of n times this is the exact (Clopper-Pearson) interval [0, u], about 3.7 / n.

    Args:
        value: The value every item has.
        n_items: Items observed.
        limits: Smallest and largest value an item can have.
    """
    share = 1.0 - _TAIL ** (1.0 / max(n_items, 1))
    low, high = limits
    return value - share * (value - low), value + share * (high - value)
