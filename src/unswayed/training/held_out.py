"""Following accuracy and consistency on held-out items while a model trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from unswayed.base.digests import drawn
from unswayed.metrics import METRICS, measure, outcomes_from_decisions
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.rates import UNPARSED_RATE
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, blind
from unswayed.model.presentation import Ask
from unswayed.prompts import render
from unswayed.training.groups import prompt_settings
from unswayed.training.plan import Plan
from unswayed.training.responses import reader

SHARE: Final = 0.25
"""Most answers of a check, as a share of the responses trained on between two checks."""

RESAMPLES: Final = 1000
"""Resamples of the intervals: milliseconds, where the answers take seconds."""

FOLLOWED: Final = {
    name.removesuffix("_rate"): name
    for name in map(METRICS.name_of, (ACCURACY, CONSISTENCY, UNPARSED_RATE))
}
"""Name in the log, and the metric that it is."""

PREFIX: Final = "held_out/"

Answer = Callable[[Sequence[Sequence[int]]], Sequence[str]]
"""Greedy answers of the model being trained to prompts of token ids, in order."""


class Figure(NamedTuple):
    """A held-out figure as it was logged."""

    name: str  # such as accuracy
    # value, low, high: with its 95% interval, clustered by item; None where there is none
    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """Value and interval, to be read."""
        ends = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.value:.3f}{ends}"


def checked_items(plan: Plan) -> tuple[Item, ...]:
    """Return the held-out items that every check asks about, as many as its share of the work allows.

    At least one; the same in every check of a run, drawn by their ids.
    """
    recipe, groups = plan.recipe, plan.groups
    examples = recipe.optimiser.items_per_step * groups.n_presentations
    between = (recipe.run.check_every or plan.steps) * (plan.responses_per_step or examples)
    most = max(1, int(SHARE * between / groups.n_presentations))
    chosen = drawn((item.id for item in groups.held_out), most, seed=recipe.run.seed)
    return tuple(item for item in groups.held_out if item.id in chosen)


def figures(items: Sequence[Item], decisions: Iterable[Decision]) -> dict[str, float]:
    """Accuracy, consistency and the share of unparsed answers, over the presentations that are trained.

    Each with the ends of its interval (`accuracy`, `accuracy/low`, `accuracy/high`), and the number of items.
    """
    outcomes = outcomes_from_decisions(items, decisions)
    row = measure(outcomes, names=list(FOLLOWED.values()), resamples=RESAMPLES)
    values: dict[str, float] = {"items": len(items)}
    for name, metric in FOLLOWED.items():
        estimate = row[metric]
        for key, value in ("", estimate.value), ("/low", estimate.low), ("/high", estimate.high):
            if value is not None:
                values[f"{name}{key}"] = value
    return values


def figures_of(logged: Mapping[str, float]) -> list[Figure]:
    """Return the figures in a log line or a training result, without the number of items."""
    return [
        Figure(name, logged[key], logged.get(f"{key}/low"), logged.get(f"{key}/high"))
        for name in FOLLOWED
        if (key := f"{PREFIX}{name}") in logged
    ]


def look_filtered(before: Iterable[Figure]) -> bool:
    """Return True if figures before training say that no item was consistent, as a filter leaves them."""
    name = METRICS.name_of(CONSISTENCY).removesuffix("_rate")
    return any(figure.name == name and figure.value == 0 for figure in before)


def measure_held_out(plan: Plan, answer: Answer) -> dict[str, float]:
    """Measure the accuracy of a greedy reader of the model in training, for the log."""
    recipe, groups = plan.recipe, plan.groups
    prompts = prompt_settings(recipe.prompt)
    items = checked_items(plan)
    asked = [
        (item, shown, render(blind(item), Ask(shown), prompts))
        for item in items
        for shown in groups.views[item.n]
    ]
    answers = answer([plan.chat.ids(rendered.messages) for _, _, rendered in asked])
    read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
    decisions = []
    for (item, shown, rendered), text in zip(asked, answers, strict=True):
        symbols = rendered.labels
        label = read(text, symbols).label
        decisions.append(
            Decision(
                item_id=item.id,
                order=shown.order,
                labels=shown.symbols(symbols),
                label_set=symbols,
                choice=None if label is None else shown.candidate_of_label(label),
            )
        )
    return {f"{PREFIX}{name}": value for name, value in figures(items, decisions).items()}
