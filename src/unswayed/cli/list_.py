"""`unswayed list`: what is registered."""

from __future__ import annotations

from typing import Annotated

import typer

from unswayed.cli.output import show
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

KINDS = ("methods", "metrics", "models", "importers", "prompts", "recipes")


def list_(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}.")],
) -> None:
    """List methods, metrics, models (providers), importers, prompts or recipes."""
    if kind not in KINDS:
        raise UsageError(f"cannot list {kind!r}. {did_you_mean(kind, KINDS)}")
    from rich.table import Table

    heading, rows = _rows(kind)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(heading):
        table.add_column(column, no_wrap=number == 0)  # a name must be whole to be typed
    for row in rows:
        table.add_row(*row)
    show(table)


def _rows(kind: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if kind == "methods":
        from unswayed.methods import METHODS

        rows: list[tuple[str, ...]] = []
        for name in METHODS:
            method = METHODS.load(name)
            about = method.about
            probs = "yes" if method.needs_probs else "no"
            rows.append((name, about.title, about.calls, probs, ", ".join(sorted(method.tasks))))
        return ("method", "what it does", "calls per item", "needs probabilities", "tasks"), rows
    if kind == "metrics":
        from unswayed.metrics import METRICS

        return ("metric", "what it is"), [
            (name, _first_line(METRICS.load(name))) for name in METRICS
        ]
    if kind == "models":
        from unswayed.backends import BACKENDS

        return ("provider", "what it reaches"), [
            (f"{name}/...", _first_line(BACKENDS.load(name))) for name in BACKENDS
        ]
    if kind == "prompts":
        from unswayed.prompts import PROMPTS

        return ("prompt", "the answer it asks for"), [
            (name, PROMPTS.load(name).title) for name in PROMPTS
        ]
    if kind == "recipes":
        return ("recipe", "task", "model"), _recipes()
    from unswayed.importers import IMPORTERS

    return ("importer", "what it reads"), [
        (name, _first_line(IMPORTERS.load(name))) for name in IMPORTERS
    ]


def _recipes() -> list[tuple[str, ...]]:
    from unswayed.training.recipe import load_recipe, recipe_names

    recipes = [(name, load_recipe(name)) for name in recipe_names()]
    return [(name, recipe.task.value, recipe.model or "") for name, recipe in recipes]


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
