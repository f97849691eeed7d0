"""From outcomes to bootstrapped values: every metric from one set of resampled sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import Estimate
from unswayed.errors import ShapeError, UsageError
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.patterns import pattern_codes
from unswayed.metrics.protocol import FloatArray, Metric, Need, unmet
from unswayed.metrics.uncertainty import interval, resample_sums

__all__ = ["Bootstrapped", "GoldTies", "Sums", "bootstrap", "estimates", "prepared", "resample"]

GoldTies = Literal["exclude", "class"]


@dataclass(frozen=True, eq=False)
class Sums:
    """The statistics of one metric, summed over the items of one stratum.

    Attributes:
        point: Over all items, shape (k,).
        samples: Over each resample, shape (B, k).
        n_items: Items that count in the metric.
    """

    point: FloatArray
    samples: FloatArray
    n_items: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.point + other.point, self.samples + other.samples, self.n_items + other.n_items
        )


@dataclass(frozen=True, eq=False)
class Bootstrapped:
    """A metric's values.

    Attributes:
        point: The estimate, shape (m,); m = 1 unless the metric is a list.
        samples: Its bootstrap values, shape (B, m).
        n: What the metric counts: items, or calls.
        n_items: Items behind it.
        is_list: Whether the metric is a list of values.
        limits: Range of one item's share, if the value is a mean over items.
        reason: Why a value is undefined, where one is.
    """

    point: FloatArray
    samples: FloatArray
    n: int
    n_items: int
    is_list: bool
    limits: tuple[float, float] | None
    reason: str


@dataclass(frozen=True, eq=False)
class _Part:
    """Statistics of some metrics over the patterns of one stratum, side by side.

    Attributes:
        columns: Where the statistics of each metric stand.
        statistics: Shape (P, K).
        counts: Items of each pattern, shape (P,).
    """

    columns: Mapping[str, slice]
    statistics: FloatArray
    counts: NDArray[np.int64]


def resample(
    metrics: Mapping[str, Metric], strata: Sequence[Outcomes], *, resamples: int, seed: int
) -> list[dict[str, Sums]]:
    """The sums of every metric that applies, for each stratum.

    Items are resampled over all strata together, so the size of a stratum varies as it would in
    another sample. Metrics that read no probabilities share one set of draws, the others another.

    Args:
        metrics: By name.
        strata: One per number of candidates.
        resamples: Number B of resamples; 0 for point estimates only.
        seed: Seed of the draws.
    """
    sizes = np.array([len(outcomes) for outcomes in strata], dtype=np.int64)
    found: list[dict[str, Sums]] = [{} for _ in strata]
    for stream, reads_probs in enumerate((False, True)):
        chosen = {
            name: metric
            for name, metric in metrics.items()
            if metric.reads_probs is reads_probs and not _hopeless(metric, strata)
        }
        generator = np.random.default_rng([seed, stream])
        if not chosen or not sizes.sum():
            continue
        draws = generator.multinomial(int(sizes.sum()), sizes / sizes.sum(), size=resamples)
        for s, outcomes in enumerate(strata):
            if sizes[s]:
                part = _part(chosen, outcomes, reads_probs=reads_probs)
                found[s] |= _sums(part, draws[:, s], generator)
    return found


def _hopeless(metric: Metric, strata: Sequence[Outcomes]) -> bool:
    """Whether probabilities that it reads were never recorded: the costly case to leave out."""
    needed = [need for need in metric.needs if need in (Need.PROBS, Need.LABEL_MASS)]
    return any(unmet(need, strata) for need in needed)


def _part(metrics: Mapping[str, Metric], outcomes: Outcomes, *, reads_probs: bool) -> _Part:
    if reads_probs:
        counts = np.ones(len(outcomes), dtype=np.int64)
    else:
        first, pattern = pattern_codes(outcomes)
        counts = np.bincount(pattern, minlength=len(first)).astype(np.int64)
        outcomes = outcomes.without_probs().rows(first)
    blocks: list[tuple[slice, FloatArray]] = []
    columns: dict[str, slice] = {}
    width = 0
    for name, metric in metrics.items():
        if not metric.applies_to(outcomes.n):
            continue
        block = metric.statistics(outcomes)
        same = next((at for at, other in blocks if np.array_equal(other, block)), None)
        if same is None:  # the ICCs share their statistics, coupled labels those of positions
            same = slice(width, width + block.shape[1])
            blocks.append((same, block))
            width = same.stop
        columns[name] = same
    empty = np.zeros((len(outcomes), 0))
    return _Part(columns, np.hstack([empty, *(block for _, block in blocks)]), counts)


def _sums(part: _Part, draws: NDArray[np.int64], generator: np.random.Generator) -> dict[str, Sums]:
    point = part.counts.astype(float) @ part.statistics
    samples = resample_sums(part.statistics, part.counts, draws, generator)
    found = {}
    for name, columns in part.columns.items():
        counted = part.statistics[:, columns.start] > 0
        found[name] = Sums(point[columns], samples[:, columns], int(part.counts[counted].sum()))
    return found


def bootstrap(
    metrics: Mapping[str, Metric],
    strata: Sequence[Outcomes],
    sums: Sequence[Mapping[str, Sums]],
) -> dict[str, Bootstrapped]:
    """Values of the metrics that are defined for these strata together.

    With one stratum those are all that apply to it, with several those defined across numbers of
    candidates.
    """
    made = {}
    for name, metric in metrics.items():
        if not all(metric.applies_to(outcomes.n) for outcomes in strata):
            continue
        if len(sums) > 1 and not metric.across:
            continue
        lacking = next((need for need in metric.needs if unmet(need, strata)), None)
        if lacking is not None and metric.optional:
            continue
        if name not in sums[0]:
            made[name] = _nothing(lacking or metric.undefined)
            continue
        total = sums[0][name]
        for of_stratum in sums[1:]:
            total = total + of_stratum[name]
        made[name] = _values(metric, total, strata[0].n, lacking or metric.undefined)
    return made


def _nothing(reason: str) -> Bootstrapped:
    nan = np.full(1, np.nan)
    return Bootstrapped(nan, np.zeros((0, 1)), 0, 0, is_list=False, limits=None, reason=reason)


def _values(metric: Metric, sums: Sums, n: int, reason: str) -> Bootstrapped:
    point = metric.values(sums.point[None, :])
    samples = metric.values(sums.samples)
    return Bootstrapped(
        point=point.reshape(-1),
        samples=samples.reshape(len(sums.samples), point.size),
        n=round(float(sums.point[0])),
        n_items=sums.n_items,
        is_list=point.ndim == 2,
        limits=metric.limits(n),
        reason=reason,
    )


def estimates(values: Bootstrapped, *, by_construction: bool = False) -> list[Estimate]:
    """The values with their intervals, or the reason why there are none."""
    made = []
    for k, value in enumerate(values.point.tolist()):
        if not np.isfinite(value):
            made.append(Estimate(value=None, n=values.n, reason=values.reason))
            continue
        if by_construction:
            bounds: tuple[float, float] | None = (value, value)
        else:
            bounds = interval(
                value, values.samples[:, k], n_items=values.n_items, limits=values.limits
            )
        low, high = bounds or (None, None)
        made.append(
            Estimate(value=value, low=low, high=high, n=values.n, by_construction=by_construction)
        )
    return made


def prepared(strata: Sequence[Outcomes], gold_ties: GoldTies) -> tuple[Outcomes, ...]:
    """The strata under one reading of gold ties; those without items are left out.

    Raises:
        ShapeError: If two strata have the same number of candidates, or there are no items.
        UsageError: If `gold_ties` is neither reading.
    """
    if gold_ties not in ("exclude", "class"):
        raise UsageError(f"gold ties {gold_ties!r}: write exclude or class.")
    kept = tuple(replace(s, tie_is_class=gold_ties == "class") for s in strata if len(s))
    if not kept:
        raise ShapeError("there are no items to measure")
    for n, count in Counter(outcomes.n for outcomes in kept).items():
        if count > 1:
            raise ShapeError(f"{count} strata have {n} candidates: put their items into one")
    return kept
