"""Bootstrap every metric from one set of resampled sums, or of weights."""

from __future__ import annotations

import functools
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError, UsageError
from unswayed.metrics.jackknife import in_blocks
from unswayed.metrics.metric import Ends, Limits, Metric
from unswayed.metrics.moments import (
    EXACT_UP_TO,
    FEWEST_EFFECTIVE,
    effective_items,
    resampled_sums,
)
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.uncertainty import drawn_weights, interval, resample_sums
from unswayed.model.decisions import ABSTAINED, Estimate, FloatArray

_WEIGHTED: Final = 4
"""Seed of the draws of weighted metrics; 0 and 1 are those of sums, 2 and 3 of comparisons."""

GoldTies = Literal["exclude", "class"]

RESAMPLES: Final = 1000

OfItems = Callable[[Outcomes], FloatArray]
Names = tuple[str, ...]
"""Metrics that share their statistics."""


class Options(TypedDict):
    """Measurement options of one audit."""

    resamples: int  # bootstrap resamples
    seed: int  # seed of the resamples
    gold_ties: GoldTies  # "exclude" items whose gold is a tie, or score the tie as a "class"


@dataclass(frozen=True, eq=False)
class Sums:
    """The statistics of one metric, summed over the items of one stratum.

    A weighted metric sums the items that count, and its value.
    """

    point: FloatArray  # over all items, shape (k,)
    samples: FloatArray  # over each resample, shape (B, k)
    n_items: int  # items that count in the metric, those of a cluster as one
    # statistics before they are summed, and how often each row occurs; None of a weighted metric,
    # or of several strata
    units: tuple[FloatArray, NDArray[np.int64]] | None = None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.point + other.point, self.samples + other.samples, self.n_items + other.n_items
        )


@dataclass(frozen=True, eq=False)
class Bootstrapped:
    """A metric's values."""

    point: FloatArray  # the estimate, shape (m,); m = 1 unless the metric is a list
    samples: FloatArray  # its bootstrap values, shape (B, m)
    n: int  # what the metric counts: items, or calls
    n_items: int  # items behind it, those of a cluster as one
    limits: Limits | None  # range of one item's share, if the value is a mean over items
    reason: str  # why a value is undefined, where one is
    # the value holds for any judge, and so in every resample; its interval is the value
    by_construction: bool = False
    ends: Sequence[Ends] | None = None  # the intervals, where the metric has its own
    inflated: int = 0  # as in `Metric`

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """The values with their intervals, or the reason why there are none."""
        return tuple(self._estimate(k) for k in range(len(self.point)))

    def _estimate(self, k: int) -> Estimate:
        value, n = float(self.point[k]), self.n
        if not np.isfinite(value):
            return Estimate(value=None, n=n, reason=self.reason)
        if self.by_construction:
            return Estimate(value=value, low=value, high=value, n=n, by_construction=True)
        ends: Ends
        if self.ends is None:
            ends = interval(value, self.samples[:, k], n_items=self.n_items, limits=self.limits)
            if (p := self.inflated) and not isinstance(ends, str):
                ends = max(2.0 * value**p - ends[1] ** p, 0.0) ** (1.0 / p), ends[1]
        else:
            ends = self.ends[k]
        if isinstance(ends, str):
            return Estimate(value=value, n=n, reason=ends if len(self.samples) else None)
        low, high = map(float, ends)
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


