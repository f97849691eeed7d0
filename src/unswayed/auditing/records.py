"""What `metrics.json` and `run.json` say of every audit, made of calls or of recorded decisions."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

import unswayed
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource, with_content
from unswayed.auditing.run_directory import package_versions
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.summary import evaluate
from unswayed.decisions import UNPARSED, DecisionTable
from unswayed.items import ItemSet
from unswayed.runner import RunCounts

__all__ = ["labels_of", "metrics_record", "run_record"]


def metrics_record(
    model: str,
    items: ItemSet,
    plan: AuditPlan,
    counts: RunCounts,
    tables: Sequence[DecisionTable],
    source: DecisionSource,
    *,
    refused: int,
) -> dict[str, Any]:
    """The content of `metrics.json`, for calls made and for recorded decisions alike."""
    return {
        "unswayed": unswayed.__version__,
        "model": model,
        "data": data_record(items),
        "protocol": protocol_record(plan),
        "calls": call_record(counts, tables, refused=refused),
        **evaluate(plan, tables, source),
    }


def labels_of(tables: Sequence[DecisionTable]) -> list[str]:
    """The label set of the items with most candidates; letters where numbers are used as well."""
    lettered = [table for table in tables if table.n <= len(string.ascii_uppercase)]
    return list(max(lettered or tables, key=lambda table: table.n).label_set)


def data_record(items: ItemSet) -> dict[str, Any]:
    """The `data` section."""
    return {
        "name": items.name,
        "n_items": len(items),
        "task": items.task.value,
        "bad_lines": len(items.bad_lines),
        "not_permutable": sum(not item.permutable for item in items),
        "no_gold": sum(not item.gold_candidates() and item.gold != "tie" for item in items),
        "gold_ties": sum(item.gold == "tie" for item in items),
    }


def protocol_record(plan: AuditPlan) -> dict[str, Any]:
    """The `protocol` section."""
    return {
        "name": plan.orders,
        "protocols": list(plan.strata[0].protocols),
        "n_presentations": max(len(stratum.views) for stratum in plan.strata),
        "n_candidates": sorted(stratum.n for stratum in plan.strata),
    }


def call_record(
    counts: RunCounts, tables: Sequence[DecisionTable], *, refused: int
) -> dict[str, Any]:
    """The `calls` section."""
    tables = [with_content(table) for table in tables]
    masses = [table.label_mass for table in tables if table.label_mass is not None]
    mass = [part[~np.isnan(part)] for part in masses]
    known = np.concatenate(mass) if mass else np.array([])
    return {
        "planned": counts.planned,
        "made": counts.made,
        "cached": counts.cached,
        "failed": counts.failed,
        "unparsed": sum(int((table.choices == UNPARSED).sum()) for table in tables),
        "refused": refused,
        "input_tokens": counts.input_tokens,
        "output_tokens": counts.output_tokens,
        "cost_usd": counts.cost_usd,
        "unknown_usage": counts.unknown_usage,
        "label_mass": float(known.mean()) if known.size else None,
    }


def run_record(command: str, model: str, items: ItemSet, plan: AuditPlan) -> dict[str, Any]:
    """What `run.json` says of every audit."""
    settings = plan.settings
    return {
        "version": unswayed.__version__,
        "command": command,
        "model": model,
        "data": _described(items),
        "task": items.task.value,
        "protocol": protocol_record(plan),
        "intervals": f"95 %, percentile bootstrap over items, {settings.resamples} resamples, "
        f"seed {settings.seed}",
        "settings": settings_record(settings),
        "seed": settings.seed,
        "packages": package_versions(),
    }


def _described(items: ItemSet) -> dict[str, Any]:
    """The data in `run.json`: name, size, fingerprint, and what is unusual about them."""
    unusual = {
        name.replace("_", " "): value
        for name, value in data_record(items).items()
        if name not in {"name", "n_items", "task"} and value
    }
    return {
        "name": items.name,
        "n_items": len(items),
        "fingerprint": items.fingerprint,
        **unusual,
    }


def settings_record(settings: AuditSettings) -> dict[str, Any]:
    """The settings that determine the figures."""
    return {
        "methods": list(settings.methods),
        "orders": settings.orders,
        "protocol": settings.protocol,
        "probs": settings.probs,
        "estimation_items": settings.estimation_items,
        "estimation_sizes": list(settings.estimation_sizes),
        "group_by": settings.group_by,
        "resamples": settings.resamples,
        "gold_ties": settings.gold_ties,
        "sample_temperature": settings.sample_temperature,
    }
