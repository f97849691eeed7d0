"""`unswayed audit`: permute, judge, measure, report."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from unswayed.backends import BackendSettings
from unswayed.cli.command import command_line
from unswayed.cli.options import (
    DEFAULTS,
    Budget,
    DataDir,
    DryRun,
    Labels,
    Limit,
    Model,
    NoReask,
    OnBadItem,
    Prices,
    Prompt,
    Sample,
    Shots,
    TaskName,
    Template,
    model_for,
    shots_from,
    with_reach,
)
from unswayed.cli.results import finish, show_price
from unswayed.errors import UsageError
from unswayed.methods import AUDITED
from unswayed.tiny import DEFAULT_SET, is_built_in

SELDOM: Final = 70_000
"""Objects made between two searches for cycles, 700 by default: an audit makes millions without any."""

DATA = Annotated[
    str | None,
    typer.Argument(
        help="Items (.jsonl, .json, .csv, .tsv, also .gz; -), tiny-judge, tiny-mcq, tiny-rubric, or a "
        "benchmark: `unswayed list benchmarks`.",
        metavar="DATA",
    ),
]


@with_reach
def audit(
    data: DATA = None,
    model: Model = None,
    decisions: Annotated[
        Path | None, typer.Option(help="Audit recorded decisions instead of calling a model.")
    ] = None,
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, or all.")] = ",".join(
        AUDITED
    ),
    orders: Annotated[
        str | None,
        typer.Option(
            help="identity, swap, cyclic, structured, balanced, full, graeco-latin, random:K "
            "[default: swap for pairs, balanced for rubrics, else cyclic]"
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="coupled, label, order, criteria, all [default: coupled; all for built-in sets]"
        ),
    ] = None,
    probs: Annotated[str, typer.Option(help="logprobs, or sampled:R.")] = "logprobs",
    estimation_items: Annotated[
        int | None,
        typer.Option(min=0, help="Items fitted methods learn from [default: 20%, at most 200]"),
    ] = None,
    estimation_sizes: Annotated[
        str | None, typer.Option(help="Sizes N,N,... of the estimation-set curve.")
    ] = None,
    prompt: Prompt = None,
    template: Template = None,
    labels: Labels = None,
    shots: Shots = None,
    group_by: Annotated[str, typer.Option(help="group, or meta.FIELD.")] = "group",
    gold_ties: Annotated[
        Literal["exclude", "class"],
        typer.Option(help="exclude items whose gold is a tie, or score ties."),
    ] = "exclude",
    margin: Annotated[
        float, typer.Option(help="Smallest difference that matters, in points of accuracy.")
    ] = 1.0,
    task: TaskName = None,
    on_bad_item: OnBadItem = "stop",
    limit: Limit = None,
    sample: Sample = None,
    data_dir: DataDir = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of folds, orders, resamples and --sample.")
    ] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 1000,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: runs/DATA-MODEL[-PROMPT]]")
    ] = None,
    budget: Budget = None,
    no_reask: NoReask = False,
    prices: Prices = None,
    reach: BackendSettings = DEFAULTS,
    dry_run: DryRun = False,
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
    from unswayed.auditing.run_directory import default_directory
    from unswayed.auditing.settings import audit_settings
    from unswayed.audits import audit_calls, audit_recorded, price_calls
    from unswayed.backends import backend_settings
    from unswayed.prompts import prompt_settings
    from unswayed.sources import load_data

    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])  # the process is the command's

    settings = audit_settings(
        methods=methods,
        orders=orders,
        protocol=protocol or ("all" if decisions is None and is_built_in(data) else "coupled"),
        probs=probs,
        estimation_items=estimation_items,
        estimation_sizes=tuple(_numbers(estimation_sizes)),
        group_by=group_by,
        seed=seed,
        resamples=resamples,
        gold_ties=gold_ties,
        margin=margin,
        prompts=prompt_settings(prompt, template, labels, shots_from(shots)),
        reask=not no_reask,
    )
    items = None
    if decisions is None or data is not None:
        items = load_data(
            data or DEFAULT_SET,
            limit=limit,
            sample=sample,
            seed=seed,
            task=task,
            on_bad_item=on_bad_item,
            data_dir=data_dir,
        )
    reach = backend_settings(replace(reach, pricing_only=dry_run), prices=prices)
    if decisions is not None:
        result = audit_recorded(
            decisions,
            items,
            settings,
            reach=reach,
            directory=out,
            budget=budget,
            model=model,
            on_bad_item=on_bad_item,
            command=command_line(),
            keep=True,
        )
        return finish(result, json=json, max_flip_rate=max_flip_rate)
    assert items is not None
    name = model_for(model, data)
    directory = out or default_directory(items.name, name, settings.prompts)
    if dry_run:
        show_price(price_calls(items, settings, name, reach, directory=directory), json=json)
        return 0
    result = audit_calls(
        items,
        settings,
        name,
        reach,
        directory=directory,
        budget=budget,
        command=command_line(),
        given={
            "data": data or DEFAULT_SET,
            "limit": limit,
            "sample": sample,
            "data_dir": None if data_dir is None else str(data_dir),
            "task": task,
            "margin": margin,
            "shots": None if shots is None else str(shots),
        },
    )
    return finish(result, json=json, max_flip_rate=max_flip_rate)


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise UsageError(
            f"{text!r}: write whole numbers separated by commas, such as 10,50,100."
        ) from None
