"""`unswayed filter`: keep the items on which the model is inconsistent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unswayed.backends import BackendSettings
from unswayed.cli.options import (
    DEFAULTS,
    DataDir,
    Labels,
    Limit,
    Model,
    NoReask,
    OnBadItem,
    Prompt,
    Template,
    check_out,
    model_for,
    with_reach,
)
from unswayed.cli.output import note, write


@with_reach
def filter_(
    data: Annotated[str, typer.Argument(help="Items to choose from; never evaluation items.")],
    out: Annotated[Path, typer.Option(help="Items file to write (.jsonl).")],
    model: Model = None,
    orders: Annotated[
        str | None,
        typer.Option(help="Orders to compare [default: swap, or cyclic for more than 2]"),
    ] = None,
    count_unparsed: Annotated[
        bool,
        typer.Option("--count-unparsed", help="Count an unreadable answer as a different one."),
    ] = False,
    evaluation: Annotated[
        Path | None, typer.Option(help="Items that must not be trained on, compared by text.")
    ] = None,
    prompt: Prompt = None,
    template: Template = None,
    labels: Labels = None,
    limit: Limit = None,
    data_dir: DataDir = None,
    reach: BackendSettings = DEFAULTS,
    no_reask: NoReask = False,
    on_bad_item: OnBadItem = "stop",
    calls: Annotated[
        Path | None, typer.Option(help="Directory of recorded calls [default: beside --out]")
    ] = None,
) -> int:
    """Keep the items on which the model names different candidates in different orders."""
    from unswayed.auditing.run_directory import write_text
    from unswayed.backends import open_backend
    from unswayed.calibration import prompts_for
    from unswayed.items import encode_item, load_items
    from unswayed.prompts import prompt_settings
    from unswayed.sources import load_data
    from unswayed.sync import run_sync
    from unswayed.training.filtering import ask_in_orders, keep_inconsistent

    check_out(out, None if data == "-" else data, evaluation)
    items = load_data(data, limit=limit, on_bad_item=on_bad_item, data_dir=data_dir)
    backend = open_backend(model_for(model, data), reach)
    prompts = prompts_for(backend, prompt_settings(prompt, template, labels))
    directory = calls or out.with_name(f"{out.name.partition('.')[0]}.calls")
    asking = ask_in_orders(items, backend, directory, prompts, orders, reask=not no_reask)
    decisions, counts = run_sync(asking)
    if counts.exit_code:
        why = counts.fatal or f"{counts.failed:,} calls failed or were not made"
        note(
            f"{why}. {out} was not written, because a part of the answers would decide which "
            "items stay; the same command goes on from here."
        )
        return counts.exit_code
    kept = keep_inconsistent(
        items,
        decisions,
        orders=orders,
        count_unparsed=count_unparsed,
        evaluation=() if evaluation is None else load_items(evaluation).items,
    )
    write_text(out, "".join(f"{encode_item(item).decode()}\n" for item in kept.items))
    for name, count in asdict(kept.report).items():
        typer.echo(f"{count:8,} {name.replace('_', ' ')}")
    write(f"\n{out}")
    return 0
