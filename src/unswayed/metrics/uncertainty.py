"""Item-clustered bootstrap: resample items with all their presentations.

The presentations of one item are not independent: an interval over single calls is several times
too narrow (150 items x 24 orders: it covers 49% instead of 95%). So items are drawn with
replacement, 1 000 times, and the 2.5% and 97.5% quantiles of the values are the interval,
conditional on fitted parameters.

A resample enters a metric only through sums of per-item statistics. Where few answer patterns occur
the counts of the patterns are drawn (multinomial, exact); elsewhere items are drawn block by block
and the sums are matrix products. Both are the same distribution.

Three rules go beyond the plain percentile interval. It always contains its own value. Where all
items are alike (0 of 200 unparsed, every item consistent) a bootstrap has width zero, which would
claim certainty: `alike_interval` takes its place for means over items, and other quantities get
none. And where few items differ from a limit (6 of 150 inconsistent) its quantiles cover 89 to 93%:
`exact_interval` takes its place.

The difference of two means over the same items has no use for a bootstrap: `paired_difference`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.base.quantiles import NORMAL, TAIL, expanded_tail, student
from unswayed.metrics.metric import Ends, Limits
from unswayed.metrics.moments import EXACT_UP_TO
from unswayed.metrics.patterns import unique_rows
from unswayed.model.decisions import Estimate, FloatArray
from unswayed.model.decisions.clusters import Clusters

FEW: Final = 10.0
"""Items away from a limit below which quantiles of resamples are too coarse for a rate."""

SMALL: Final = 7
"""Items below which the spread of resamples is that of too few to be believed (coverage 71 to 92%)."""

TOO_FEW: Final = "too few differ"
ONE: Final = "1 question"
UNDEFINED: Final = "too many resamples are undefined"
"""Why there is no interval."""

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
    """Draw sums of statistics, (P, k) by pattern, over as many items as each resample draws with
    replacement from the `counts` of the patterns; (B,) -> (B, k).
    """
    if _drawn_by_pattern(counts):
        return _by_pattern(statistics, counts, draws, generator)
    return _by_item(np.repeat(statistics, counts, axis=0), draws, generator)


def _drawn_by_pattern(counts: NDArray[np.int64]) -> bool:
    """Return True if there are so few patterns, (P,), that drawing their counts is the shorter way."""
    return len(counts) * _PATTERN_COST <= int(counts.sum())


def fewer_rows(
    statistics: FloatArray, counts: NDArray[np.int64]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Statistics and counts of patterns, those with the same statistics together if that many are
    too many to draw by pattern, which is the same law with other draws.

    Up to 5 000 items are drawn one by one all the same, so that figures of small sets stay.
    """
    if counts.sum() <= EXACT_UP_TO or _drawn_by_pattern(counts):
        return statistics, counts
    first, kind = unique_rows(np.ascontiguousarray(statistics).view(np.int64))
    return statistics[first], np.bincount(kind, weights=counts).astype(np.int64)


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


def drawn_weights(
    draws: NDArray[np.int64], items: int, generator: np.random.Generator
) -> FloatArray:
    """Draw items with replacement, given the draws, (B,), and count each item, shape (B, I)."""
    cell = np.repeat(np.arange(len(draws)) * items, draws)
    cell += generator.integers(0, items, int(draws.sum()))
    counts = np.bincount(cell, minlength=len(draws) * items)
    return counts.reshape(len(draws), items).astype(np.float64)


def _draw_below(size: int, count: int, generator: np.random.Generator) -> NDArray[np.uint16]:
    if size == _BLOCK:
        return generator.integers(0, 1 << 16, count, dtype=np.uint16) & np.uint16(_BLOCK - 1)
    return generator.integers(0, size, count, dtype=np.uint16)


def interval(value: float, samples: FloatArray, *, n_items: int, limits: Limits | None) -> Ends:
    """Return the 95% interval of a value from its bootstrap values, (B,); `limits` are those of a mean
    over items.

    Else why none can be given: there is one item, the items are all alike and the value is not a
    mean over them, half of the resamples leave it undefined, or it is infinite in so many that an
    end of the interval is.
    """
    if n_items == 1:
        return ONE
    defined = samples[~np.isnan(samples)]
    finite = defined[np.isfinite(defined)]
    infinite = len(defined) - len(finite)
    if len(defined) * 2 <= len(samples) or infinite > len(defined) * expanded_tail(n_items):
        return UNDEFINED
    defined = np.where(np.isfinite(defined), defined, finite.max())  # beyond both quantiles
    if defined.max() - defined.min() <= 1e-12 * max(1.0, abs(value)):
        return TOO_FEW if limits is None else alike_interval(value, n_items, limits)
    if n_items < SMALL:
        return TOO_FEW if limits is None else exact_interval(value, n_items, limits)
    if limits is not None:
        # the spread of resamples is known to sqrt(2 / B), so a rate keeps its own number
        items = equivalent_items(value, defined, limits)
        items = items if items > n_items * (1.0 + 4.0 * (2.0 / len(defined)) ** 0.5) else n_items
        if near_limit(value, items, limits):
            return exact_interval(value, items, limits)
    return percentile_interval(value, defined, n_items=n_items)


