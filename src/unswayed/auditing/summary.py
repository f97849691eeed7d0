"""metrics.json: every number of an audit, from one pool of decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from unswayed.auditing.evaluation import (
    Scored,
    average_of_everything,
    direct_outcomes,
    score_method,
    with_reference,
)
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource, with_content
from unswayed.auditing.recommendation import Candidate, Recommendation, recommend
from unswayed.decisions import MISSING, UNPARSED, DecisionTable, Estimate
from unswayed.methods.threshold import threshold_view
from unswayed.metrics import difference, measure, measure_groups, self_check
from unswayed.metrics.outcomes import Outcomes

__all__ = ["evaluate"]

CONSTRUCTED = frozenset(
    {
        "ckld",
        "ckld_raw",
        "consistency",
        "fleiss_kappa",
        "icc2k",
        "icc3k",
        "label_bias",
        "label_rate",
        "pairwise_agreement",
        "position_bias",
        "position_rate",
        "primacy",
        "rstd",
        "within_item_sd",
    }
)
"""Metrics that compare presentations with each other: empty of evidence where all read the same."""

COMPARED = ("accuracy", "consistency", "consistent_accuracy", "rstd")
AGREEMENT = "agreement with the average over the full pool"


def evaluate(
    plan: AuditPlan, tables: Sequence[DecisionTable], source: DecisionSource
) -> dict[str, Any]:
    """All sections of `metrics.json` that come from decisions."""
    settings = plan.settings
    options: dict[str, Any] = {
        "resamples": settings.resamples,
        "seed": settings.seed,
        "gold_ties": settings.gold_ties,
    }
    scored = {
        name: score_method(
            method,
            plan.strata,
            tables,
            source,
            estimation_items=settings.estimation_items,
            group_by=settings.group_by,
            samples=plan.samples,
        )
        for name, method in plan.methods.items()
    }
    protocols = {
        protocol: measure(
            direct_outcomes(plan.strata, tables, protocol, group_by=settings.group_by), **options
        )
        for protocol in plan.strata[0].protocols
    }
    methods = {name: _row(one, options) for name, one in scored.items()}
    groups, macro = _groups(scored, options)
    differences, recommendation = _compare(plan, tables, scored, methods, options)
    return {
        "protocols": protocols,
        "methods": methods,
        "differences": differences,
        "recommendation": recommendation.to_json(),
        "groups": groups,
        "macro": macro,
        "skipped": dict(plan.skipped),
        "cautions": {name: _cautions(one) for name, one in scored.items() if one.cautions},
        "flips": flip_counts(scored["direct"].outcomes),
        **_thresholds(plan, tables, scored),
        **_estimation_curve(plan, tables, source, options),
    }


def _thresholds(
    plan: AuditPlan, tables: Sequence[DecisionTable], scored: Mapping[str, Scored]
) -> dict[str, Any]:
    """For two candidates: every single-call method as a threshold on P(A), and the oracle's."""
    for stratum, table in zip(plan.strata, tables, strict=True):
        if stratum.n != 2 or table.probs is None:
            continue
        fitted = [
            one.fitted[0] if one.fitted else plan.methods[name] for name, one in scored.items()
        ]
        own = [method for method in fitted if len(method.asks(2)) == 1]
        right = [item.gold_candidates() for item in stratum.items]
        gold = [one[0] if len(one) == 1 else None for one in right]
        return {"thresholds": msgspec.to_builtins(threshold_view(own, table, gold))}
    return {}


