"""One audit from beginning to end: plan, make the missing calls, evaluate, write."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from unswayed.auditing.comparison import ANSWERS_FILE, answers_of
from unswayed.auditing.measurement import metrics_of, run_of
from unswayed.auditing.planning import (
    AuditPlan,
    calls_of,
    estimation_questions_of,
    plan_audit,
    plan_warnings,
    questions_of,
    with_samples,
    without_probabilities,
)
from unswayed.auditing.pool import (
    DecisionSource,
    build_tables,
    noting_refusals,
    remembering,
    sampled,
)
from unswayed.auditing.records import Metrics, Prompt, Run
from unswayed.auditing.rows import as_json
from unswayed.auditing.run_directory import json_text, write_sums, write_text
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import Backend
from unswayed.calibration import answers_are_labels, prompts_for
from unswayed.decisions import Decision, DecisionTable
from unswayed.items import ItemSet
from unswayed.presentation import Ask
from unswayed.prompts import PromptSettings, check_prompts, prompt_fingerprint
from unswayed.runner import (
    CallPlan,
    Progress,
    Question,
    RunCounts,
    RunSettings,
    enough_usd,
    make_calls,
    plan_calls,
    read_decisions,
)
from unswayed.store import CallStore

__all__ = [
    "Asked",
    "AuditRecord",
    "ask_model",
    "audit_model",
    "measure_pool",
    "plan_for",
    "price_audit",
    "read_from",
    "run_settings_for",
    "write_record",
]


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """What an audit found.

    Attributes:
        metrics: The content of `metrics.json`.
        run: The content of `run.json`.
        plan: What was asked.
        tables: The pool, one table per stratum.
        source: Reads single decisions back.
        prompts: How items were asked; None for recorded decisions.
    """

    metrics: Metrics
    run: Run
    plan: AuditPlan
    tables: tuple[DecisionTable, ...]
    source: DecisionSource
    prompts: PromptSettings | None


@dataclass(frozen=True, eq=False)
class Asked:
    """An audit whose calls are made: everything `measure_pool` needs, and nothing is asked any more.

    Attributes:
        how: Prompts and sampling of the calls.
        failures: What went wrong, in sentences; empty if nothing did.
        created: When it began, ISO 8601.
        started: The same on the monotonic clock, in seconds.
        server: The address calls went to; None for local models.
        needed_usd: A budget that reaches for the calls that a stopped run did not make.
    """

    items: ItemSet
    plan: AuditPlan
    how: RunSettings
    model: str
    counts: RunCounts
    warnings: tuple[str, ...]
    failures: tuple[str, ...]
    created: str
    started: float
    server: str | None = None
    needed_usd: float | None = None


def run_settings_for(
    settings: AuditSettings, backend: Backend, *, budget_usd: float | None = None
) -> RunSettings:
    """How calls are made; a model that understands only its own sentences gets its own template."""
    return RunSettings(
        prompts=prompts_for(backend, settings.prompts),
        sample_temperature=settings.sample_temperature,
        budget_usd=budget_usd,
    )


def plan_for(items: ItemSet, settings: AuditSettings, backend: Backend) -> AuditPlan:
    """The plan for a model: what it can give decides which methods run.

    Raises:
        UnswayedError: If an option does not fit the items, or the first item cannot be asked.
    """
    prompts = prompts_for(backend, settings.prompts)
    return plan_audit(
        items,
        settings,
        gives_probs=backend.gives_logprobs and answers_are_labels(items[0], prompts),
        unknown_words=backend.template is not None,
    )


def price_audit(
    items: ItemSet, settings: AuditSettings, backend: Backend, store: CallStore
) -> CallPlan:
    """Distinct calls, tokens and cost of an audit, without making a call."""
    plan = plan_for(items, settings, backend)
    how = run_settings_for(settings, backend)
    check_prompts(items.items, how.prompts)  # what the run itself would refuse
    return plan_calls(calls_of(plan), backend, store, how)


async def audit_model(
    items: ItemSet,
    settings: AuditSettings,
    backend: Backend,
    store: CallStore,
    *,
    command: str,
    budget_usd: float | None = None,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
) -> AuditRecord:
    """Ask what is missing, then measure everything from the pool; see the two halves.

    Args:
        items: With gold where it is known.
        settings: What is asked for.
        backend: The model.
        store: The pool of recorded calls.
        command: The command that reproduces the run, without keys.
        budget_usd: Spend no more than this.
        progress: Shown while calls are made.
        stop: Set to stop making calls.

    Raises:
        UnswayedError: For input that cannot be audited; failed calls are counted, never raised.
    """
    asked = await ask_model(
        items, settings, backend, store, budget_usd=budget_usd, progress=progress, stop=stop
    )
    return measure_pool(asked, store, command=command)


async def ask_model(
    items: ItemSet,
    settings: AuditSettings,
    backend: Backend,
    store: CallStore,
    *,
    budget_usd: float | None = None,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
) -> Asked:
    """Plan the audit and make the calls that are missing; arguments as for `audit_model`."""
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    started = time.monotonic()
    plan = plan_for(items, settings, backend)
    how = run_settings_for(settings, backend, budget_usd=budget_usd)
    warnings = [*plan_warnings(plan, items), *check_prompts(items.items, how.prompts)]
    store.bind(model=backend.model, items=items)
    needed = None
    counts = await make_calls(calls_of(plan), backend, store, how, progress=progress, stop=stop)
    if store.damaged:
        warnings.append(
            f"{store.damaged:,} recorded answers were damaged and were asked for again."
        )
    if counts.interrupted or counts.budget_spent or counts.fatal:
        # it stopped early, so the runner has met a part of the calls only
        left = plan_calls(calls_of(plan), backend, store, how)
        counts.planned = max(counts.planned, left.n_distinct)
        needed = (
            None if left.most_cost_usd is None else store.totals().cost_usd + left.most_cost_usd
        )
    return Asked(
        items=items,
        plan=plan,
        how=how,
        model=backend.model,
        counts=counts,
        warnings=(*warnings, *backend.remarks),
        server=backend.server,
        failures=tuple(_failures(counts, store, budget_usd, needed)),
        needed_usd=None if needed is None else enough_usd(needed),
        created=created,
        started=started,
    )


def _failures(
    counts: RunCounts, store: CallStore, budget_usd: float | None, needed_usd: float | None
) -> Iterator[str]:
    """Why calls are missing and what to do, one sentence for each cause."""
    if counts.fatal is not None:
        yield f"stopped: {counts.fatal}"
    elif counts.failed:
        last = deque(store.failures(), maxlen=1)
        example = f", such as {last[0].failure.message}" if last else ""
        yield (
            f"{counts.failed:,} of {counts.planned:,} calls failed{example.rstrip('.')}. "
            "The same command tries them again."
        )
    if counts.unknown_usage:
        yield (
            f"{counts.unknown_usage:,} answers came without possible token counts: they are in no "
            "count of tokens, and in the cost with the most that they can cost."
        )
    if counts.budget_spent:
        left = counts.planned - counts.made - counts.cached - counts.failed
        yield (
            f"the budget of ${budget_usd:g} does not reach for the next call: {left:,} of "
            f"{counts.planned:,} calls were not made. A budget of "
            f"${enough_usd(needed_usd or 0.0):g} reaches for all of them; what is made is kept."
        )


def read_from(asked: Asked, store: CallStore) -> DecisionSource:
    """A source of the audit's decisions that reads the calls recorded in a store."""
    samples = asked.plan.samples

    def read(questions: Iterable[Question]) -> Iterator[Decision]:
        wanted = with_samples(questions, samples)
        found = read_decisions(wanted, store, asked.how, model=asked.model)
        return found if samples is None else sampled(found, samples)

    return read