def equivalent_items(value: float, samples: FloatArray, limits: Limits) -> float:
    """Return the number of items at which a rate varies as much as the samples; fractions vary less than a rate."""
    low, high = limits
    share = (value - low) / (high - low)
    return share * (1.0 - share) * (high - low) ** 2 / float(samples.var())


def near_limit(value: float, items: float, limits: Limits) -> bool:
    """Return True if so few of the items differ from a limit that quantiles of resamples are too coarse."""
    low, high = limits
    return min(value - low, high - value) / (high - low) * items < FEW


def percentile_interval(
    value: float, samples: FloatArray, *, n_items: int | None = None
) -> tuple[float, float]:
    """Return the quantiles of bootstrap values, shape (B,), widened to contain the value itself.

    `n_items`, the items of a resample, moves the quantiles out (`expanded_tail`).
    """
    tail = TAIL if n_items is None else expanded_tail(n_items)
    low, high = np.quantile(samples, [tail, 1.0 - tail], method="linear")
    return min(float(low), value), max(float(high), value)


def alike_interval(
    value: float, n_items: int, limits: Limits, tail: float = TAIL
) -> tuple[float, float]:
    """Return an interval for the mean of items that are all alike.

    If more than a share u = 1 - 0.025^(1/n) of all items were different, n items alike would be
    seen less than 2.5% of the time; those that differ can be as far away as the limits. For a rate
    observed 0 of n times this is the exact (Clopper-Pearson) interval [0, u], about 3.7 / n.
    """
    share = 1.0 - tail ** (1.0 / max(n_items, 1))
    low, high = limits
    return value - share * (value - low), value + share * (high - value)


def exact_interval(
    value: float, items: float, limits: Limits, tail: float = TAIL
) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a mean, taken as a rate between its limits. Items are more,
    and not whole, where they vary less than a rate does.
    """
    from scipy.special import betaincinv

    low, high = limits
    hits = items * (value - low) / (high - low)
    misses = items - hits
    ends = (
        float(betaincinv(hits, misses + 1.0, tail)) if hits > 0 else 0.0,
        float(betaincinv(hits + 1.0, misses, 1.0 - tail)) if misses > 0 else 1.0,
    )
    return low + ends[0] * (high - low), low + ends[1] * (high - low)


def paired_difference(
    differences: FloatArray,
    counts: NDArray[np.int64] | None = None,
    *,
    span: float,
    clusters: Clusters | None = None,
    critical: float = NORMAL,
) -> Estimate:
    """Estimate the mean of paired differences, (P,), each of `counts` items (one by default) and at most
    `span`, those of a cluster as one, with an interval that holds where few items differ.

    The mean and its standard error with one item more on each side of 0, which differ as much as
    the one that differs most, so that a handful of items that all differ one way do not look like a
    law; `critical` errors to each side (more than the normal quantile for simultaneous intervals),
    widened as Student's t is; none of one item. For differences of -1, 0 and 1 that is Bonett and
    Price's interval, which excludes 0 where the exact sign test does: at 6 against 0, 8 against 1,
    10 against 2. Turning the differences round turns it round exactly.

    Source: Bonett and Price (2012), Statistics in Medicine 31, 1120, for the proportions.
    """
    n = len(differences) if counts is None else int(counts.sum())
    differences, counts = entries_of(differences, clusters, counts)
    # sums over sizes, gains less losses, so that a difference and its mirror mirror exactly
    sizes, kind = np.unique(np.abs(differences), return_inverse=True)
    up = np.where(differences > 0, counts, 0)
    gains = np.bincount(kind, weights=up, minlength=len(sizes)).astype(np.float64)
    losses = np.bincount(kind, weights=counts - up, minlength=len(sizes)).astype(np.float64)
    items = int(counts.sum())
    value = float(sizes @ (gains - losses)) / items
    if items == 1:
        return Estimate(value=value, n=n, reason=ONE)
    if np.count_nonzero(gains) + np.count_nonzero(losses) == 1:
        low, high = alike_interval(value, items, (-span, span))
    else:
        centre = float(sizes @ (gains - losses)) / (items + 2)
        most = float(sizes[gains + losses > 0].max())
        square = (float(sizes**2 @ (gains + losses)) + 2.0 * most**2) / (items + 2)
        spread = float(np.sqrt((square - centre**2) / (items + 1)))
        reach = critical * spread * student(items) / NORMAL
        low, high = centre - reach, centre + reach
    low, high = min(max(low, -span), value), max(min(high, span), value)
    return Estimate(value=value, low=low, high=high, n=n)


def entries_of(
    values: FloatArray, clusters: Clusters | None, counts: NDArray[np.int64] | None
) -> tuple[FloatArray, NDArray[np.int64]]:
    """One value per item, or per cluster, and how many items have it, one each by default."""
    if clusters is not None and (own := clusters.alone()):
        values, counts = own.entries(values), None
    return values, np.ones(len(values), dtype=np.int64) if counts is None else counts
