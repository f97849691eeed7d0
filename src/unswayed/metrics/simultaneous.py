"""Differences between several methods at once: intervals that hold for all of them together.

One interval of twelve misses zero by chance in half of all audits. Whatever is called "best" or
"measurably" better is read from these intervals instead: the whole family covers with 95 %. The
critical value is the 95 % quantile of the largest studentised difference (max-t), drawn with the
covariance that the methods' values have over the items (the Gaussian form of the paired bootstrap,
which unlike counts of few differing items has no steps). Spread and centre are those of
`paired_difference`.

Source: Hothorn, Bretz and Westfall (2008), Biometrical Journal 50, 346.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import Estimate, FloatArray
from unswayed.decisions.clusters import Clusters
from unswayed.errors import ShapeError
from unswayed.metrics.jackknife import jackknifed
from unswayed.metrics.metric import Metric
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.resampling import GoldTies, prepared
from unswayed.metrics.table import METRICS
from unswayed.metrics.uncertainty import mean_of_items
from unswayed.quantiles import NORMAL

_DRAWS: Final = 20_000
"""Draws of the largest difference; they settle the critical value to about .01."""

_COVERED: Final = 0.95

_ROUNDING: Final = 1e-13
"""Share of the largest spread below which one is rounding."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Values of several methods on the same items.

    Attributes:
        values: Of each method on each item, NaN where the item does not count; shape (I, M). Of a
            weighted metric, what each group of items adds to it (`jackknife`).
        names: The M methods.
        base: The method that the others are compared with.
        span: The largest difference that an item can have.
        seed: Seed of the draws.
        clusters: The cluster of each item; None for each by itself.
        weights: How many items each row stands for; None: one each.
    """

    values: FloatArray
    names: tuple[str, ...]
    base: str
    span: float
    seed: int
    clusters: Clusters | None = None
    weights: NDArray[np.int64] | None = None

    def difference(self, first: str, second: str) -> Estimate:
        """One method minus another.

        The interval of a difference to `base` holds for all differences to it together, that of
        two other methods, which are looked at because of their values, for all pairs together.
        """
        planned = self.base in (first, second)
        return self._estimate(first, second, self._to_base if planned else self._to_all)

    @cached_property
    def _to_base(self) -> float:
        return self._critical([(name, self.base) for name in self.names if name != self.base])

    @cached_property
    def _to_all(self) -> float:
        return self._critical(list(itertools.combinations(self.names, 2)))

    def _estimate(self, first: str, second: str, critical: float) -> Estimate:
        apart = self._apart(first, second)
        kept = ~np.isnan(apart)
        apart = apart[kept]
        if not len(apart):
            return Estimate(value=None, reason="no item counts on both sides")
        clusters = self.clusters and self.clusters.rows(np.flatnonzero(kept))
        counts = None if self.weights is None else self.weights[kept]
        return mean_of_items(apart, clusters, span=self.span, counts=counts, critical=critical)

    def _apart(self, first: str, second: str) -> FloatArray:
        a, b = self.names.index(first), self.names.index(second)
        apart: FloatArray = self.values[:, a] - self.values[:, b]
        return apart

    @cached_property
    def _draws(self) -> FloatArray:
        """Normal draws with the covariance of the methods' values, shape (B, M)."""
        scored = ~np.isnan(self.values)
        values = np.where(scored, self.values, 0.0)
        if self.weights is None:
            total, count = values.sum(axis=0), scored.sum(axis=0)
        else:
            total, count = self.weights @ values, self.weights @ scored
        mean = total / np.maximum(count, 1)  # a method without any value has none
        deviations = np.where(scored, self.values - mean, 0.0)
        if self.weights is not None:
            deviations *= np.sqrt(self.weights)[:, None]
        if self.clusters is not None:
            deviations = self.clusters.sums(deviations)
        spread, directions = np.linalg.eigh(deviations.T @ deviations)
        spread[spread < _ROUNDING * spread[-1]] = 0.0  # or methods that agree throughout differ
        root = directions * np.sqrt(spread)
        generator = np.random.default_rng([self.seed, 3])
        return np.asarray(generator.standard_normal((_DRAWS, len(self.names))) @ root.T)

    def _critical(self, pairs: Sequence[tuple[str, str]]) -> float:
        largest = np.zeros(_DRAWS)
        for first, second in pairs:
            a, b = self.names.index(first), self.names.index(second)
            drawn = self._draws[:, a] - self._draws[:, b]
            spread = float(drawn.std())
            if spread > 1e-9:
                largest = np.maximum(largest, np.abs(drawn) / spread)
        return max(NORMAL, float(np.quantile(largest, _COVERED)))


def contrasts(
    outcomes: Mapping[str, Sequence[Outcomes]],
    name: str,
    *,
    base: str,
    seed: int = 0,
    gold_ties: GoldTies = "exclude",
) -> Contrasts:
    """The values of several methods under a metric that is a mean over items, or weighted.

    Args:
        outcomes: By method; all of the same items in the same order.
        name: A registered metric.
        base: The method that the others are compared with.
        seed: Seed of the draws.
        gold_ties: As in `measure`.

    Raises:
        ShapeError: If the methods are not about the same items, or the metric is not a mean.
    """
    metric = METRICS.load(name)
    low, high = metric.limits(2) if metric.limits else (0.0, 1.0)
    if metric.weighted is not None:
        values = _entries(metric, [prepared(strata, gold_ties) for strata in outcomes.values()])
        return Contrasts(values, tuple(outcomes), base, high - low, seed)
    methods = [prepared(strata, gold_ties) for strata in outcomes.values()]
    columns = [np.concatenate([_values(metric, part, name) for part in parts]) for parts in methods]
    if len({len(column) for column in columns}) > 1:
        raise ShapeError(f"{name}: the methods were not asked about the same items")
    values, last = np.column_stack(columns), methods[-1]
    clusters = Clusters.of_strata([(len(part), part.clusters) for part in last])
    weights = None
    if any(part.weights is not None for part in last):
        each = [np.ones(len(p), np.int64) if p.weights is None else p.weights for p in last]
        weights = np.concatenate(each)
    return Contrasts(values, tuple(outcomes), base, high - low, seed, clusters, weights)


def _entries(metric: Metric, methods: Sequence[tuple[Outcomes, ...]]) -> FloatArray:
    """What groups of items add to a weighted metric, a column per method; shape (G, M)."""
    if len({tuple(part.item_ids for part in strata) for strata in methods}) > 1:
        raise ShapeError(f"{metric.title}: the methods were not asked about the same items")
    if any(len(strata) != 1 for strata in methods):
        raise ShapeError(f"{metric.title}: items have different numbers of candidates")
    return jackknifed(metric, [strata[0] for strata in methods])[0]


def _values(metric: Metric, outcomes: Outcomes, name: str) -> FloatArray:
    """The value of each item, NaN where it does not count; shape (I,)."""
    if metric.continuous:
        statistics = metric.statistics(outcomes)
    else:
        statistics = metric.statistics(outcomes.tally)[outcomes.patterns[1]]
    counted = statistics[:, 0]
    if statistics.shape[1] != 2 or not np.isin(counted, (0.0, 1.0)).all():
        raise ShapeError(f"{name} is no mean over items: its differences have no joint interval")
    return np.where(counted == 1.0, statistics[:, 1], np.nan)
