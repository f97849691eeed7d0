"""Audits from their items to their run directory: the one door of the command line and of Python."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import msgspec

from unswayed.auditing.audit import (
    Audit,
    AuditedCalls,
    AuditRecord,
    Exchange,
    failures_of,
    plan_for,
    run_settings_for,
    write_record,
)
from unswayed.auditing.measurement import asked_for
from unswayed.auditing.opening import check_recorded, open_or_replay, recorded_calls
from unswayed.auditing.pairs_of_models import designed
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.records import check_kind, keep_finished
from unswayed.auditing.rereading import reread, said
from unswayed.auditing.run_directory import (
    default_directory,
    prepare_directory,
    write_lines,
    write_sums,
)
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.shard_files import Gathered
from unswayed.backends import Backend, BackendSettings
from unswayed.backends.batches import BatchFolder
from unswayed.backends.client import HttpBackend
from unswayed.base.errors import UsageError
from unswayed.base.sync import run_sync
from unswayed.calls import Caller, CallPlan, OutcomeOf, Progress, Question, stop_on_interrupt
from unswayed.data.importers import read_recording
from unswayed.model.decisions import Decision
from unswayed.model.items import ItemSet, Shard, written_columns
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.report.collect import write_report
from unswayed.result import AuditResult
from unswayed.sources import DataOptions, Source, examples_of, model_for
from unswayed.store import CallStore, Memory, Pool
from unswayed.tiny import DEFAULT_SET, is_built_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """Arguments of a run over data; other processes can be given them if data, model and shots are names."""

    data: Source | None  # None for the default set
    model: str | Backend | None
    asking: AskOptions
    selection: DataOptions
    reach: BackendSettings
    shots: Source | None = None
    directory: Path | None = None  # of the run, which all shards share
    budget: float | None = None  # USD, of each shard
    command: str | None = None  # as it was typed, without --shard and keys
    call: str = ""  # of Python, where there is no command


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArguments(RunArguments):
    """Arguments of an audit; one with a command always writes a run directory."""

    measured: AuditSettings

    def settled(self) -> tuple[ItemSet, AuditSettings, str]:
        """Return the items, what is measured on them, and the name of the model; a built-in set has its own defaults.

        Without a model, the error names --model if there is a command, else `model=`.
        """
        settings = replace(
            self.measured,
            protocol=self.measured.protocol or ("all" if is_built_in(self.data) else "coupled"),
            prompts=self.asking.prompts(examples_of(self.shots)),
        )
        # first, for its suggestion
        items = self.selection.load(DEFAULT_SET if self.data is None else self.data)
        name = self.model.model if isinstance(self.model, Backend) else self.model
        named = model_for(name, self.data, typed=self.command is not None)
        return designed(items, settings), settings, named


def audit_data(
    run: AuditArguments,
    *,
    decisions: str | Path | Sequence[object] | None = None,
    gathered: Gathered | None = None,
) -> AuditResult:
    """Run the audit of `unswayed audit` and `unswayed.audit`."""
    model, directory, command, selection = run.model, run.directory, run.command, run.selection
    if decisions is not None:
        if isinstance(model, Backend):
            raise UsageError(f"{model.model}: recorded decisions need no judge. Leave it out.")
        settings = replace(run.measured, prompts=run.asking.prompts(examples_of(run.shots)))
        items = None if run.data is None else selection.load(run.data)
        _check_no_calls(settings, run.reach, run.budget)
        read = read_recording(decisions, on_bad_item=selection.on_bad_item)
        name = "decisions"
        if isinstance(decisions, str | Path):
            name = Path(decisions).name
            for ending in (".gz", ".jsonl", ".parquet"):
                name = name.removesuffix(ending)
        told = command or run.call
        record = audit_decisions(read, items, settings, command=told, name=name, model=model)
        if directory is not None or command is not None:
            who, data = record.run.model, record.run.data.name
            directory = directory or default_directory(name, who)
            check_kind(directory, recorded=True, model=who, data=data)
            prepare_directory(directory)
            _write(directory, record)
        return AuditResult(record, directory)
    if isinstance(model, Backend) and run.measured.protocol is None:
        run = replace(run, measured=replace(run.measured, protocol="coupled"))
    items, settings, name = run.settled()
    if command is not None:
        directory = directory or default_directory(items.name, name, settings.prompts)
    return audit_calls(
        items,
        settings,
        model if isinstance(model, Backend) else name,
        run.reach,
        directory=directory,
        budget=run.budget,
        command=command or run.call or None,
        given={
            "data": _name_of(DEFAULT_SET if run.data is None else run.data),
            "limit": selection.limit,
            "sample": selection.sample,
            "data_dir": None if selection.data_dir is None else str(selection.data_dir),
            "task": selection.task,
            "columns": written_columns(selection.columns),
            "margin": run.measured.margin,
            "shots": _name_of(run.shots),
        },
        gathered=gathered,
    )


def _name_of(source: Source | None) -> str | None:
    """Return the name of the data for `run.json`, None for data in memory."""
    return str(source) if isinstance(source, str | Path) else None


def audit_calls(
    items: ItemSet,
    settings: AuditSettings,
    model: str | Backend,
    reach: BackendSettings,
    *,
    directory: Path | None,
    budget: float | None = None,
    command: str | None = None,
    given: Mapping[str, str | int | float | None] | None = None,
    gathered: Gathered | None = None,
) -> AuditResult:
    """Make the calls that are missing, measure, and write the run directory if there is one.

    Without a directory the calls are kept in memory; what cannot be audited leaves no directory behind.
    `command` reproduces the run, without keys; `given` are the data, limit, task and examples as they were
    named, for `run.json`. A backend that the caller opened stays open. Calls `gathered` from shards are
    all there is: none is made.
    """
    title = model.model if isinstance(model, Backend) else model
    batch = settings.batch
    if batch is not None and budget is not None:
        raise UsageError(
            "--budget cannot limit --batch, which is paid as a whole. Leave out --budget."
        )
    backend, missing = open_or_replay(
        model,
        reach,
        directory,
        batches=batch is not None,
        of_shards=gathered and gathered.plan.model,
    )
    with ExitStack() as at_end:
        with closed_if_refused(None if backend is model else backend):
            plan = plan_for(items, settings, backend, directory)
            run_settings = run_settings_for(settings, backend, budget_usd=budget)
            if directory is None:
                pool: Pool = Memory()  # `decisions` reads it later
            else:
                prompt = prompt_fingerprint(run_settings.prompts)
                check_kind(
                    directory, recorded=False, model=backend.model, data=items.name, prompt=prompt
                )
                prepare_directory(directory)
                pool = at_end.enter_context(CallStore.open(directory))
            audit = Audit.begin(plan, Caller(backend, pool, run_settings), directory)
            changes = reread(audit.caller, plan.calls(), directory)
            priced = audit.price()
            for words in said(changes, priced, reask=settings.reask):
                print(f"unswayed: {words}", file=sys.stderr, flush=True)
            check_recorded(priced, missing)
        if gathered is not None:
            asked = _merged(audit, priced, gathered)
        elif batch is None:
            asked = run_sync(ask_calls(audit, priced, closes=backend is not model))
        else:
            asked = _collect(audit, priced, Path(batch), directory)
        # measured outside the event loop, so that Ctrl-C stops it at once
        record = audit.measure(asked, command=command or f"us.audit({title!r}, ...)")
        named = asked_for(title, reach, settings.prompts, directory, given or {})
        record = replace(record, run=msgspec.structs.replace(record.run, asked=named))
        if directory is None:
            return AuditResult(record)
        _write(directory, record)
    return AuditResult(_reopening(audit, directory, record), directory)


@contextmanager
def closed_if_refused(backend: Backend | None) -> Iterator[None]:
    """Close a backend that will not be asked; one that is, is closed in the loop that asks it."""
    try:
        yield
    except BaseException:
        if backend is not None:
            run_sync(backend.close())
        raise


def _write(directory: Path, record: AuditRecord) -> None:
    if earlier := keep_finished(directory, record.run):
        print(f"unswayed: the earlier audit is kept in {earlier}.", file=sys.stderr, flush=True)
    if record.answers is not None:
        write_lines(directory / "decisions.jsonl", record.answers.lines(record.plan))
    write_report(directory, record)
    write_record(directory, record)  # last: until then the directory holds no finished new audit
    write_sums(directory)


async def ask_calls(
    audit: Audit, priced: CallPlan, *, closes: bool, outcome_of: OutcomeOf | None = None
) -> AuditedCalls:
    """Ask what is missing under a progress line, until Ctrl-C; see `Audit.ask`."""
    with stop_on_interrupt(audit.caller.backend) as stop:
        try:
            progress = Progress(priced.n_distinct)
            return await audit.ask(
                priced=priced, progress=progress, stop=stop, outcome_of=outcome_of
            )
        finally:
            if closes:
                await audit.caller.backend.close()


def _collect(audit: Audit, priced: CallPlan, path: Path, directory: Path | None) -> AuditedCalls:
    """Record the results of batches.

    Raises:
        WaitingError: If calls have no result; their requests are written.
    """
    caller, plan = audit.caller, audit.plan
    folder = BatchFolder(cast(HttpBackend, caller.backend), path)
    asked = run_sync(ask_calls(audit, priced, closes=True, outcome_of=folder.outcome))
    remarks = folder.remarks(caller.pool)
    if not asked.counts.interrupted:
        usual = default_directory(plan.items.name, caller.backend.model).name
        name = usual if directory is None else directory.resolve().name or usual
        if files := folder.write(caller.missing(plan.calls()), name):
            raise folder.waiting(files, asked.counts.planned)
    return replace(asked, warnings=(*asked.warnings, *remarks))


def _merged(audit: Audit, priced: CallPlan, gathered: Gathered) -> AuditedCalls:
    """Count the calls of shards as calls of this run, at the cost that the shards have paid."""
    prompt = prompt_fingerprint(audit.caller.settings.prompts)
    gathered.check(audit.caller.backend.model, audit.plan.items, prompt, priced)
    nothing = (lambda key, query: None) if priced.n_to_make else None
    asked = run_sync(ask_calls(audit, priced, closes=True, outcome_of=nothing))
    counts = gathered.paid_for(asked.counts)
    failures = failures_of(counts, None, None, elsewhere=True)
    lacking = gathered.lacking(audit.plan.items)
    return replace(asked, counts=counts, failures=(*lacking, *failures))


def _reopening(audit: Audit, directory: Path, record: AuditRecord) -> AuditRecord:
    """Return the record of a finished run, whose calls are read when asked for; others may write meanwhile."""

    @contextmanager
    def reopened() -> Iterator[Audit]:
        with CallStore.open(directory, read_only=True) as store:
            yield replace(audit, caller=audit.caller.over(store))

    def source(questions: Iterable[Question]) -> Iterator[Decision]:
        with reopened() as again:
            yield from again.read(questions)

    def exchanges(questions: Iterable[Question]) -> Iterator[Exchange]:
        with reopened() as again:
            yield from again.exchanges(questions)

    return replace(record, source=source, exchanges=exchanges)


def price_calls(
    items: ItemSet,
    settings: AuditSettings,
    model: str | Backend,
    reach: BackendSettings,
    *,
    directory: Path | None,
    shard: Shard | None = None,
) -> CallPlan:
    """Price the calls of `audit_calls`, or of a shard; no key is needed and nothing is written."""
    batches, reach = settings.batch is not None, replace(reach, pricing_only=True)
    backend, missing = open_or_replay(model, reach, directory, batches=batches)
    try:
        plan = replace(plan_for(items, settings, backend, directory), shard=shard)
        with recorded_calls(directory) as pool:
            caller = Caller(backend, pool, run_settings_for(settings, backend))
            audit = Audit.begin(plan, caller)
            changes = reread(caller, plan.calls(), directory)
            price = audit.price()
            changed = said(changes, price, reask=settings.reask)
            remarks = backend.forecast(caller.missing(plan.calls()))
            price = replace(
                price,
                remarks=(*plan.warnings, *changed, *remarks),
                per_item=plan.per_item(),
                skipped=dict(plan.skipped),
            )
    finally:
        run_sync(backend.close())
    check_recorded(price, missing)
    return price


def _check_no_calls(settings: AuditSettings, reach: BackendSettings, budget: float | None) -> None:
    plain = _of_calls(AuditSettings(), BackendSettings(), None)
    for option, value in _of_calls(settings, reach, budget).items():
        if value != plain[option]:
            raise UsageError(
                f"--{option.replace('_', '-')} has no effect on --decisions, which are recorded. "
                "Leave it out."
            )


def _of_calls(
    settings: AuditSettings, reach: BackendSettings, budget: float | None
) -> dict[str, object]:
    """Return the options that only an audit with calls uses, by name."""
    return {
        "orders": settings.orders,
        "protocol": settings.protocol or "coupled",
        "probs": settings.probs,
        "prompt": settings.prompts.style,
        "template": settings.prompts.template,
        "labels": settings.prompts.label_set,
        "shots": settings.prompts.shots,
        "no_reask": not settings.reask,
        "batch": settings.batch,
        "budget": budget,
        "dry_run": reach.pricing_only,
        **asdict(reach),
    }
