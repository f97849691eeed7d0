"""Measurements per group, and their macro average."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.resampling import (
    RESAMPLES,
    Bootstrapped,
    GoldTies,
    prepared,
    resample,
)
from unswayed.metrics.rows import Beside, Rates, Row, row_of
from unswayed.metrics.table import load_metrics
from unswayed.metrics.uncertainty import percentile_interval
from unswayed.model.decisions import Estimate, FloatArray

UNGROUPED = "(no group)"
"""Name under which items without a group are measured when others have one."""


def measure_groups(
    strata: Sequence[Outcomes],
    *,
    names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    constructed: bool = False,
    gold_ties: GoldTies = "exclude",
) -> tuple[dict[str, Row], Row | None]:
    """Rows by group in alphabetical order, and the macro average, the plain mean over groups; none
    if no item has a group. Options are those of `measure`; each group has its own stream of the
    seed.

    The interval of the macro average comes from resampling items within their groups: the groups
    are the same in every sample. Where items of one cluster are in several groups, as the criteria
    of an item are, all groups are measured on the same draws of clusters. A metric that is
    undefined in a group is averaged over the others, and `groups` in its estimate says over how
    many.
    """
    kept = prepared(strata, gold_ties)
    together = any(map(_share_clusters, kept))
    split = [by_group(part) for part in kept]
    groups = {group: [own[group] for own in split if group in own] for group in set().union(*split)}
    if groups.keys() == {UNGROUPED}:
        return {}, None
    if not together:
        groups = {
            group: [
                replace(part, clusters=part.clusters and part.clusters.alone()) for part in parts
            ]
            for group, parts in groups.items()
        }
    metrics = load_metrics(names)
    samples = {
        group: resample(
            metrics,
            prepared(groups[group], gold_ties),
            resamples=resamples,
            seed=_stream(seed, 0 if together else stream),
            constructed=constructed,
        )
        for stream, group in enumerate(sorted(groups))
    }
    rows = {group: row_of(sample) for group, sample in samples.items()}
    averages = _macro([sample.values for sample in samples.values()])
    return rows, Row(averages, Beside(groups=len(samples)))


def _share_clusters(outcomes: Outcomes) -> bool:
    """Return True if items of one cluster are in several groups."""
    if outcomes.clusters is None:
        return False
    pairs = set(zip(outcomes.clusters.of_item.tolist(), outcomes.groups, strict=True))
    return len(pairs) > len({cluster for cluster, _ in pairs})


def _stream(seed: int, stream: int) -> int:
    """Return a seed of its own for each group, so that groups are resampled independently."""
    return int(
        np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def by_group(outcomes: Outcomes) -> dict[str, Outcomes]:
    """Return the outcomes of each group; what is alike is counted once, for all groups."""
    names = dict.fromkeys(group or UNGROUPED for group in set(outcomes.groups))
    if len(names) == 1:
        return dict.fromkeys(names, outcomes)
    code = {name: number for number, name in enumerate(names)}
    code_of = {group: code[group or UNGROUPED] for group in set(outcomes.groups)}
    of_item = np.fromiter(map(code_of.__getitem__, outcomes.groups), np.intp, len(outcomes))
    assert len(outcomes.patterns[0])
    rows = np.split(np.argsort(of_item, kind="stable"), np.cumsum(np.bincount(of_item))[:-1])
    return {group: outcomes.rows(own) for group, own in zip(names, rows, strict=True)}


def _macro(groups: Sequence[dict[str, Bootstrapped]]) -> dict[str, Rates]:
    averages = {}
    for name in groups[0]:
        if not all(name in values for values in groups):
            continue
        parts = [values[name] for values in groups]
        if len({len(part.point) for part in parts}) > 1:
            continue  # rates by position of different numbers of candidates
        averages[name] = tuple(_average(parts, k) for k in range(len(parts[0].point)))
    return averages


def _average(parts: Sequence[Bootstrapped], k: int) -> Estimate:
    defined = [part for part in parts if np.isfinite(part.point[k])]
    if not defined:
        return Estimate(value=None, reason=parts[0].reason, groups=0)
    value = float(np.mean([part.point[k] for part in defined]))
    by_construction = all(part.by_construction for part in defined)
    low, high = (value, value) if by_construction else _interval(value, defined, k)
    return Estimate(
        value=value,
        low=low,
        high=high,
        n=sum(part.n for part in defined),
        by_construction=by_construction,
        groups=len(defined),
    )


def _interval(
    value: float, parts: Sequence[Bootstrapped], k: int
) -> tuple[float | None, float | None]:
    """Quantiles of the mean over groups, none of sizes; where none varies, the mean of their bounds."""
    samples = np.stack([part.samples[:, k] for part in parts])
    if parts[0].inflated or np.isnan(samples).all(axis=1).any():
        return None, None  # a group has a value and no interval
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resample undefined in every group
        means: FloatArray = np.nanmean(np.where(np.isfinite(samples), samples, np.nan), axis=0)
    defined = means[~np.isnan(means)]
    if len(defined) * 2 <= len(means):
        return None, None
    if defined.max() - defined.min() > 1e-12:
        return percentile_interval(value, defined)
    own = [part.estimates[k] for part in parts]
    lows = [estimate.low for estimate in own if estimate.low is not None]
    highs = [estimate.high for estimate in own if estimate.high is not None]
    if len(lows) < len(own) or len(highs) < len(own):
        return None, None
    return float(np.mean(lows)), float(np.mean(highs))
