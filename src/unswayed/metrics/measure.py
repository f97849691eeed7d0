"""Measure outcomes: a row of `metrics.json`, and paired differences between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import MISSING, TIE, UNPARSED, Estimate
from unswayed.errors import UsageError
from unswayed.metrics.outcomes import (
    GOLD_NONE,
    GOLD_ONE,
    GOLD_SEVERAL,
    GOLD_TIE,
    Outcomes,
)
from unswayed.metrics.patterns import pattern_codes, unique_rows
from unswayed.metrics.protocol import FloatArray, Metric
from unswayed.metrics.resampling import (
    Bootstrapped,
    GoldTies,
    bootstrap,
    estimates,
    prepared,
    resample,
)
from unswayed.metrics.table import METRICS
from unswayed.metrics.uncertainty import interval, paired_interval, resample_sums

__all__ = ["Row", "difference", "load_metrics", "measure", "row_of"]

Row = dict[str, object]
"""`{metric: estimate or list of estimates}` and the counts, ready for JSON."""

RESAMPLES: Final = 1000


def measure(
    strata: Sequence[Outcomes],
    *,
    names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    by_construction: frozenset[str] = frozenset(),
    gold_ties: GoldTies = "exclude",
) -> Row:
    """Every metric of these outcomes with its 95 % item-clustered bootstrap interval.

    Args:
        strata: Outcomes, one entry per number of candidates.
        names: Metrics wanted; default: all that are registered.
        resamples: Bootstrap resamples; 0 gives values without intervals.
        seed: Seed of the resamples.
        by_construction: Metrics that hold for any judge here; their interval is the value.
        gold_ties: "exclude" items whose gold is a tie, or score the tie as a "class".

    Returns:
        `{metric: estimate}` with estimates as dicts (a list of them for rates by position or
        label; `value` None with a `reason` where undefined), `incomplete` (items that lack a
        presentation), `set_size` (presentations per item), `counts`, and, where items differ in
        their number of candidates, `strata` with a row for each number.

    Raises:
        ShapeError: If there are no items, or two strata have the same number of candidates.
        UnknownNameError: If a name is not registered.
    """
    kept = prepared(strata, gold_ties)
    metrics = load_metrics(names)
    sums = resample(metrics, kept, resamples=resamples, seed=seed)
    row = row_of(bootstrap(metrics, kept, sums), kept, by_construction)
    if len(kept) > 1:
        row["strata"] = {
            str(outcomes.n): row_of(
                bootstrap(metrics, [outcomes], [of_stratum]), [outcomes], by_construction
            )
            for outcomes, of_stratum in zip(kept, sums, strict=True)
        }
    return row


def load_metrics(names: Iterable[str] | None = None) -> dict[str, Metric]:
    """The named metrics with their default options; all that are registered by default."""
    return {name: METRICS.load(name)() for name in (METRICS if names is None else names)}


def row_of(
    values: Mapping[str, Bootstrapped],
    strata: Sequence[Outcomes],
    by_construction: frozenset[str] = frozenset(),
) -> Row:
    """Values as a row, with the counts of the outcomes behind them."""
    row: Row = {}
    for name, value in values.items():
        made = [
            msgspec.to_builtins(estimate)
            for estimate in estimates(value, by_construction=name in by_construction)
        ]
        row[name] = made if value.is_list and len(value.point) > 1 else made[0]
    row["incomplete"] = sum(
        int((s.permutable & ~s.complete).sum()) for s in strata if s.n_views > 1
    )
    sizes = sorted({outcomes.n_views for outcomes in strata})
    row["set_size"] = sizes[0] if len(sizes) == 1 else sizes
    row["counts"] = _counts(strata)
    return row


def _counts(strata: Sequence[Outcomes]) -> dict[str, int]:
    """What went in and what was left out where."""
    answers = {"unparsed": UNPARSED, "ties": TIE}
    kinds = {
        "gold_one": GOLD_ONE,
        "gold_several": GOLD_SEVERAL,
        "gold_tie": GOLD_TIE,
        "gold_none": GOLD_NONE,
    }
    counts = {
        "items": sum(len(s) for s in strata),
        "calls": sum(int(s.made.sum()) for s in strata),
        "missing": sum(int((s.choices == MISSING)[s.permutable].sum()) for s in strata),
        "not_permutable": sum(int((~s.permutable).sum()) for s in strata),
    }
    for name, code in answers.items():
        counts[name] = sum(int((s.choices == code).sum()) for s in strata)
    for name, kind in kinds.items():
        counts[name] = sum(int((s.gold_kind == kind).sum()) for s in strata)
    return counts


def difference(
    a: Sequence[Outcomes],
    b: Sequence[Outcomes],
    name: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    gold_ties: GoldTies = "exclude",
) -> Estimate:
    """A metric of `a` less the same metric of `b`, paired by item.

    Items are matched by id; those that count in only one of the two are left out, and a resample
    draws the same items on both sides.

    Args:
        a: Outcomes of one method, one entry per number of candidates.
        b: Outcomes of the other.
        name: A registered metric with a single value.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.
        gold_ties: As in `measure`.

    Returns:
        The difference with its interval; `n` is the number of items compared.

    Raises:
        UsageError: If the metric is a list of values.
    """
    metric = load_metrics([name])[name]
    pairs = _pairs(prepared(a, gold_ties), prepared(b, gold_ties))
    if len(pairs) > 1 and not metric.across:
        reason = "items have different numbers of candidates: compare each number by itself"
        return Estimate(value=None, reason=reason)
    blocks = [_paired_statistics(metric, left, right) for left, right in pairs]
    items = sum(int(counts.sum()) for _, counts in blocks)
    if not items:
        return Estimate(value=None, reason=f"no item counts in {name} on both sides")
    statistics = np.vstack([block for block, _ in blocks])
    counts = np.concatenate([counts for _, counts in blocks])
    limits = metric.limits(pairs[0][0].n)
    if limits is not None and _is_mean(statistics):
        apart = statistics[:, 1] - statistics[:, 3]
        low, high = paired_interval(apart, counts, span=limits[1] - limits[0])
        return Estimate(value=float(counts @ apart) / items, low=low, high=high, n=items)
    draws = np.full(resamples, items, dtype=np.int64)
    generator = np.random.default_rng([seed, 2])
    point = _less(metric, (counts @ statistics)[None, :], name)
    samples = _less(metric, resample_sums(statistics, counts, draws, generator), name)
    value = float(point[0])
    if not np.isfinite(value):
        return Estimate(value=None, n=items, reason=metric.undefined)
    span = None if limits is None else (limits[0] - limits[1], limits[1] - limits[0])
    bounds = interval(value, samples, n_items=items, limits=span)
    ends = bounds or (None, None)
    return Estimate(value=value, low=ends[0], high=ends[1], n=items)


def _is_mean(statistics: FloatArray) -> bool:
    """Whether both sides are plain means over items: 1 and the item's value."""
    return statistics.shape[1] == 4 and bool((statistics[:, [0, 2]] == 1.0).all())


