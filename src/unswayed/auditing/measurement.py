"""The records of an audit, made of calls or of recorded decisions."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource, with_content
from unswayed.auditing.records import (
    CallsRecord,
    DataRecord,
    Metrics,
    Protocol,
    RunItems,
    RunRecord,
)
from unswayed.auditing.run_directory import package_versions
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.summary import evaluate
from unswayed.backends import BackendSettings, local_options
from unswayed.backends.addresses import shown_address
from unswayed.base.version import VERSION
from unswayed.calls import RunCounts
from unswayed.metrics.gold import GOLD_NONE, GOLD_TIE
from unswayed.metrics.repeats import FEWEST, Repeats, repeats
from unswayed.model.decisions import DISAGREES, MISSING, REASKED, UNPARSED, DecisionTable
from unswayed.model.parsing import Ending, ending
from unswayed.prompts import PromptSettings


def metrics_of(
    model: str,
    plan: AuditPlan,
    counts: RunCounts,
    source: DecisionSource,
    *,
    endings: Mapping[str, int],
    temperature: float | None = None,
) -> Metrics:
    """Build the content of `metrics.json`; `endings` counts finish reasons of unread replies.

    `temperature` is that of the repeated samples, where it is known.
    """
    return msgspec.structs.replace(
        evaluate(plan, source),
        unswayed=VERSION,
        model=model,
        data=_data(plan),
        protocol=Protocol(
            name=plan.orders,
            protocols=tuple(plan.strata[0].protocols),
            n_presentations=max(len(stratum.views) for stratum in plan.strata),
            n_candidates=tuple(sorted(stratum.n for stratum in plan.strata)),
        ),
        calls=_calls(plan, counts, endings),
        repeats=_repeats(plan, temperature),
    )


def _repeats(plan: AuditPlan, temperature: float | None) -> Repeats | UnsetType:
    """Measure repeat noise: sample 0 of an own call is greedy, and has a law of its own; of
    recorded decisions nothing says so, and it is a repetition like the others.
    """
    numbers = sorted({ask.sample for stratum in plan.strata for ask in stratum.table.asks} - {0})
    if temperature is None:
        numbers = [0, *numbers]
    if len(numbers) < FEWEST:
        return UNSET
    samples = []
    for stratum in plan.strata:
        shown = stratum.protocol_asks("coupled")
        asks = [ask._replace(sample=number) for ask in shown for number in numbers]
        seen = stratum.table.select(asks)
        choices = np.where(seen.allowed, seen.choices, np.int16(MISSING))
        samples.append((choices.reshape(len(seen), len(shown), -1), stratum.clusters))
    return repeats(samples, temperature)


def _data(plan: AuditPlan) -> DataRecord:
    items = plan.items
    kinds = np.concatenate([stratum.unanswered.gold_kind for stratum in plan.strata])
    criteria = [item.criterion for item in items.items]
    return DataRecord(
        name=items.name,
        n_items=len(items),
        n_units=len(set(items.units)),
        task=items.task.value,
        bad_lines=len(items.bad_lines),
        not_permutable=sum(not item.permutable for item in items),
        no_gold=int((kinds == GOLD_NONE).sum()),
        gold_ties=int((kinds == GOLD_TIE).sum()),
        criteria=dict(Counter(filter(None, criteria))) or UNSET,
    )


def _calls(plan: AuditPlan, counts: RunCounts, endings: Mapping[str, int]) -> CallsRecord:
    tables = [with_content(stratum.table) for stratum in plan.strata]
    parts = [table.label_mass for table in tables if table.label_mass is not None]
    masses = np.concatenate([part[~np.isnan(part)] for part in parts]) if parts else np.array([])
    disagree, reasked = _marked(tables, DISAGREES), _marked(tables, REASKED)
    n = max(table.n for table in tables)
    return msgspec.structs.replace(
        msgspec.convert(counts, CallsRecord, from_attributes=True),
        replies=sum(int((table.choices != MISSING).sum()) for table in tables),
        unparsed=sum(int((table.choices == UNPARSED).sum()) for table in tables),
        refused=sum(n for word, n in endings.items() if ending(word) is Ending.REFUSED),
        broken={w: n for w, n in sorted(endings.items()) if ending(w) is Ending.BROKEN},
        disagree=disagree.total(),
        disagree_positions=_by_position(disagree, n),
        reasked=reasked.total(),
        reasked_read=reasked.total() - reasked[UNPARSED],
        reasked_positions=_by_position(reasked, n),
        label_mass=float(masses.mean()) if masses.size else None,
    )


def _marked(tables: Sequence[DecisionTable], mark: int) -> Counter[int]:
    """Count marked replies by the displayed position of the verdict, or its code without one."""
    return Counter(
        code if code < 0 else shown.position_of_candidate(code)
        for table in tables
        for shown, choices, marked in zip(
            table.shown, table.choices.T, table.marked(mark).T, strict=True
        )
        for code in choices[marked].tolist()
    )


def _by_position(counts: Counter[int], n: int) -> tuple[int, ...]:
    return tuple(counts[position] for position in range(n)) if counts else ()


def run_of(
    command: str, metrics: Metrics, plan: AuditPlan, *, created: str, warnings: Sequence[str]
) -> RunRecord:
    """Return the fields of `run.json` that every audit has."""
    settings = plan.settings
    return RunRecord(
        version=VERSION,
        command=command,
        model=metrics.model,
        data=msgspec.structs.replace(
            msgspec.convert(metrics.data, RunItems, from_attributes=True),
            fingerprint=plan.items.fingerprint,
            origin=dict(plan.items.origin),
            read_as=plan.items.read_as,
        ),
        task=plan.items.task.value,
        protocol=metrics.protocol,
        intervals=f"95%: values by a bootstrap over items, {settings.resamples:,} resamples, "
        f"seed {settings.seed}; differences by Student's t over items",
        settings=_settings(settings),
        seed=settings.seed,
        packages=package_versions(),
        labels=_labels([stratum.table for stratum in plan.strata]),
        created=created,
        calls=metrics.calls,
        warnings=tuple(warnings),
    )


def asked_for(
    model: str,
    reach: BackendSettings,
    prompts: PromptSettings,
    directory: Path | None,
    given: Mapping[str, str | int | float | None],
) -> dict[str, str | int | float | bool]:
    """Return the options of an audit for `run.json`; defaults are left out."""
    named: dict[str, str | int | float | bool | None] = {
        "model": model,
        "directory": None if directory is None else str(directory),
        "prompt": prompts.prompt,
        "template": prompts.template,
        "labels": None if prompts.label_set is None else ",".join(prompts.label_set),
        "base_url": shown_address(reach.base_url or "") or None,
        "extra_body": reach.extra_body,
        **local_options(reach),
        **given,
    }
    if prompts.shots and not named.get("shots"):
        named["shots"] = ""  # they have no name, so no command can show them
    return {name: value for name, value in named.items() if value is not None}


def _labels(tables: Sequence[DecisionTable]) -> tuple[str, ...]:
    """Return the label set of the items with most candidates; letters where numbers are used as well."""
    lettered = [table for table in tables if table.n <= len(string.ascii_uppercase)]
    return max(lettered or tables, key=lambda table: table.n).label_set


def _settings(settings: AuditSettings) -> dict[str, Any]:
    """Return the settings that determine the figures; seed and prompts are recorded by themselves."""
    named = {field.name: getattr(settings, field.name) for field in fields(settings)}
    named["protocol"] = settings.protocol or "coupled"
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in named.items()
        if name not in ("seed", "prompts", "batch")
    }
