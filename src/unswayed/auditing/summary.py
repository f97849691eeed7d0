"""metrics.json: every number of an audit, from one pool of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unswayed.auditing.contrasts import compare_methods
from unswayed.auditing.evaluation import CONSTRUCTED, Scored, direct_outcomes, score_method
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource
from unswayed.decisions import DecisionTable
from unswayed.methods.threshold import threshold_view
from unswayed.metrics import flips, measure, measure_groups, self_check
from unswayed.metrics.outcomes import Outcomes

__all__ = ["evaluate"]


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
    differences, recommendation = compare_methods(plan, tables, scored, methods, options)
    return {
        "protocols": protocols,
        "methods": methods,
        "differences": differences,
        "recommendation": recommendation.to_json(),
        "groups": groups,
        "macro": macro,
        "skipped": dict(plan.skipped),
        "cautions": {name: _cautions(one) for name, one in scored.items() if one.cautions},
        "flips": _flips(scored["direct"].outcomes),
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


def _flips(outcomes: Sequence[Outcomes]) -> dict[str, int]:
    """How many items change their verdict with the order: those that are not consistent.

    Returns:
        `total` of `n` items asked in every presentation; `first` and `last` of these chose that
        position every time, `unread` have an answer that could not be read, `ties` a tie.
    """
    found = flips(outcomes)
    return {
        "total": found.flipped,
        "n": found.items,
        "first": found.first,
        "last": found.last,
        "unread": found.unread,
        "ties": found.ties,
    }