def _estimation_curve(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    source: DecisionSource,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """How good fitted methods are with fewer or more estimation items, from the same pool."""
    sizes = plan.settings.estimation_sizes
    if not sizes:
        return {}
    curve: dict[str, list[dict[str, Any]]] = {}
    for name, method in plan.methods.items():
        if not method.fitted_from:
            continue
        for size in sizes:
            one = score_method(
                method,
                plan.strata,
                tables,
                source,
                estimation_items=size,
                group_by=plan.settings.group_by,
                samples=plan.samples,
            )
            row = measure(one.outcomes, names=["accuracy", "consistency", "rstd"], **options)
            calls = one.costs.calls_per_item_amortised
            curve.setdefault(name, []).append(
                {
                    "estimation_items": size,
                    "calls_per_item_amortised": calls,
                    # items with different numbers of candidates have no RStd over all
                    **{m: row[m] for m in ("accuracy", "consistency", "rstd") if m in row},
                }
            )
    return {"estimation_curve": curve}


def _cautions(scored: Scored) -> list[str]:
    """What fitting warned about: the first sentence, and how many folds said alike."""
    first, *others = scored.cautions
    return [first if not others else f"{first} ({len(others)} more folds warn alike.)"]


def _row(scored: Scored, options: Mapping[str, Any]) -> dict[str, Any]:
    constructed = CONSTRUCTED if scored.by_construction else frozenset()
    row = measure(scored.outcomes, by_construction=constructed, **options)
    self_check(row, scored.outcomes)
    costs = scored.costs
    return {
        "calls_per_item": costs.calls_per_item,
        "calls_per_item_amortised": costs.calls_per_item_amortised,
        "estimation_calls": costs.estimation_calls,
        **row,
    }


def _groups(
    scored: Mapping[str, Scored], options: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    macro: dict[str, Any] = {}
    first = next(iter(scored.values()))
    if all(group is None for part in first.outcomes for group in part.groups):
        return groups, macro
    for name, one in scored.items():
        constructed = CONSTRUCTED if one.by_construction else frozenset()
        rows, average = measure_groups(one.outcomes, by_construction=constructed, **options)
        for group, row in rows.items():
            groups.setdefault(group, {})[name] = row
        macro[name] = average
    return groups, macro


def _compare(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    scored: Mapping[str, Scored],
    methods: dict[str, dict[str, Any]],
    options: Mapping[str, Any],
) -> tuple[dict[str, dict[str, Any]], Recommendation]:
    """Paired differences to the single call and to the best method, and the recommendation."""
    against: Mapping[str, Sequence[Outcomes]] = {name: one.outcomes for name, one in scored.items()}
    candidates = set(scored)
    criterion = "accuracy"
    if _value(methods["direct"].get("accuracy")) is None:
        criterion = AGREEMENT
        reference = average_of_everything(plan.strata, tables)
        against = {
            name: [with_reference(o, r) for o, r in zip(some, reference, strict=True)]
            for name, some in against.items()
        }
        for name, some in against.items():
            methods[name]["agreement"] = measure(some, names=["accuracy"], **options)["accuracy"]
        candidates = {name for name in scored if _reads_less_than_everything(plan, name)}
    key = "accuracy" if criterion == "accuracy" else "agreement"
    ranked = {
        name: Candidate(name, float(methods[name]["calls_per_item_amortised"]), value)
        for name in scored
        if name in candidates and (value := _value(methods[name].get(key))) is not None
    }
    judged = {name: one.outcomes for name, one in scored.items()}

    def gain(first: str, second: str) -> Estimate:
        return mirrored(against, first, second, "accuracy", options)

    recommendation = recommend(
        ranked,
        gain,
        criterion=criterion,
        n_items=len(plan.items),
        unparsed=_share(tables, UNPARSED),
        missing=_missing_share(scored["direct"].outcomes),
    )
    if criterion == AGREEMENT:
        recommendation = _or_the_yardstick(recommendation, plan, methods)
    names = [name for name in scored if name != "direct"]
    pairs = [(name, "direct") for name in names]
    for other in dict.fromkeys((recommendation.best, recommendation.method)):
        if other is None or other == "direct":
            continue
        pairs.extend((name, other) for name in scored if name != other)
    differences: dict[str, dict[str, Any]] = {}
    for first, second in pairs:
        made = differences.setdefault(f"{first}-{second}", {})
        for metric in COMPARED:
            estimate = mirrored(judged, first, second, metric, options)
            if metric in CONSTRUCTED and (
                scored[first].by_construction or scored[second].by_construction
            ):
                estimate = msgspec.structs.replace(estimate, by_construction=True)
            made[metric] = msgspec.to_builtins(estimate)
        if criterion == AGREEMENT:
            made["agreement"] = msgspec.to_builtins(gain(first, second))
    return differences, recommendation


def mirrored(
    outcomes: Mapping[str, Sequence[Outcomes]],
    first: str,
    second: str,
    metric: str,
    options: Mapping[str, Any],
) -> Estimate:
    """The paired difference, first minus second: resampled one way round, so that turning it
    round turns the interval round exactly.
    """
    if first <= second:
        return difference(outcomes[first], outcomes[second], metric, **options)
    found = difference(outcomes[second], outcomes[first], metric, **options)
    value, low, high = (None if x is None else -x for x in (found.value, found.high, found.low))
    return msgspec.structs.replace(found, value=value, low=low, high=high)


def _reads_less_than_everything(plan: AuditPlan, name: str) -> bool:
    """Whether a method reads fewer calls than the yardstick, the average over the full pool."""
    method = plan.methods[name]
    return any(len(method.asks(stratum.n)) < len(stratum.views) for stratum in plan.strata)


def _or_the_yardstick(
    found: Recommendation, plan: AuditPlan, methods: Mapping[str, Mapping[str, Any]]
) -> Recommendation:
    """Without gold: the yardstick itself, where even the best cheaper choice is a single call that
    measurably disagrees with it.
    """
    if found.method != "direct":
        return found
    high = (methods["direct"].get("agreement") or {}).get("high")
    if high is None or high >= 1:
        return found
    for name in ("average", "vote"):
        if name in plan.methods and not _reads_less_than_everything(plan, name):
            reason = "no cheaper method agrees with it closely enough"
            return Recommendation(name, reason, found.criterion, best=name)
    return found


def _value(estimate: object) -> float | None:
    value = estimate.get("value") if isinstance(estimate, dict) else None
    return None if value is None else float(value)


def _share(tables: Sequence[DecisionTable], code: int) -> float:
    tables = [with_content(table) for table in tables]
    asked = sum(int((table.choices != MISSING).sum()) for table in tables)
    return sum(int((table.choices == code).sum()) for table in tables) / max(asked, 1)


def _missing_share(outcomes: Sequence[Outcomes]) -> float:
    cells = missing = 0
    for part in outcomes:
        wanted = np.ones(part.choices.shape, dtype=bool)
        wanted[~part.permutable, 1:] = False
        cells += int(wanted.sum())
        missing += int(((part.choices == MISSING) & wanted).sum())
    return missing / max(cells, 1)


def flip_counts(outcomes: Sequence[Outcomes]) -> dict[str, int]:
    """How many items change their verdict with the order, and to which position they cling.

    Returns:
        `total`: items whose readable verdicts (a tie is one) differ between presentations, of `n`
        items asked in all of them; `first` and `last` of these chose that position every time.
    """
    counts = Counter(total=0, n=0, first=0, last=0)
    for part in outcomes:
        if part.n_views < 2:
            continue
        read = (part.choices != UNPARSED).all(axis=1) & part.complete
        flipped = read & (part.choices != part.choices[:, :1]).any(axis=1)
        named = np.maximum(part.choices, 0)
        at = part.positions_by_candidate[np.arange(part.n_views)[None, :], named]
        at = np.where(part.choices >= 0, at, -1)
        counts["n"] += int(part.complete.sum())
        counts["total"] += int(flipped.sum())
        counts["first"] += int((flipped & (at == 0).all(axis=1)).sum())
        counts["last"] += int((flipped & (at == part.n - 1).all(axis=1)).sum())
    return dict(counts)
