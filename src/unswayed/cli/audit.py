"""`unswayed audit`: permute, judge, measure, report."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unswayed.cli.options import (
    BaseUrl,
    Labels,
    Limit,
    MaxConnections,
    Model,
    OnBadItem,
    Prompt,
    TaskName,
    Template,
    is_built_in,
    model_for,
    prompts_from,
)
from unswayed.cli.results import finish, show_price
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.auditing.run import Asked, AuditRecord
    from unswayed.auditing.settings import AuditSettings
    from unswayed.backends import Backend, BackendSettings
    from unswayed.items import Item, ItemSet
    from unswayed.report.data import RunData
    from unswayed.runner import CallPlan
    from unswayed.store import CallStore

DATA = Annotated[
    str | None,
    typer.Argument(
        help="Items (.jsonl, .json, .csv, .tsv, also .gz; -), or tiny-judge, tiny-mcq.",
        metavar="DATA",
    ),
]


def audit(
    data: DATA = None,
    model: Model = None,
    decisions: Annotated[
        Path | None, typer.Option(help="Audit recorded decisions instead of calling a model.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas, or all.")
    ] = "direct,vote,average",
    orders: Annotated[
        str | None,
        typer.Option(
            help="identity, swap, cyclic, structured, balanced, full, graeco-latin, random:K "
            "[default: swap for pairs, cyclic for more]"
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="coupled, label, order, all [default: coupled; all for built-in sets]"),
    ] = None,
    probs: Annotated[str, typer.Option(help="logprobs, or sampled:R.")] = "logprobs",
    estimation_items: Annotated[
        int | None,
        typer.Option(min=0, help="Items fitted methods learn from [default: 20 %, at most 200]"),
    ] = None,
    estimation_sizes: Annotated[
        str | None, typer.Option(help="Sizes N,N,... of the estimation-set curve.")
    ] = None,
    prompt: Prompt = "direct",
    template: Template = None,
    labels: Labels = None,
    shots: Annotated[Path | None, typer.Option(help="Items with gold to show as examples.")] = None,
    group_by: Annotated[str, typer.Option(help="group, or meta.FIELD.")] = "group",
    gold_ties: Annotated[
        Literal["exclude", "class"],
        typer.Option(help="exclude items whose gold is a tie, or score ties."),
    ] = "exclude",
    task: TaskName = None,
    on_bad_item: OnBadItem = "stop",
    limit: Limit = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds, orders and resamples.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 1000,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: runs/DATA-MODEL]")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Spend no more USD than this.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="Price table of your own (TOML or JSON).")
    ] = None,
    base_url: BaseUrl = None,
    max_connections: MaxConnections = 64,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Price the calls and stop.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print metrics.json and nothing else.")
    ] = False,
    max_flip_rate: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if more verdicts of single calls flip."),
    ] = None,
) -> int:
    """Measure how far verdicts depend on order and labels, and what each remedy buys.

    With nothing after it: the built-in tiny judge on its built-in items, no key, no download.
    """
    from unswayed.auditing.settings import AuditSettings
    from unswayed.backends import BackendSettings

    if decisions is not None:
        _refuse_with_decisions(
            {
                "--orders": orders,
                "--protocol": protocol,
                "--probs": None if probs == "logprobs" else probs,
                "--prompt": None if prompt == "direct" else prompt,
                "--template": template,
                "--labels": labels,
                "--shots": shots,
                "--budget": budget,
                "--prices": prices,
                "--base-url": base_url,
                "--dry-run": dry_run or None,
            }
        )
    settings = AuditSettings(
        methods=_names(methods),
        orders=orders,
        protocol=protocol or ("all" if decisions is None and is_built_in(data) else "coupled"),
        probs=probs,
        estimation_items=estimation_items,
        estimation_sizes=tuple(_numbers(estimation_sizes)),
        group_by=group_by,
        seed=seed,
        resamples=resamples,
        gold_ties=gold_ties,
        prompts=prompts_from(prompt, template, labels, _shots(shots)),
    )
    items = _items(data, decisions, limit=limit, task=task, on_bad_item=on_bad_item)
    if decisions is not None:
        record, report, directory = _recorded(
            decisions, items, settings, model=model, out=out, on_bad_item=on_bad_item
        )
        return finish(record, report, directory, json=json, max_flip_rate=max_flip_rate)
    assert items is not None
    name = model_for(model, data)
    how = BackendSettings(
        base_url=base_url,
        max_connections=max_connections,
        prices=None if prices is None else str(prices),
    )
    if dry_run:
        show_price(_priced(items, settings, name, how, out), json=json)
        return 0
    record, report, directory = _asked(items, settings, name, how, out=out, budget=budget)
    return finish(record, report, directory, json=json, max_flip_rate=max_flip_rate)


def _refuse_with_decisions(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(
                f"{option} does not go with --decisions: they were made already, and say how."
            )


def _names(methods: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in methods.split(",") if part.strip())
    if not names:
        raise UsageError("--methods names no method. Give all, or names separated by commas.")
    return names


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise UsageError(
            f"{text!r}: write whole numbers separated by commas, such as 10,50,100."
        ) from None


def _shots(path: Path | None) -> tuple[Item, ...]:
    if path is None:
        return ()
    from unswayed.items import load_items

    return load_items(path).items


def _items(
    data: str | None,
    decisions: Path | None,
    *,
    limit: int | None,
    task: str | None,
    on_bad_item: Literal["stop", "skip"],
) -> ItemSet | None:
    from unswayed.api import load_data

    if decisions is not None and data is None:
        return None
    return load_data(data or "tiny-judge", limit=limit, task=task, on_bad_item=on_bad_item)


def _recorded(
    path: Path,
    items: ItemSet | None,
    settings: AuditSettings,
    *,
    model: str | None,
    out: Path | None,
    on_bad_item: Literal["stop", "skip"],
) -> tuple[AuditRecord, RunData, Path]:
    from unswayed.auditing.recorded import audit_decisions
    from unswayed.auditing.run import write_record
    from unswayed.auditing.run_directory import check_kind, default_directory, prepare_directory
    from unswayed.importers import read_decisions_file
    from unswayed.report.collect import write_report

    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    record = audit_decisions(
        read_decisions_file(path, on_bad_item=on_bad_item),
        items,
        settings,
        command=command_line(),
        name=name,
        model=model,
    )
    who, data = record.run["model"], record.run["data"]["name"]
    directory = out or default_directory(name, who)
    check_kind(directory, recorded=True, model=who, data=data)
    prepare_directory(directory)
    _keep_recorded(directory, record)
    write_record(directory, record)
    return record, write_report(directory, record), directory


def _keep_recorded(directory: Path, record: AuditRecord) -> None:
    """Copy the decisions into the run directory, so that it stands alone."""
    import msgspec

    from unswayed.auditing.planning import questions_of
    from unswayed.auditing.run_directory import write_text

    encode = msgspec.json.Encoder().encode
    lines = {encode(decision).decode() for decision in record.source(questions_of(record.plan))}
    write_text(directory / "decisions.jsonl", "".join(f"{line}\n" for line in sorted(lines)))


def _asked(
    items: ItemSet,
    settings: AuditSettings,
    model: str,
    how: BackendSettings,
    *,
    out: Path | None,
    budget: float | None,
) -> tuple[AuditRecord, RunData, Path]:
    import asyncio

    from unswayed.auditing.opening import check_recorded, open_or_replay
    from unswayed.auditing.run import measure_pool, plan_for, price_audit, write_record
    from unswayed.auditing.run_directory import check_kind, default_directory, prepare_directory
    from unswayed.report.collect import write_report
    from unswayed.store import CallStore

    directory = out or default_directory(items.name, model)
    backend, missing = open_or_replay(model, how, directory)
    plan_for(items, settings, backend)  # what cannot be audited leaves no directory behind
    check_kind(directory, recorded=False, model=backend.model, data=items.name)
    with CallStore.open(prepare_directory(directory)) as store:
        priced = price_audit(items, settings, backend, store)
        check_recorded(priced, missing)
        # measured outside the event loop, so that Ctrl-C stops it at once
        asked = asyncio.run(_ask(items, settings, backend, store, budget, priced.n_distinct))
        record = measure_pool(asked, store, command=command_line())
        write_record(directory, record)
        return record, write_report(directory, record), directory


async def _ask(
    items: ItemSet,
    settings: AuditSettings,
    backend: Backend,
    store: CallStore,
    budget: float | None,
    total: int,
) -> Asked:
    from unswayed.auditing.run import ask_model
    from unswayed.runner import Progress, stop_on_interrupt

    with stop_on_interrupt() as stop:
        try:
            return await ask_model(
                items,
                settings,
                backend,
                store,
                budget_usd=budget,
                progress=Progress(total),
                stop=stop,
            )
        finally:
            await backend.close()


def _priced(
    items: ItemSet,
    settings: AuditSettings,
    model: str,
    how: BackendSettings,
    out: Path | None,
) -> CallPlan:
    from unswayed.auditing.opening import check_recorded, open_or_replay
    from unswayed.auditing.run import price_audit
    from unswayed.auditing.run_directory import default_directory
    from unswayed.store import CallStore

    directory = out or default_directory(items.name, model)
    backend, missing = open_or_replay(model, replace(how, pricing_only=True), directory)
    path = directory / "calls.sqlite"
    recorded = CallStore.open(path, read_only=True) if path.exists() else CallStore.in_memory()
    with recorded as store:
        plan = price_audit(items, settings, backend, store)
    check_recorded(plan, missing)
    return plan


def command_line() -> str:
    """The command that was typed, without anything that looks like a key."""
    from unswayed.backends.addresses import Secret

    # the query and the user name of an address may be secrets
    plain = [re.sub(r"(https?://)(?:[^/@\s]*@)?([^?#\s]*)\S*", r"\1\2", a) for a in sys.argv[1:]]
    return shlex.join(["unswayed", *(Secret().scrub(argument) for argument in plain)])
