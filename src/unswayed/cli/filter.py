"""`unswayed filter`: keep the items on which the model is inconsistent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unswayed.auditing.run_directory import json_text, write_text
from unswayed.backends import BackendSettings, open_backend
from unswayed.base.counts import agrees, plural
from unswayed.base.sync import run_sync
from unswayed.calls.calibration import prompts_for
from unswayed.cli.options import Calls, Model, check_out, with_options
from unswayed.cli.output import note, write
from unswayed.model.items import encode_item, load_items
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.sources import DataOptions, model_for
from unswayed.training.filtering import ask_in_orders, beside, keep_inconsistent
from unswayed.training.recipe import local_name, recipe_at


@with_options
def filter_(
    *,
    data: Annotated[str, typer.Argument(help="Items to choose from; do not use evaluation items.")],
    out: Annotated[Path, typer.Option(help="Items file to write (.jsonl).")],
    model: Model = None,
    orders: Annotated[
        str | None,
        typer.Option(help="Orders to compare [default: swap, or cyclic for more than 2]"),
    ] = None,
    count_unparsed: Annotated[
        bool,
        typer.Option("--count-unparsed", help="Count an unreadable answer as a different answer."),
    ] = False,
    evaluation: Annotated[
        Path | None,
        typer.Option(help="Items that must not be kept for training, compared by text."),
    ] = None,
    asking: AskOptions,
    selection: DataOptions,
    reach: BackendSettings,
    calls: Calls = None,
) -> int:
    """Keep items on which a model's choice changes with the order."""
    check_out(out, None if data == "-" else data, evaluation)
    items = selection.load(data)
    recipe = None if reach.recipe is None else recipe_at(reach.recipe)
    if recipe is not None:
        model, orders = model or local_name(recipe.model), orders or recipe.data.orders
    backend = open_backend(model_for(model, data), reach)
    prompts = prompts_for(backend, asking.prompts())
    directory = calls or out.with_name(f"{out.name.partition('.')[0]}.calls")
    orders_asked = ask_in_orders(items, backend, directory, prompts, orders, reask=asking.reask)
    decisions, counts = run_sync(orders_asked)
    if counts.exit_code:
        why = (
            counts.fatal
            or f"{plural(counts.failed, 'call')} failed or {agrees(counts.failed, 'was', 'were')} not made"
        )
        if counts.interrupted:
            why = f"interrupted with {plural(counts.made + counts.cached, 'recorded call')}"
        note(
            f"{why}. {out} was not written: only some answers would decide which items stay. "
            "Run the same command again to resume."
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
    record = {
        "model": backend.model,
        "prompt": prompts.style,
        "prompt_fingerprint": prompt_fingerprint(prompts),
        "orders": orders,
        "report": asdict(kept.report),
    }
    write_text(beside(out), json_text(record))
    for name, count in asdict(kept.report).items():
        typer.echo(f"{count:8,} {name.replace('_', ' ')}")
    write(f"\n{out}")
    return 0