@dataclass(frozen=True, eq=False)
class Sample:
    """Outcomes and the resampled sums of their metrics."""

    metrics: Mapping[str, Metric]  # by name
    strata: tuple[Outcomes, ...]  # outcomes, one entry per number of candidates
    sums: tuple[Mapping[str, Sums], ...]  # of the metrics that apply, for each stratum
    constructed: bool  # all presentations read the same questions, and some answer was read

    @property
    def parts(self) -> list[Sample]:
        """Each stratum by itself."""
        each = zip(self.strata, self.sums, strict=True)
        return [replace(self, strata=(outcomes,), sums=(own,)) for outcomes, own in each]

    @cached_property
    def values(self) -> dict[str, Bootstrapped]:
        """Values of the metrics that are defined for these strata together.

        With one stratum those are all that apply to it, with several those defined across numbers
        of candidates.
        """
        values = {}
        withheld = not any(part.answered.any() for part in self.strata)
        withheld = withheld and any((part.choices == ABSTAINED).any() for part in self.strata)
        for name, metric in self.metrics.items():
            together = metric.across or len(self.strata) == 1
            applies = all(metric.applies_to(outcomes.n) for outcomes in self.strata)
            if applies and together and not metric.left_out(self.strata):
                lacking = metric.lacking(self.strata)
                reason = lacking[0].lack if lacking else metric.undefined
                reason = "the method withheld every verdict" if withheld else reason
                values[name] = self._bootstrapped(name, metric, reason)
        return values

    def _bootstrapped(self, name: str, metric: Metric, reason: str) -> Bootstrapped:
        parts = [own[name] for own in self.sums if name in own]
        if not parts:
            return Bootstrapped(np.full(1, np.nan), np.zeros((0, 1)), 0, 0, None, reason)
        total = functools.reduce(operator.add, parts)
        is_sum = metric.weighted is None
        values = metric.values if is_sum else lambda sums: sums[:, 1]
        point = values(total.point[None, :]).reshape(-1)
        samples = values(total.samples).reshape(-1, point.size)
        constructed = self.constructed and bool(metric.constructed)
        if metric.constructed == "evenly":
            constructed &= all(part.even for part in self.strata)
        constructed = constructed and bool(np.isclose(samples, point, equal_nan=True).all())
        ends = None
        wanted = len(total.samples) and np.isfinite(point).all() and not constructed
        if metric.interval and total.units and wanted and total.n_items > 1:
            statistics, counts = total.units
            counted = statistics[:, 0] > 0
            ends = metric.interval(statistics[counted], counts[counted])
        return Bootstrapped(
            point=point,
            samples=samples,
            n=round(float(total.point[0])),
            n_items=total.n_items,
            limits=metric.limits(self.strata[0].n) if metric.limits and is_sum else None,
            reason=reason,
            by_construction=constructed,
            ends=ends,
            inflated=metric.inflated,
        )


def resample(
    metrics: Mapping[str, Metric],
    strata: Sequence[Outcomes],
    *,
    resamples: int,
    seed: int,
    constructed: bool,
) -> Sample:
    """Return the sums of every metric over all items, and over items drawn with replacement.

    Items are resampled over all strata together, so the size of a stratum varies as it would in
    another sample; those of a cluster are drawn together. Categorical metrics share one set of
    draws, continuous ones another, weighted ones a third.
    """
    sizes = np.array([outcomes.n_draws for outcomes in strata], dtype=np.int64)
    sums: list[dict[str, Sums]] = [{} for _ in strata]
    streams: dict[int, dict[str, Metric]] = defaultdict(dict)
    for name, metric in metrics.items():
        if not (metric.left_out(strata) or metric.unrecorded(strata)):
            stream = _WEIGHTED if metric.weighted is not None else int(metric.continuous)
            streams[stream][name] = metric
    for stream, draw in ((0, _by_pattern), (1, _continuous), (_WEIGHTED, _weighted)):
        chosen = streams[stream]
        if not chosen:
            continue
        generator = np.random.default_rng([seed, stream])
        draws = generator.multinomial(int(sizes.sum()), sizes / sizes.sum(), size=resamples)
        for own, outcomes, drawn in zip(sums, strata, draws.T, strict=True):
            readable = {k: v for k, v in chosen.items() if not v.unrecorded([outcomes])}
            own |= draw(readable, outcomes, drawn, generator)
    read = any(own.choice_counts.any() for own in strata)
    return Sample(metrics, tuple(strata), tuple(sums), constructed and read)


