"""`unswayed list`: what is registered."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.base.registry import did_you_mean
from unswayed.cli.output import show, write

if TYPE_CHECKING:
    from rich.table import Table

Rows = Sequence[tuple[str, ...]]
Listing = tuple[tuple[str, ...], Rows]
"""Headings of the columns, and the rows."""


def _registered(
    heading: tuple[str, str], table: str, said: Callable[[Any], str]
) -> Callable[[], Listing]:
    """List the entries of a registry, `module:NAME`, which is imported on use."""

    def listing() -> Listing:
        module, _, attribute = table.partition(":")
        entries = getattr(importlib.import_module(f"unswayed.{module}"), attribute)
        return heading, [(name, said(entries.load(name))) for name in entries]

    return listing


def _methods() -> Listing:
    from unswayed.methods import METHODS
    from unswayed.methods.names import parameters, written_value
    from unswayed.model.decisions import Evidence
    from unswayed.model.tasks import tasks_giving

    rows: list[tuple[str, ...]] = []
    for name in METHODS:
        method = METHODS.load(name)
        given = ", ".join(
            f"{key}={written_value(value)}" for key, value in parameters(method).items()
        )
        probs = "needs label probabilities; " if Evidence.PROBS in method.reads else ""
        facts = f"Calls per item: {method.about.calls}; {probs}{', '.join(tasks_giving(*method.readings()))}."
        rows.append((name, f"{method.about.idea}\n{facts}", given))
    return ("method", "description", "parameters and their defaults"), rows


def _providers() -> Listing:
    from unswayed.backends import BACKENDS

    rows = [(f"{name}/...", _first_line(BACKENDS.load(name))) for name in BACKENDS]
    return ("provider", "models"), rows


def _prices() -> Listing:
    from unswayed.backends.prices import load_prices

    table = load_prices()
    today, rows = datetime.datetime.now(datetime.UTC).date(), []
    for name, price in sorted(table.shipped.items()):
        day = table.checked[name.partition("/")[0]]
        age = plural((today - datetime.date.fromisoformat(day)).days, "day")
        rates = (price.input, price.cached_input, price.output)
        shown = ("" if rate is None else f"{rate:g}" for rate in rates)
        rows.append((name, *shown, f"{day}, {age} ago"))
    return ("priced model", "USD per 1M input tokens", "cached", "output", "checked"), rows


def _benchmarks() -> Listing:
    from unswayed.data.benchmarks import BENCHMARKS

    rows: list[tuple[str, ...]] = []
    for name in BENCHMARKS:
        benchmark = BENCHMARKS.load(name)
        revision = benchmark.revision[:12] if benchmark.is_pinned else "not pinned"
        about = [
            benchmark.title,
            f"{benchmark.address} ({revision}), arXiv {benchmark.paper}.",
            f"Licence: {benchmark.licence}.",
            *(["Gated: needs access and HF_TOKEN."] if benchmark.gated else []),
            *([f"Parts: {', '.join(benchmark.files)}."] if len(benchmark.files) > 1 else []),
            *([benchmark.note] if benchmark.note else []),
        ]
        rows.append((name, benchmark.task, f"{benchmark.rows:,}", "\n".join(about)))
    return ("benchmark", "task", "rows", "content"), rows


def _tasks() -> Listing:
    from unswayed.model.tasks import TASKS, task_of

    rows = [(task.name, task.noun, task.orders) for task in map(task_of, TASKS)]
    return ("task", "a candidate is called", "orders in audits"), rows


def _recipes() -> Listing:
    from unswayed.training.recipe import load_recipe, recipe_names

    recipes = [(name, load_recipe(name)) for name in recipe_names()]
    rows = [
        (
            name,
            recipe.task.value,
            recipe.model or "",
            recipe.prompt.style,
            "all weights" if recipe.lora is None else f"adapter of rank {recipe.lora.rank}",
            recipe.rollout.engine,
        )
        for name, recipe in recipes
    ]
    return ("recipe", "task", "model", "prompt", "trains", "samples with"), rows


def _launch_files() -> Listing:
    from unswayed.training.launch_files import launch_names, launch_title

    rows = [(name, launch_title(name)) for name in launch_names()]
    return ("launch file", "use"), rows


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


LISTINGS: Final[Mapping[str, tuple[Callable[[], Listing], ...]]] = {
    "methods": (_methods,),
    "metrics": (_registered(("metric", "meaning"), "metrics:METRICS", attrgetter("meaning")),),
    "models": (_providers, _prices),
    "importers": (
        _registered(("importer", "source"), "data.importers:IMPORTERS", attrgetter("title")),
    ),
    "benchmarks": (_benchmarks,),
    "prompts": (
        _registered(("prompt", "requested answer"), "prompts:PROMPTS", attrgetter("title")),
    ),
    "tasks": (_tasks,),
    "recipes": (_recipes,),
    "objectives": (
        _registered(
            ("objective", "description"), "training.table:OBJECTIVES", attrgetter("card_text")
        ),
    ),
    "rewards": (
        _registered(
            ("reward", "pays for"), "training.reward_settings:REWARDS", attrgetter("about")
        ),
    ),
    "engines": (_registered(("engine", "description"), "training.table:ENGINES", _first_line),),
    "launch": (_launch_files,),
}


def list_(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(LISTINGS)}.")],
    name: Annotated[
        str | None, typer.Argument(help="Launch file whose path is printed; only with launch.")
    ] = None,
) -> None:
    """List methods, models, benchmarks and other names."""
    if name is not None:
        if kind != "launch":
            raise UsageError(f"list {kind} takes no name. Leave it out.")
        from unswayed.training.launch_files import launch_file

        write(str(launch_file(name)))
        return
    if kind not in LISTINGS:
        raise UsageError(f"cannot list {kind!r}. {did_you_mean(kind, LISTINGS)}")
    for listing in LISTINGS[kind]:
        show(_table(*listing()))


def _table(heading: tuple[str, ...], rows: Rows) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(heading):
        # a name must be whole to be typed
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
