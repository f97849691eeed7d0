"""`unswayed train advise`: which objective to train with, and why."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from unswayed.auditing.run_directory import default_directory, json_text
from unswayed.base.errors import UsageError
from unswayed.base.registry import require
from unswayed.cli.options import with_options
from unswayed.cli.output import note, write, write_bytes
from unswayed.cli.training_options import RecipeOptions, training_command
from unswayed.sources import DataOptions
from unswayed.tiny import is_built_in, judge_of
from unswayed.training.advice import Advice, advise_training
from unswayed.training.recipe import load_recipe, recipe_names, with_changes
from unswayed.training.recipe_parts import Recipe

OWN_RECIPE: Final = "RECIPE.toml"
"""Stands for a recipe that is still to be written."""

PARTS: Final = ("_low", "_high", "_of")
"""End the names of figures that belong to another: its interval, and how many it is a share of."""


@with_options
def advise(
    *,
    data: Annotated[str, typer.Argument(help="Items to train on, with or without gold.")],
    model: Annotated[
        str | None, typer.Option(help="Path or hub id of the model [default: the recipe's]")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Shipped recipe, or a .toml file [default: the model's, if any]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the training [default: runs/DATA-MODEL-trained]")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a recipe field, such as prompt.style=direct; repeatable."),
    ] = None,
    selection: Annotated[DataOptions, "limit", "data_dir", "columns", "on_bad_item"],
    json: Annotated[
        bool, typer.Option("--json", help="Print the advice as JSON and nothing else.")
    ] = False,
) -> int:
    """Recommend a training objective, with reasons.

    The untrained model answers the items in a balanced set of orders: both, or the rotations. The
    answers are recorded in --out, so that a training there reuses them.
    """
    require("trl", extra="train", feature="training")
    items = selection.load(data)
    given = None if recipe is None else load_recipe(recipe)
    name = _model(model, given, data)
    own, task = name.removeprefix("hf/"), items[0].task
    shipped = (r for r in map(load_recipe, recipe_names()) if (r.task, r.model) == (task, own))
    chosen = given or next(shipped, None) or Recipe(name=OWN_RECIPE, task=task)
    changes = RecipeOptions().changes(change or ())
    folder = out or default_directory(items.name, f"{name}-trained")
    advice = advise_training(items, model=name, recipe=with_changes(chosen, changes), out=folder)
    options = {
        "--recipe": recipe or chosen.name,
        "--model": None if name == chosen.model else name,
        "--limit": selection.limit,
        "--data-dir": selection.data_dir,
        "--columns": selection.columns,
        "--on-bad-item": None if selection.on_bad_item == "stop" else selection.on_bad_item,
        "--out": folder,
    }
    command = training_command(advice.objective, data, {**changes, **advice.changes}, options)
    if chosen.name == OWN_RECIPE:
        note(
            f"no shipped recipe is for {name}: write {OWN_RECIPE} (a copy of a shipped one is a "
            "start). The model was asked with its default prompt; another prompt may change the advice."
        )
    if json:
        write_bytes(json_text({**asdict(advice), "command": command}).encode())
    else:
        write(f"{_readable(advice)}\n\nnext: {command}")
    return 0


def _model(model: str | None, recipe: Recipe | None, data: str) -> str:
    """Return the model that is to be trained: the recipe's, or that of a built-in set, if none is given."""
    if model is not None:
        return model
    if recipe is not None and recipe.model is not None:
        return recipe.model
    if is_built_in(data):
        return judge_of(data)
    raise UsageError(
        f"no model to train on {data}. Add --model PATH or a hub id, or a --recipe that names one."
    )


def _readable(advice: Advice) -> str:
    """Why, and the figures, each with its interval and what it is a share of, where it has them."""
    figures = advice.figures
    lines = [""] if figures else []
    for name, value in figures.items():
        if name.endswith(PARTS):
            continue
        shown = f"{value:,.0f}" if float(value).is_integer() else f"{value:.3f}"
        low, high, total = (figures.get(f"{name}{part}") for part in PARTS)
        if low is not None and high is not None:
            shown = f"{value:.3f} ({low:.3f} to {high:.3f})"
        if total is not None:
            shown += f" of {total:,.0f}"
        lines.append(f"{name.replace('_', ' '):24s} {shown}")
    return "\n".join([*(f"- {reason}" for reason in advice.reasons), *lines])
