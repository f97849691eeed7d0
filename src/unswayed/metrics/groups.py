"""Measurements per group, and their macro average."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np

from unswayed.decisions import Estimate
from unswayed.metrics.measure import RESAMPLES, Row, load_metrics, row_of
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.protocol import FloatArray
from unswayed.metrics.resampling import (
    Bootstrapped,
    GoldTies,
    bootstrap,
    estimates,
    prepared,
    resample,
)
from unswayed.metrics.uncertainty import percentile_interval

__all__ = ["UNGROUPED", "measure_groups"]

UNGROUPED = "(no group)"
"""Name under which items without a group are measured when others have one."""


def measure_groups(
    strata: Sequence[Outcomes],
    *,
    names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    by_construction: frozenset[str] = frozenset(),
    gold_ties: GoldTies = "exclude",
) -> tuple[dict[str, Row], Row]:
    """A row per group, and the macro average: the plain mean over groups.

    The interval of the macro average comes from resampling items within their groups: the groups
    are the same in every sample. A metric that is undefined in a group is averaged over the others,
    and `groups` in its estimate says over how many.

    Args:
        strata: Outcomes, one entry per number of candidates.
        names: Metrics wanted; default: all.
        resamples: Bootstrap resamples.
        seed: Seed; each group has its own stream.
        by_construction: As in `measure`.
        gold_ties: As in `measure`.

    Returns:
        Rows by group in alphabetical order, and the macro row; both empty if no item has a group.
    """
    kept = prepared(strata, gold_ties)
    found = {group or UNGROUPED for outcomes in kept for group in outcomes.groups}
    if not found or found == {UNGROUPED}:
        return {}, {}
    metrics = load_metrics(names)
    rows: dict[str, Row] = {}
    values: list[dict[str, Bootstrapped]] = []
    for stream, group in enumerate(sorted(found)):
        of_group = [part for part in (_of_group(s, group) for s in kept) if len(part)]
        sums = resample(metrics, of_group, resamples=resamples, seed=_stream(seed, stream))
        made = bootstrap(metrics, of_group, sums)
        values.append(made)
        rows[group] = row_of(made, of_group, by_construction)
        if len(of_group) > 1:
            rows[group]["strata"] = {
                str(part.n): row_of(bootstrap(metrics, [part], [own]), [part], by_construction)
                for part, own in zip(of_group, sums, strict=True)
            }
    return rows, _macro(values, by_construction)


def _stream(seed: int, stream: int) -> int:
    """A seed of its own for each group, so that groups are resampled independently."""
    return int(
        np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def _of_group(outcomes: Outcomes, group: str) -> Outcomes:
    rows = [i for i, own in enumerate(outcomes.groups) if (own or UNGROUPED) == group]
    return outcomes.rows(np.array(rows, dtype=np.intp))


def _macro(groups: Sequence[dict[str, Bootstrapped]], by_construction: frozenset[str]) -> Row:
    row: Row = {"groups": len(groups)}
    for name in groups[0]:
        if not all(name in values for values in groups):
            continue
        parts = [values[name] for values in groups]
        if len({len(part.point) for part in parts}) > 1:
            continue  # rates by position of different numbers of candidates
        made = [
            _macro_estimate(parts, k, by_construction=name in by_construction)
            for k in range(len(parts[0].point))
        ]
        row[name] = made if parts[0].is_list and len(made) > 1 else made[0]
    return row


def _macro_estimate(
    parts: Sequence[Bootstrapped], k: int, *, by_construction: bool
) -> dict[str, object]:
    defined = [part for part in parts if np.isfinite(part.point[k])]
    n = sum(part.n for part in defined)
    if not defined:
        return _as_dict(Estimate(value=None, reason=parts[0].reason), groups=0)
    value = float(np.mean([part.point[k] for part in defined]))
    low: float | None = value
    high: float | None = value
    if not by_construction:
        low, high = _macro_interval(value, defined, k)
    made = Estimate(value=value, low=low, high=high, n=n, by_construction=by_construction)
    return _as_dict(made, groups=len(defined))


def _macro_interval(
    value: float, parts: Sequence[Bootstrapped], k: int
) -> tuple[float | None, float | None]:
    """Quantiles of the mean over groups; where no group varies, the mean of their own bounds."""
    samples = np.stack([part.samples[:, k] for part in parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resample undefined in every group
        means: FloatArray = np.nanmean(np.where(np.isfinite(samples), samples, np.nan), axis=0)
    known = means[~np.isnan(means)]
    if len(known) * 2 <= len(means):
        return None, None
    if known.max() - known.min() > 1e-12:
        return percentile_interval(value, known)
    own = [estimates(part)[k] for part in parts]
    lows = [estimate.low for estimate in own if estimate.low is not None]
    highs = [estimate.high for estimate in own if estimate.high is not None]
    if len(lows) < len(own) or len(highs) < len(own):
        return None, None
    return float(np.mean(lows)), float(np.mean(highs))


def _as_dict(estimate: Estimate, *, groups: int) -> dict[str, object]:
    return {**cast("dict[str, object]", msgspec.to_builtins(estimate)), "groups": groups}