def measure_pool(asked: Asked, store: CallStore, *, command: str) -> AuditRecord:
    """Measure everything from the pool; pure but for reading the store."""
    read, counts, plan = read_from(asked, store), asked.counts, asked.plan
    refused: set[tuple[str, Ask]] = set()
    decisions = noting_refusals(read(questions_of(plan)), refused)
    tables = build_tables(plan.strata, decisions, methods=plan.methods.values())
    plan, warnings = without_probabilities(plan, tables)
    source = remembering(read, estimation_questions_of(plan))
    metrics = metrics_of(
        asked.model, asked.items, plan, counts, tables, source, refused=len(refused)
    )
    warnings = [*asked.failures, *asked.warnings, *_refusals(len(refused)), *warnings]
    run = msgspec.structs.replace(
        run_of(
            command,
            metrics,
            asked.items,
            plan,
            tables,
            created=asked.created,
            warnings=warnings,
        ),
        prompt=Prompt(
            name=asked.how.prompts.prompt, fingerprint=prompt_fingerprint(asked.how.prompts)
        ),
        prompt_settings=as_json(asked.how.prompts),
        time_s=round(time.monotonic() - asked.started, 2),
        server=asked.server,
        finished=not (counts.interrupted or counts.budget_spent or counts.fatal),
        fatal=counts.fatal,
        interrupted=counts.interrupted,
        budget_spent=counts.budget_spent,
        failures=asked.failures,
        budget_to_finish=asked.needed_usd if counts.budget_spent else None,
    )
    return AuditRecord(metrics, run, plan, tables, source, asked.how.prompts)


def _refusals(refused: int) -> Iterator[str]:
    if refused:
        yield (
            f"{refused:,} answers were refused by the model or by a filter: they are no verdicts, "
            "whatever they say, and count as unparsed."
        )


def write_record(directory: Path, record: AuditRecord) -> None:
    """Write `run.json`, `metrics.json` and the single calls, each whole or not at all, and their sums."""
    write_text(directory / "run.json", json_text(record.run.to_json()))
    write_text(directory / "metrics.json", json_text(as_json(record.metrics)))
    answers = msgspec.json.encode(answers_of(record.plan, record.tables))
    write_text(directory / ANSWERS_FILE, answers.decode("utf-8"))
    write_sums(directory)