def _pairs(a: Sequence[Outcomes], b: Sequence[Outcomes]) -> list[tuple[Outcomes, Outcomes]]:
    """The items that both sides have, in the order of `a`, per number of candidates."""
    of_b = {outcomes.n: outcomes for outcomes in b}
    pairs = []
    for left in a:
        right = of_b.get(left.n)
        if right is None:
            continue
        if left.item_ids == right.item_ids:
            pairs.append((left, right))
            continue
        row_of_id = {item: row for row, item in enumerate(right.item_ids)}
        common = [(i, row_of_id[x]) for i, x in enumerate(left.item_ids) if x in row_of_id]
        if common:
            index = np.array(common, dtype=np.intp)
            pairs.append((left.rows(index[:, 0]), right.rows(index[:, 1])))
    return pairs


def _paired_statistics(
    metric: Metric, left: Outcomes, right: Outcomes
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Statistics of both sides next to each other, one row per pattern, and the patterns' counts."""
    counts = np.ones(len(left), dtype=np.int64)
    if not metric.reads_probs:
        codes = np.column_stack([pattern_codes(left)[1], pattern_codes(right)[1]])
        first, pattern = unique_rows(codes.astype(np.int64))
        counts = np.bincount(pattern, minlength=len(first)).astype(np.int64)
        left, right = left.without_probs().rows(first), right.without_probs().rows(first)
    of_left, of_right = metric.statistics(left), metric.statistics(right)
    both = (of_left[:, 0] > 0) & (of_right[:, 0] > 0)
    return np.hstack([of_left, of_right])[both], counts[both]


def _less(metric: Metric, sums: FloatArray, name: str) -> FloatArray:
    width = sums.shape[1] // 2
    left, right = metric.values(sums[:, :width]), metric.values(sums[:, width:])
    if left.ndim != 1:
        raise UsageError(f"{name} is a list of values: it has no single difference.")
    return left - right
