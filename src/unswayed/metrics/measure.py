"""Measure outcomes: a row of `metrics.json`, and paired differences between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.metrics.jackknife import jackknifed
from unswayed.metrics.metric import Metric
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.pairing import jointly, paired_by_item
from unswayed.metrics.resampling import RESAMPLES, Bootstrapped, GoldTies, prepared, resample
from unswayed.metrics.rows import Row, row_of
from unswayed.metrics.table import METRICS, load_metrics
from unswayed.metrics.uncertainty import fewer_rows, paired_difference, resample_sums
from unswayed.model.decisions import Estimate, FloatArray
from unswayed.model.decisions.clusters import Clusters


def measure(
    strata: Sequence[Outcomes],
    *,
    weights: Sequence[NDArray[np.int64]] | None = None,
    names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    constructed: bool = False,
    gold_ties: GoldTies = "exclude",
) -> Row:
    """Every metric of these outcomes, one entry per number of candidates, with its 95%
    item-clustered bootstrap interval.

    `weights` say how many items each row of each stratum stands for, by default what the outcomes
    say themselves; 0 resamples give values without intervals. `constructed`: all presentations read
    the same questions, so that metrics which compare presentations (`Metric.constructed`) hold for
    any judge here, and their interval is the value. `gold_ties`: "exclude" items whose gold is a
    tie, or score the tie as a "class".

    An undefined value is None, with its reason. Where items differ in their number of candidates
    the row holds one more for each number.
    """
    if weights is not None:
        each = zip(strata, weights, strict=True)
        strata = [replace(part, weights=np.asarray(own, dtype=np.int64)) for part, own in each]
    kept = prepared(strata, gold_ties)
    return row_of(
        resample(load_metrics(names), kept, resamples=resamples, seed=seed, constructed=constructed)
    )


def difference(
    a: Sequence[Outcomes],
    b: Sequence[Outcomes],
    name: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    gold_ties: GoldTies = "exclude",
) -> Estimate:
    """Return a metric of `a` less the same metric of `b`, paired by item, with its interval.

    Items are matched by id; those that count in only one of the two are left out, and a resample
    draws the same items on both sides. `n` is the number of items compared. The value is None, with
    the reason, if one side lacks data that the metric reads, such as label probabilities.
    """
    metric = METRICS.load(name)
    pairs = paired_by_item(prepared(a, gold_ties), prepared(b, gold_ties))
    if len(pairs) > 1 and not metric.across:
        reason = "items have different numbers of candidates: compare each number by itself"
        return Estimate(value=None, reason=reason)
    for strata in zip(*pairs, strict=True):  # what one method has, and what the other
        if lacking := metric.unrecorded(strata):
            return Estimate(value=None, reason=lacking[0].lack)
    pairs = [pair for pair in pairs if not any(metric.unrecorded([side]) for side in pair)]
    if metric.weighted is not None and pairs:
        return _weighted_difference(metric, name, *pairs[0])
    one_by_one = metric.continuous or any(left.clusters is not None for left, _ in pairs)
    blocks = [_paired_statistics(metric, *pair, one_by_one=one_by_one) for pair in pairs]
    items = sum(int(counts.sum()) for _, counts, _ in blocks)
    if not items:
        return Estimate(value=None, reason=f"no item counts in {name} on both sides")
    statistics = np.vstack([block for block, _, _ in blocks])
    counts = np.concatenate([counts for _, counts, _ in blocks])
    clusters = Clusters.of_strata([(len(block), own) for block, _, own in blocks])
    least, most = metric.limits(pairs[0][0].n) if metric.limits else (-np.inf, np.inf)
    span = most - least
    # plain means on both sides: 1 and the item's value
    if np.isfinite(span) and statistics.shape[1] == 4 and (statistics[:, [0, 2]] == 1.0).all():
        apart = statistics[:, 1] - statistics[:, 3]
        return paired_difference(apart, counts, span=span, clusters=clusters)
    if clusters is not None:
        statistics = clusters.sums(statistics)
        counts = np.ones(len(statistics), dtype=np.int64)
    else:
        statistics, counts = fewer_rows(statistics, counts)
    n_draws = int(counts.sum())
    draws = np.full(resamples, n_draws, dtype=np.int64)
    generator = np.random.default_rng([seed, 2])
    point = _less(metric, (counts @ statistics)[None, :], name)
    samples = _less(metric, resample_sums(statistics, counts, draws, generator), name)
    limits = (-span, span) if np.isfinite(span) else None
    own = Bootstrapped(point, samples[:, None], items, n_draws, limits, metric.undefined)
    return own.estimates[0]


def _weighted_difference(metric: Metric, name: str, left: Outcomes, right: Outcomes) -> Estimate:
    entries, items, _ = jackknifed(metric, [left, right])
    if not items:
        return Estimate(value=None, reason=f"no item counts in {name} on both sides")
    apart = entries[:, 0] - entries[:, 1]
    if np.isnan(apart).any():
        return Estimate(value=None, n=items, reason=metric.undefined)
    least, most = metric.limits(left.n) if metric.limits else (-np.inf, np.inf)
    return msgspec.structs.replace(paired_difference(apart, span=most - least), n=items)


def _paired_statistics(
    metric: Metric, left: Outcomes, right: Outcomes, *, one_by_one: bool
) -> tuple[FloatArray, NDArray[np.int64], Clusters | None]:
    """Statistics of both sides next to each other, a row per item or per joint pattern, the rows'
    counts and clusters.
    """
    clusters = left.clusters
    left, right = (left.each, right.each) if one_by_one else jointly((left, right))
    of_left, of_right = metric.statistics(left), metric.statistics(right)
    both = np.flatnonzero((of_left[:, 0] > 0) & (of_right[:, 0] > 0))
    own = None if clusters is None else clusters.rows(both)
    return np.hstack([of_left, of_right])[both], left.times[both], own


def _less(metric: Metric, sums: FloatArray, name: str) -> FloatArray:
    width = sums.shape[1] // 2
    left, right = metric.values(sums[:, :width]), metric.values(sums[:, width:])
    if left.ndim != 1:
        raise UsageError(f"{name} is a list of values: it has no single difference.")
    return left - right
