"""Intervals that hold where few items differ, from what each unit adds to a value.

A ratio of sums, R = sum f / sum p, is a mean of entries R + (f - R p) / mean(p), one per unit, and a
unit is an item or the items that count as one; a difference of two ratios is one of the differences
of their entries. The mean of entries has the interval of `paired_difference`, which claims no
certainty where nothing differs, as quantiles of resamples do (at 0.6% discordant items of 40 they
cover 17%). Source: ours; rates in `python benchmarks/claims.py rare`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unswayed.base.quantiles import student
from unswayed.metrics.jackknife import GROUPS, jackknife
from unswayed.metrics.metric import Ends
from unswayed.metrics.uncertainty import TOO_FEW, alike_interval, paired_difference
from unswayed.model.decisions import FloatArray
from unswayed.model.decisions.clusters import Clusters

Counts = NDArray[np.int64]
"""How often each row occurs."""


def residuals(whole: FloatArray, part: FloatArray, counts: Counts) -> tuple[float, FloatArray]:
    """Return the ratio of the sums of a part and its whole, (U,) each, and what each unit departs from it."""
    total = counts @ whole
    value = float(counts @ part / total)
    return value, (part - value * whole) * (counts.sum() / total)


def _ends(entries: FloatArray, counts: Counts) -> tuple[float, float]:
    """Return the interval of the mean of entries between -1 and 1; 12 digits, or rounding would differ."""
    estimate = paired_difference(np.round(entries, 12), counts, span=1.0)
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def of_differences(statistics: FloatArray, counts: Counts) -> list[Ends]:
    """Bound a mean between -1 and 1 that is 0 without an effect."""
    value, apart = residuals(statistics[:, 0], statistics[:, 1], counts)
    return [_ends(value + apart, counts)]


def of_shares(statistics: FloatArray, counts: Counts) -> list[tuple[float, float]]:
    """Bound each column as a share of column 0.

    Several columns are bounded by their difference from an even share, so the shares of two candidates have the
    interval of their difference.
    """
    parts = statistics.T[1:]
    even = 1.0 / len(parts) if len(parts) > 1 else None
    return [_share(statistics[:, 0], part, counts, even) for part in parts]


def _share(
    whole: FloatArray, part: FloatArray, counts: Counts, even: float | None
) -> tuple[float, float]:
    value, apart = residuals(whole, part, counts)
    if not np.round(apart, 12).any():
        return alike_interval(value, int(counts.sum()), (0.0, 1.0))
    centre = value if even is None else even
    low, high = _ends(value - centre + apart, counts)
    return max(centre + low, 0.0), min(centre + high, 1.0)


def of_spread(statistics: FloatArray, counts: Counts) -> list[Ends] | None:
    """Bound half the size of the difference of two recalls, from 1, gold and hits; None for more labels."""
    if statistics.shape[1] != 5:
        return None
    recalls = [residuals(statistics[:, k], statistics[:, k + 2], counts) for k in (1, 2)]
    (first, apart_first), (last, apart_last) = recalls
    low, high = _ends(first - last + apart_first - apart_last, counts)
    return [(max(low, -high, 0.0) / 2.0, max(-low, high) / 2.0)]


def of_agreement(
    values: Callable[[FloatArray], FloatArray], statistics: FloatArray, counts: Counts
) -> list[Ends]:
    """Bound a correlation within classes: the jackknife of log(1 - value), and Student's t."""
    groups = min(len(counts), GROUPS)
    order = np.random.default_rng(0).permutation(len(counts))  # items may come sorted
    group = Clusters(order % GROUPS, groups)
    sums = group.sums(statistics * counts[:, None])

    def logs(weights: FloatArray) -> FloatArray:
        rest = 1.0 - values(weights @ sums)
        return np.log(np.where(rest > 0, rest, np.nan))

    entries = jackknife(logs, groups)
    error = float(entries.std(ddof=1) / np.sqrt(groups)) if groups > 1 else 0.0
    if not error > 1e-12:
        return [TOO_FEW]
    centre, reach = float(entries.mean()), student(groups) * error
    return [(1.0 - np.exp(centre + reach), 1.0 - np.exp(centre - reach))]
