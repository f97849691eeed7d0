"""`unswayed audit`: permute, judge, measure, report."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from unswayed.auditing.gates import Condition, check
from unswayed.auditing.run_directory import default_directory
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.shard_files import ShardFolder
from unswayed.audits import AuditArguments, audit_data, price_calls
from unswayed.backends import BackendSettings
from unswayed.cli.command import command_line
from unswayed.cli.gate import FailedShare, FailIf, Junit, RuleOption, conclude
from unswayed.cli.merge import ask_shards
from unswayed.cli.options import (
    Budget,
    DryRun,
    Model,
    ShardOption,
    ShardTasks,
    Shots,
    shard_of_options,
    with_options,
)
from unswayed.cli.output import note, write
from unswayed.cli.results import finish, show_price
from unswayed.prompts import AskOptions
from unswayed.sharded import ask_shard
from unswayed.sources import DataOptions

SELDOM: Final = 70_000
"""Objects made between two searches for cycles, 700 by default: an audit makes millions without any."""


@with_options
def audit(
    *,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Items to judge: a .jsonl, .json, .csv or .tsv file (also .gz), a .parquet file, - for standard "
            "input, tiny-judge, tiny-mcq, tiny-rubric or a benchmark (`unswayed list benchmarks`).",
            metavar="DATA",
        ),
    ] = None,
    model: Model = None,
    decisions: Annotated[
        Path | None, typer.Option(help="Audit recorded decisions instead of calling a model.")
    ] = None,
    measured: AuditSettings,
    asking: AskOptions,
    shots: Shots = None,
    selection: DataOptions,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: runs/DATA-MODEL[-PROMPT]]")
    ] = None,
    shard: ShardOption = None,
    tasks: ShardTasks,
    budget: Budget = None,
    reach: BackendSettings,
    dry_run: DryRun = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print metrics.json and nothing else.")
    ] = False,
    max_flip_rate: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Exit with code 1 if the flip rate of single calls is larger."
        ),
    ] = None,
    fail_if: FailIf = None,
    rule: RuleOption = "shown",
    max_failed_share: FailedShare = 0.0,
    junit: Junit = None,
) -> int:
    """Measure position and label bias, and compare methods.

    Without arguments, audits the built-in judge on its built-in items: no key, no download.
    """
    conditions = [Condition.of(text) for text in fail_if or ()]
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])  # the process is the command's
    run = AuditArguments(
        data=data,
        model=model,
        measured=measured,
        asking=asking,
        selection=selection,
        reach=replace(reach, pricing_only=dry_run),
        shots=shots,
        directory=out,
        budget=budget,
        command=command_line(),
    )
    part = shard_of_options(
        tasks.first(shard),
        data,
        out,
        decisions=decisions,
        batch=measured.batch,
        max_flip_rate=max_flip_rate,
        fail_if=fail_if,
        junit=junit,
    )
    if dry_run and decisions is None:
        items, settings, name = run.settled()
        directory = out or default_directory(items.name, name, settings.prompts)
        part = None if tasks.shards else part
        directory = ShardFolder(directory).local(part) if part else directory
        price = price_calls(items, settings, name, run.reach, directory=directory, shard=part)
        show_price(price, json=json)
        return 0
    if part:
        return ask_shards(ask_shard, run, tasks, part, json=json)
    result = audit_data(run, decisions=decisions)
    code = finish(result, json=json, max_flip_rate=max_flip_rate, max_failed_share=max_failed_share)
    if conditions and not code:
        metrics = result.record.metrics
        checks = [check(metrics, condition, rule) for condition in conditions]
        conclude({str(result.directory): checks}, rule, junit, show=note if json else write)
    return code
