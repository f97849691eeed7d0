"""Audits in shards: ask the calls of one part of the items; merge all parts into one audit."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from unswayed.auditing.audit import Audit, plan_for, run_settings_for
from unswayed.auditing.opening import open_or_replay
from unswayed.auditing.records import check_kind
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.shard_files import ShardFolder, ShardPlan, given
from unswayed.audits import AuditArguments, RunArguments, ask_calls, audit_data, closed_if_refused
from unswayed.backends import BackendSettings
from unswayed.backends.addresses import shown_address
from unswayed.base.arguments import Settings
from unswayed.base.registry import require
from unswayed.base.sync import run_sync
from unswayed.calls import Caller, RunCounts
from unswayed.model.items import Shard
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.result import AuditResult
from unswayed.sources import DataOptions


def plan_of(
    run: RunArguments,
    kind: Literal["audit", "judge"],
    shard: Shard,
    *measured: Settings,
    method: str = "",
) -> ShardPlan:
    """Return the plan of a shard as far as the arguments tell it."""
    reach = given(run.reach)
    if run.reach.base_url is not None:
        reach["base_url"] = shown_address(run.reach.base_url)
    named = {"data": run.data, "model": run.model, "shots": run.shots and str(run.shots)}
    return ShardPlan(
        kind=kind,
        shards=shard.total,
        asked={
            **{name: value for name, value in named.items() if value is not None},
            **given(run.asking, run.selection, *measured),
        },
        reach=reach,
        command=run.command or "",
        method=method,
    )


class ShardAsked(NamedTuple):
    """Outcome of a shard; it is done if the exit code is 0."""

    path: Path  # of its file
    counts: RunCounts | None = None  # of this run; None if the file was there
    remarks: tuple[str, ...] = ()  # what the user should know, in sentences
    needed_usd: float | None = None  # a budget that reaches, if that of the shard was spent

    @property
    def exit_code(self) -> int:
        """0 done, 3 calls failed or the budget ran out, 130 interrupted."""
        return 0 if self.counts is None else self.counts.exit_code


def ask_shard(run: AuditArguments, shard: Shard) -> ShardAsked:
    """Ask the questions of an audit about the items of a shard, and write its file once all are answered.

    Nothing is opened if the file is there. Answers are kept on this machine until then, so that the
    same call goes on after a failure or a kill.

    Raises:
        RunDirectoryError: If the shards before follow another plan, or another process asks this one.
        UnswayedError: As `audit_data`.
    """
    require("pyarrow", extra="parquet", feature="--shard")
    assert run.directory is not None
    folder = ShardFolder(run.directory)
    path = folder.path(shard)
    plan = plan_of(run, "audit", shard, run.measured)
    if folder.is_done(shard, plan):
        return ShardAsked(path)
    items, settings, name = run.settled()
    backend, _ = open_or_replay(name, run.reach, None)
    with ExitStack() as at_end:
        with closed_if_refused(backend):
            questions = replace(plan_for(items, settings, backend), shard=shard)
            calls = run_settings_for(settings, backend, budget_usd=run.budget)
            whole, prompt = questions.items, prompt_fingerprint(calls.prompts)
            plan = plan.with_facts(backend.model, whole.name, whole.fingerprint, prompt)
            check_kind(
                folder.directory,
                recorded=False,
                model=plan.model,
                data=plan.data,
                prompt=plan.prompt,
            )
            folder.settle(plan)
            store = at_end.enter_context(folder.open_local(shard))
            if path.exists():  # another process was faster
                run_sync(backend.close())
                return ShardAsked(path)
            audit = Audit.begin(questions, Caller(backend, store, calls))
            priced = audit.price()
        asked = run_sync(ask_calls(audit, priced, closes=True))
        if not asked.counts.exit_code:
            folder.write(shard, plan, store)
    remarks = dict.fromkeys([*asked.failures, *asked.warnings])
    return ShardAsked(path, asked.counts, tuple(remarks), asked.needed_usd)


def merge_audit(directory: Path, plan: ShardPlan, *, partial: bool = False) -> AuditResult:
    """Gather the calls of all shards and audit them; nothing is asked, so no key is needed.

    Raises:
        RunDirectoryError: If shards are missing and not `partial`, a file is damaged, or data, prompt or
            version are not those of the shards.
    """
    gathered = ShardFolder(directory).gather(plan, partial=partial)
    asked = plan.asked
    run = AuditArguments(
        data=asked.get("data"),
        model=asked.get("model"),
        measured=AuditSettings.of(asked),
        asking=AskOptions.of(asked),
        selection=DataOptions.of(asked),
        reach=BackendSettings.of(plan.reach),
        shots=asked.get("shots"),
        directory=directory,
        command=plan.command,
    )
    return audit_data(run, gathered=gathered)
