"""Differences between several methods at once: intervals that hold for all of them together.

One interval of twelve misses zero by chance in half of all audits. Whatever is called "best" or
"measurably" better is read from these intervals instead: the whole family covers with 95%. The
critical value is the 95% quantile of the largest studentised difference (max-t), drawn with the
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

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.base.quantiles import NORMAL, NORMAL_ONE_SIDED
from unswayed.metrics.jackknife import jackknifed
from unswayed.metrics.metric import Metric
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.resampling import GoldTies, prepared
from unswayed.metrics.table import METRICS
from unswayed.metrics.uncertainty import entries_of, paired_difference
from unswayed.model.decisions import Estimate, FloatArray
from unswayed.model.decisions.clusters import Clusters

_DRAWS: Final = 20_000
"""Draws of the largest difference; they settle the critical value to about .01."""

_COVERED: Final = 0.95

_ROUNDING: Final = 1e-13
"""Share of the largest spread below which one is rounding."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Values of several methods on the same items."""

    # Of each method on each item; shape (I, M). Of a weighted metric, what each group of items adds
    # to it (`jackknife`).
    values: FloatArray
    names: tuple[str, ...]  # the M methods
    span: float = 1.0  # the largest difference that an item can have
    seed: int = 0  # seed of the draws
    clusters: Clusters | None = None  # the cluster of each item; None for each by itself
    weights: NDArray[np.int64] | None = None  # how many items each row stands for; None: one each
    behind: tuple[int, int] | None = None  # items and distinct questions behind a weighted metric

    @property
    def items(self) -> int:
        """Items that count for every method."""
        return self.behind[0] if self.behind else int(self._counts.sum())

    @property
    def units(self) -> int:
        """Distinct questions among them."""
        if self.behind:
            return self.behind[1]
        return self.items if self.clusters is None else len(np.unique(self.clusters.of_item))

    def against(self, base: str, *, one_sided: bool = False) -> dict[str, Estimate]:
        """Every other method minus one, with intervals that hold for all of them together.

        One-sided: the low end, and the high end, hold each by itself.
        """
        critical = self.critical(base, one_sided=one_sided)
        return {name: self.difference(name, base, critical) for name in self.names if name != base}

    def difference(self, first: str, second: str, critical: float = NORMAL) -> Estimate:
        """One method minus another, with `critical` errors to each side."""
        return self._estimate(self.apart(first, second), critical)

    def above(self, name: str, value: float) -> Estimate:
        """Return a method minus a number."""
        return self._estimate(self.values[:, self.names.index(name)] - value, NORMAL)

    def apart(self, first: str, second: str) -> FloatArray:
        """Return the difference on each item."""
        a, b = self.names.index(first), self.names.index(second)
        return self.values[:, a] - self.values[:, b]

    def spread(self, first: str, second: str) -> float:
        """Return standard deviation of a difference over distinct questions."""
        entries, counts = entries_of(self.apart(first, second), self.clusters, self.weights)
        mean = np.average(entries, weights=counts)
        return float(np.sqrt(np.average((entries - mean) ** 2, weights=counts)))

    def critical(self, base: str | None = None, *, one_sided: bool = False) -> float:
        """Errors to each side that make the differences to a method hold together, or those of all pairs."""
        largest = np.zeros(_DRAWS)
        numbers = range(len(self.names))
        to_base = [] if base is None else [(a, self.names.index(base)) for a in numbers]
        for a, b in to_base or itertools.combinations(numbers, 2):
            drawn = self._draws[:, a] - self._draws[:, b]
            spread = float(drawn.std())
            if spread > 1e-9:
                own = drawn if one_sided else np.abs(drawn)
                largest = np.maximum(largest, own / spread)
        normal = NORMAL_ONE_SIDED if one_sided else NORMAL
        return max(normal, float(np.quantile(largest, _COVERED)))

    @property
    def _counts(self) -> NDArray[np.int64]:
        return np.ones(len(self.values), np.int64) if self.weights is None else self.weights

    def _estimate(self, apart: FloatArray, critical: float) -> Estimate:
        if not len(apart):
            return Estimate(value=None, reason="no item counts on both sides")
        estimate = paired_difference(
            apart, self.weights, span=self.span, clusters=self.clusters, critical=critical
        )
        return msgspec.structs.replace(estimate, n=self.items)

    @cached_property
    def _draws(self) -> FloatArray:
        """Normal draws with the covariance of the methods' values, shape (B, M)."""
        counts = self._counts[:, None]
        deviations = self.values - (counts * self.values).sum(axis=0) / max(counts.sum(), 1)
        deviations *= np.sqrt(counts)
        if self.clusters is not None:
            deviations = self.clusters.sums(deviations)
        spread, directions = np.linalg.eigh(deviations.T @ deviations)
        spread[spread < _ROUNDING * spread[-1]] = 0.0  # or methods that agree throughout differ
        root = directions * np.sqrt(spread)
        generator = np.random.default_rng([self.seed, 3])
        return np.asarray(generator.standard_normal((_DRAWS, len(self.names))) @ root.T)


def contrasts(
    outcomes: Mapping[str, Sequence[Outcomes]],
    name: str,
    *,
    seed: int = 0,
    gold_ties: GoldTies = "exclude",
) -> Contrasts:
    """Return the values of several methods about the same items in the same order, under a metric that is
    a mean over items, or weighted. Items that do not count for every method are left out.
    """
    metric = METRICS.load(name)
    low, high = metric.limits(2) if metric.limits else (0.0, 1.0)
    methods = [prepared(strata, gold_ties) for strata in outcomes.values()]
    if metric.weighted is not None:
        if len({tuple(part.item_ids for part in strata) for strata in methods}) > 1:
            raise ShapeError(f"{metric.title}: the methods were not asked about the same items")
        if any(len(strata) != 1 for strata in methods):
            raise ShapeError(f"{metric.title}: items have different numbers of candidates")
        values, *behind = jackknifed(metric, [strata[0] for strata in methods])
        return Contrasts(values, tuple(outcomes), high - low, seed, behind=(behind[0], behind[1]))
    columns = [np.concatenate([_values(metric, part, name) for part in parts]) for parts in methods]
    if len({len(column) for column in columns}) > 1:
        raise ShapeError(f"{name}: the methods were not asked about the same items")
    values, last = np.column_stack(columns), methods[-1]
    kept = np.flatnonzero(~np.isnan(values).any(axis=1))
    clusters = Clusters.of_strata([(len(part), part.clusters) for part in last])
    return Contrasts(
        values[kept],
        tuple(outcomes),
        high - low,
        seed,
        None if clusters is None else clusters.rows(kept),
        np.concatenate([part.times for part in last])[kept],
    )


def _values(metric: Metric, outcomes: Outcomes, name: str) -> FloatArray:
    """Return the value of each item, NaN where it does not count; shape (I,)."""
    if metric.continuous:
        statistics = metric.statistics(outcomes)
    else:
        statistics = metric.statistics(outcomes.tally)[outcomes.patterns[1]]
    counted = statistics[:, 0]
    if statistics.shape[1] != 2 or not np.isin(counted, (0.0, 1.0)).all():
        raise ShapeError(f"{name} is not a mean over items: its differences have no joint interval")
    return np.where(counted == 1.0, statistics[:, 1], np.nan)
