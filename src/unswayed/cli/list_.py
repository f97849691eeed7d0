"""`unswayed list`: what is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unswayed.cli.output import show
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

if TYPE_CHECKING:
    from rich.table import Table

KINDS = ("methods", "metrics", "models", "importers", "prompts", "recipes")


def list_(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}.")],
) -> None:
    """List methods, metrics, models (providers and prices), importers, prompts or recipes."""
    if kind not in KINDS:
        raise UsageError(f"cannot list {kind!r}. {did_you_mean(kind, KINDS)}")
    for heading, rows in _tables(kind):
        show(_table(heading, rows))


Rows = list[tuple[str, ...]]


def _table(heading: tuple[str, ...], rows: Rows) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(heading):
        table.add_column(column, no_wrap=number == 0)  # a name must be whole to be typed
    for row in rows:
        table.add_row(*row)
    return table


def _tables(kind: str) -> list[tuple[tuple[str, ...], Rows]]:
    if kind == "methods":
        return [_methods()]
    if kind == "models":
        return [_providers(), _prices()]
    return [_names(kind)]


def _methods() -> tuple[tuple[str, ...], Rows]:
    from unswayed.decisions import Evidence
    from unswayed.methods import METHODS
    from unswayed.methods.names import parameters
    from unswayed.tasks import tasks_giving

    rows: Rows = []
    for name in METHODS:
        method = METHODS.load(name)
        given = ", ".join(f"{key}={_written(value)}" for key, value in parameters(method).items())
        probs = "needs label probabilities; " if Evidence.PROBS in method.reads else ""
        facts = (
            f"Calls per item: {method.about.calls}; {probs}{', '.join(tasks_giving(method.reads))}."
        )
        rows.append((name, f"{method.about.idea}\n{facts}", given))
    return ("method", "what it does", "parameters and their defaults"), rows


def _written(value: object) -> str:
    """A default as it is written after the name of a method."""
    if isinstance(value, tuple):
        return "+".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _providers() -> tuple[tuple[str, ...], Rows]:
    from unswayed.backends import BACKENDS, ELSEWHERE

    rows = [(f"{name}/...", _first_line(BACKENDS.load(name))) for name in BACKENDS]
    return ("provider", "what it reaches"), [
        *rows,
        *((f"{name}/...", f"No provider: {way}") for name, way in ELSEWHERE.items()),
    ]


def _prices() -> tuple[tuple[str, ...], Rows]:
    from unswayed.backends.prices import load_prices

    table = load_prices()
    rows = [
        (name, *("" if rate is None else f"{rate:g}" for rate in rates))
        for name, price in sorted(table.shipped.items())
        for rates in ((price.input, price.cached_input, price.output),)
    ]
    return (f"priced model ({table.as_of})", "USD per 1M input tokens", "cached", "output"), rows


def _names(kind: str) -> tuple[tuple[str, ...], Rows]:
    if kind == "metrics":
        from unswayed.metrics import METRICS

        return ("metric", "what it is"), [(name, METRICS.load(name).meaning) for name in METRICS]
    if kind == "prompts":
        from unswayed.prompts import PROMPTS

        return ("prompt", "the answer it asks for"), [
            (name, PROMPTS.load(name).title) for name in PROMPTS
        ]
    if kind == "recipes":
        return ("recipe", "task", "model"), _recipes()
    from unswayed.importers import IMPORTERS

    return ("importer", "what it reads"), [(name, IMPORTERS.load(name).title) for name in IMPORTERS]


def _recipes() -> Rows:
    from unswayed.training.recipe import load_recipe, recipe_names

    recipes = [(name, load_recipe(name)) for name in recipe_names()]
    return [(name, recipe.task.value, recipe.model or "") for name, recipe in recipes]


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
