"""metrics.json: every number of an audit, from one pool of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unswayed.auditing.contrasts import compare_methods
from unswayed.auditing.evaluation import Scored, direct_outcomes, score_method
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource
from unswayed.decisions import DecisionTable
from unswayed.methods import BASE
from unswayed.methods.threshold import threshold_view
from unswayed.metrics import METRICS, Options, Row, flips, measure, measure_groups, self_check
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rows import cells

__all__ = ["evaluate"]


def evaluate(
    plan: AuditPlan, tables: Sequence[DecisionTable], source: DecisionSource
) -> dict[str, Any]:
    """All sections of `metrics.json` that come from decisions."""
    settings = plan.settings
    options = Options(
        resamples=settings.resamples, seed=settings.seed, gold_ties=settings.gold_ties
    )
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
    rows = {name: _row(own, options) for name, own in scored.items()}
    groups, macro = _groups(scored, options)
    comparison = compare_methods(plan, tables, scored, rows, options)
    return {
        "protocols": {protocol: row.to_json() for protocol, row in protocols.items()},
        "methods": {
            name: {
                **msgspec.to_builtins(scored[name].costs),
                **row.to_json(),
                **msgspec.to_builtins(comparison.beside.get(name, {})),
            }
            for name, row in rows.items()
        },
        "differences": {
            "-".join(pair): msgspec.to_builtins(values)
            for pair, values in comparison.differences.items()
        },
        "recommendation": msgspec.to_builtins(comparison.recommendation),
        "groups": groups,
        "macro": macro,
        "skipped": dict(plan.skipped),
        "cautions": {name: _cautions(own) for name, own in scored.items() if own.cautions},
        "flips": _flips(scored[BASE].outcomes),
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
            own.fitted[0] if own.fitted else plan.methods[name] for name, own in scored.items()
        ]
        single = [method for method in fitted if len(method.asks(2)) == 1]
        rights = [item.gold_candidates() for item in stratum.items]
        gold = [right[0] if len(right) == 1 else None for right in rights]
        return {"thresholds": msgspec.to_builtins(threshold_view(single, table, gold))}
    return {}


def _estimation_curve(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    source: DecisionSource,
    options: Options,
) -> dict[str, Any]:
    """How good fitted methods are with fewer or more estimation items, from the same pool."""
    sizes = plan.settings.estimation_sizes
    if not sizes:
        return {}
    followed = [name for name in METRICS if METRICS.load(name).curve]
    curve: dict[str, list[dict[str, Any]]] = {}
    for name, method in plan.methods.items():
        if not method.fitted_from:
            continue
        for size in sizes:
            scored = score_method(
                method,
                plan.strata,
                tables,
                source,
                estimation_items=size,
                group_by=plan.settings.group_by,
                samples=plan.samples,
            )
            # items with different numbers of candidates have no RStd over all
            row = measure(scored.outcomes, names=followed, **options)
            point = {
                "estimation_items": size,
                "calls_per_item_amortised": scored.costs.calls_per_item_amortised,
                **cells(row.estimates),
            }
            curve.setdefault(name, []).append(point)
    return {"estimation_curve": curve}


def _cautions(scored: Scored) -> list[str]:
    """What fitting warned about: the first sentence, and how many folds said alike."""
    first, *others = scored.cautions
    return [first if not others else f"{first} ({len(others)} more folds warn alike.)"]


def _row(scored: Scored, options: Options) -> Row:
    row = measure(scored.outcomes, constructed=scored.by_construction, **options)
    self_check(row, scored.outcomes)
    return row


def _groups(
    scored: Mapping[str, Scored], options: Options
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    macro: dict[str, Any] = {}
    for name, own in scored.items():
        rows, average = measure_groups(own.outcomes, constructed=own.by_construction, **options)
        for group, row in rows.items():
            groups.setdefault(group, {})[name] = row.to_json()
        if average is not None:
            macro[name] = average.to_json()
    return groups, macro


def _flips(outcomes: Sequence[Outcomes]) -> dict[str, int]:
    """How many items change their verdict with the order: those that are not consistent.

    Returns:
        `total` of `n` items asked in every presentation; `first` and `last` of these chose that
        position every time, `unread` have an answer that could not be read, `ties` a tie.
    """
    counts = flips(outcomes)
    return {
        "total": counts.flipped,
        "n": counts.items,
        "first": counts.first,
        "last": counts.last,
        "unread": counts.unread,
        "ties": counts.ties,
    }