def _by_pattern(
    metrics: Mapping[str, Metric],
    outcomes: Outcomes,
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> dict[str, Sums]:
    """Return sums of categorical metrics: items that answered alike are drawn together."""
    drawn = outcomes.tally if outcomes.clusters is None else outcomes
    return _drawn(_statistics(metrics, drawn), drawn.weights, draws, generator)


def _continuous(
    metrics: Mapping[str, Metric],
    outcomes: Outcomes,
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> dict[str, Sums]:
    """Draw the sums of continuous metrics: from drawn items, or from the normal distribution if very many
    items count and differ.
    """
    every = _statistics(metrics, outcomes.each)
    (own,) = generator.spawn(1)  # so that it does not depend on which items are drawn besides
    few: dict[Names, FloatArray] = {}
    sums: dict[str, Sums] = {}
    for names, statistics in every.items():
        counted = int(np.count_nonzero(statistics[:, 0]))
        if counted > EXACT_UP_TO and effective_items(statistics) >= FEWEST_EFFECTIVE:
            units = statistics, np.ones(len(statistics), np.int64)
            drawn = Sums(*resampled_sums(statistics, draws, own), counted, units)
            sums |= dict.fromkeys(names, drawn)
        else:
            few[names] = statistics
    return sums | _drawn(few, None, draws, generator)


def _weighted(
    metrics: Mapping[str, Metric],
    outcomes: Outcomes,
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> dict[str, Sums]:
    """Return counts and values of weighted metrics."""
    outcomes = outcomes.each
    chosen = {
        name: (metric.statistics(outcomes)[:, 0] > 0, metric.weighted(outcomes))
        for name, metric in metrics.items()
        if metric.weighted is not None and metric.applies_to(outcomes.n)
    }
    whole, clusters = np.ones((1, len(outcomes))), outcomes.clusters
    samples = {name: np.empty((len(draws), 2)) for name in chosen}
    for start, end in in_blocks(len(draws), len(outcomes)):
        weights = drawn_weights(draws[start:end], outcomes.n_draws, generator)
        if clusters is not None:
            weights = weights[:, clusters.of_item]
        for name, (counted, value) in chosen.items():
            samples[name][start:end] = np.column_stack([weights @ counted, value(weights)])
    return {
        name: Sums(
            np.array([counted.sum(), value(whole)[0]]),
            samples[name],
            int(counted.sum() if clusters is None else len(set(clusters.of_item[counted]))),
        )
        for name, (counted, value) in chosen.items()
    }


def _statistics(metrics: Mapping[str, Metric], outcomes: Outcomes) -> dict[Names, FloatArray]:
    """Return the statistics of the metrics that apply, which several may share: a row per item, or per
    cluster.
    """
    families: dict[OfItems, Names] = {}
    for name, metric in metrics.items():
        if metric.applies_to(outcomes.n):
            families[metric.statistics] = (*families.get(metric.statistics, ()), name)
    own = {names: statistics(outcomes) for statistics, names in families.items()}
    clusters = outcomes.clusters
    return own if clusters is None else {key: clusters.sums(rows) for key, rows in own.items()}


def _drawn(
    families: Mapping[Names, FloatArray],
    counts: NDArray[np.int64] | None,
    draws: NDArray[np.int64],
    generator: np.random.Generator,
) -> dict[str, Sums]:
    """Return sums over drawn rows, which stand for `counts` items each, (P,), or for one."""
    if not families:
        return {}
    statistics = np.hstack(list(families.values()))
    if counts is None:
        counts = np.ones(len(statistics), dtype=np.int64)
    point = counts.astype(float) @ statistics
    if statistics.any():
        samples = resample_sums(statistics, counts, draws, generator)
    else:
        samples = np.zeros((len(draws), statistics.shape[1]))
    sums: dict[str, Sums] = {}
    start = 0
    for names, own in families.items():
        at = slice(start, start + own.shape[1])
        items = int(counts[statistics[:, start] > 0].sum())
        sums |= dict.fromkeys(names, Sums(point[at], samples[:, at], items, (own, counts)))
        start = at.stop
    return sums


def prepared(strata: Sequence[Outcomes], gold_ties: GoldTies) -> tuple[Outcomes, ...]:
    """Return the strata under one reading of gold ties; those without items are left out."""
    if gold_ties not in ("exclude", "class"):
        raise UsageError(f"gold ties {gold_ties!r}: write exclude or class.")
    tie_is_class = gold_ties == "class"
    kept = tuple(
        part if part.tie_is_class is tie_is_class else replace(part, tie_is_class=tie_is_class)
        for part in strata
        if len(part)
    )
    if not kept:
        raise ShapeError("there are no items to measure")
    for n, count in Counter(outcomes.n for outcomes in kept).items():
        if count > 1:
            raise ShapeError(f"{count} strata have {n} candidates: put their items into one")
    return kept
