"""`unswayed audit`: permute, judge, measure, report."""

from __future__ import annotations

import asyncio
import shlex
import sys
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
    Template,
    is_built_in,
    model_for,
    prompts_from,
)
from unswayed.errors import GateError, UsageError

if TYPE_CHECKING:
    from unswayed.auditing.run import AuditRecord
    from unswayed.auditing.settings import AuditSettings
    from unswayed.backends import Backend
    from unswayed.items import Item, ItemSet
    from unswayed.report.data import RunData
    from unswayed.store import CallStore

DATA = Annotated[
    str | None,
    typer.Argument(help="Items (.jsonl, .jsonl.gz, -), or tiny-judge, tiny-mcq.", metavar="[DATA]"),
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
    task: Annotated[
        str | None, typer.Option(help="Take the items of this task from a mixed file.")
    ] = None,
    on_bad_item: OnBadItem = "stop",
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="Seed of folds, orders and resamples.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 1000,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: runs/DATA-MODEL]")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Spend no more USD than this.")
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
    else:
        assert items is not None
        name = model_for(model, data)
        made = _asked(
            items,
            settings,
            name,
            out=out,
            budget=budget,
            base_url=base_url,
            max_connections=max_connections,
            dry_run=dry_run,
        )
        if made is None:
            return 0
        record, report, directory = made
    return _finish(record, report, directory, json=json, max_flip_rate=max_flip_rate)


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
    source = data or "tiny-judge"
    if is_built_in(source):
        return load_data(source, limit=limit)
    return load_data(source, limit=limit, task=task, on_bad_item=on_bad_item)


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
    from unswayed.auditing.run_directory import default_directory, prepare_directory
    from unswayed.importers import read_decisions_file

    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    record = audit_decisions(
        read_decisions_file(path, on_bad_item=on_bad_item),
        items,
        settings,
        command=command_line(),
        name=name,
        model=model,
    )
    from unswayed.auditing.run import write_record
    from unswayed.report.collect import write_report

    directory = prepare_directory(out or default_directory(name, record.run["model"]))
    _keep_recorded(directory, record)
    write_record(directory, record)
    return record, write_report(directory, record), directory


def _keep_recorded(directory: Path, record: AuditRecord) -> None:
    """Copy decisions and items into the run directory, so that it stands alone."""
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
    *,
    out: Path | None,
    budget: float | None,
    base_url: str | None,
    max_connections: int,
    dry_run: bool,
) -> tuple[AuditRecord, RunData, Path] | None:
    from unswayed.auditing.run_directory import default_directory, prepare_directory
    from unswayed.backends import BackendSettings, open_backend
    from unswayed.store import CallStore

    backend = open_backend(
        model, BackendSettings(base_url=base_url, max_connections=max_connections)
    )
    directory = out or default_directory(items.name, model)
    if dry_run:
        _price(items, settings, backend, directory)
        return None
    prepare_directory(directory)
    with CallStore.open(directory / "calls.sqlite") as store:
        record = asyncio.run(_run(items, settings, backend, store, budget))
        from unswayed.auditing.run import write_record
        from unswayed.report.collect import write_report

        write_record(directory, record)
        return record, write_report(directory, record), directory


async def _run(
    items: ItemSet,
    settings: AuditSettings,
    backend: Backend,
    store: CallStore,
    budget: float | None,
) -> AuditRecord:
    from unswayed.auditing.run import audit_model, price_audit
    from unswayed.runner import Progress, stop_on_interrupt

    total = price_audit(items, settings, backend, store).n_distinct
    with stop_on_interrupt() as stop:
        try:
            return await audit_model(
                items,
                settings,
                backend,
                store,
                command=command_line(),
                budget_usd=budget,
                progress=Progress(total),
                stop=stop,
            )
        finally:
            await backend.close()


def _price(items: ItemSet, settings: AuditSettings, backend: Backend, directory: Path) -> None:
    from unswayed.auditing.run import price_audit
    from unswayed.store import CallStore

    path = directory / "calls.sqlite"
    recorded = CallStore.open(path, read_only=True) if path.exists() else CallStore.in_memory()
    with recorded as store:
        plan = price_audit(items, settings, backend, store)
    cost = (
        "unknown (no price for this model)"
        if plan.est_cost_usd is None
        else f"${plan.est_cost_usd:,.4f}"
    )
    print(
        f"{plan.n_distinct:,} distinct calls ({plan.n_questions:,} questions), "
        f"{plan.n_cached:,} recorded already, {plan.n_to_make:,} to make\n"
        f"about {plan.est_input_tokens:,} tokens in, {plan.est_output_tokens:,} out; cost {cost}"
    )


def _finish(
    record: AuditRecord,
    report: RunData,
    directory: Path,
    *,
    json: bool,
    max_flip_rate: float | None,
) -> int:
    from unswayed.auditing.run_directory import json_text

    if json:
        sys.stdout.write(json_text(record.metrics))
    else:
        _show(record, report, directory)
    run = record.run
    if run.get("interrupted"):
        return 130
    if run.get("fatal") or run.get("budget_spent") or record.metrics["calls"]["failed"]:
        return 3
    if max_flip_rate is not None:
        _gate(record, max_flip_rate)
    return 0


def _show(record: AuditRecord, report: RunData, directory: Path) -> None:
    from rich.console import Console

    from unswayed.report import terminal_report

    for warning in record.warnings:
        print(f"unswayed: {warning}", file=sys.stderr)
    Console().print(terminal_report(report))
    print(f"\n{directory / 'report.html'}")


def _gate(record: AuditRecord, limit: float) -> None:
    consistency = record.metrics["methods"]["direct"]["consistency"]
    value = consistency.get("value")
    if value is None:
        raise GateError(f"the flip rate is not known: {consistency.get('reason')}.")
    if 1 - value > limit:
        raise GateError(f"{1 - value:.1%} of verdicts flip; --max-flip-rate allows {limit:.1%}.")


def command_line() -> str:
    """The command that was typed, without anything that looks like a key."""
    return shlex.join(["unswayed", *sys.argv[1:]])
