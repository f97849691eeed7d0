"""Options of `unswayed train` that are fields of a recipe, and the command that stands for both."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta

from unswayed.base.arguments import Settings
from unswayed.base.errors import UsageError
from unswayed.training.recipe_parts import Layouts
from unswayed.training.reward_settings import Advantage
from unswayed.training.table import OBJECTIVES

EXACT: Final = "-exact"
"""Ends the name of an objective that another one runs with `--exact`."""

OPTION_OF: Final[Mapping[str, str]] = {
    "reward.consistency": "--reward",
    "reward.advantage": "--advantage",
    "target.distill": "--distill",
    "target.gold_noise": "--gold-noise",
    "data.layouts": "--layouts",
}
"""The option that sets a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions(Settings):
    """Options of `unswayed train` that go before the recipe."""

    reward: Annotated[
        str | None,
        Meta(
            description="Consistency reward of rl: FILE.py:NAME, or a name in `unswayed list rewards` "
            "[default: the recipe's, or con; exact: inv]"
        ),
    ] = None
    advantage: Annotated[
        Advantage | None,
        Meta(description="Responses that rl compares [default: the recipe's, or group]"),
    ] = None
    distill: Annotated[
        float | None,
        Meta(
            description="Weight of the model's average in rl --exact [default: the recipe's, or 0.5]",
            ge=0,
        ),
    ] = None
    gold_noise: Annotated[
        Literal["none", "auto"] | None,
        Meta(description="Weigh gold of sft by its error rate [default: the recipe's]"),
    ] = None
    layouts: Annotated[
        Layouts | None,
        Meta(description="Parts that move [default: the recipe's, or coupled; distill: all]"),
    ] = None

    def changes(self, texts: Sequence[str]) -> dict[str, str]:
        """Return the fields that `--set` and options change; an option goes before `--set`."""
        own = (self.distill, self.gold_noise, self.layouts)
        fields = zip(("target.distill", "target.gold_noise", "data.layouts"), own, strict=True)
        given = {field: str(value) for field, value in fields if value is not None}
        return {**dict(map(_change, texts)), **given}


def exact_form(objective: str) -> str:
    """Return the objective that computes what this one samples."""
    name = f"{objective.removesuffix(EXACT)}{EXACT}"
    if name in OBJECTIVES:
        return name
    others = " or ".join(f"train {typed(other)}" for other in OBJECTIVES if other.endswith(EXACT))
    raise UsageError(
        f"train {objective} has no --exact, which stands for computing rewards instead of sampling "
        f"them. Leave it out, or use {others}."
    )


def check_read(objective: str, changes: Mapping[str, str]) -> None:
    """Check that an objective reads the fields of a recipe's table `target` that the command changes.

    A field that no objective reads is left to the recipe, which knows no such field.
    """
    for field in changes:
        if not field.startswith("target."):
            continue
        readers = [name for name in OBJECTIVES if field in OBJECTIVES.load(name).uses]
        if objective in readers or not readers:
            continue
        raise UsageError(
            f"train {typed(objective)} has no {OPTION_OF.get(field, field)}. Leave it out, or use "
            f"{' or '.join(f'train {typed(name)}' for name in readers)}."
        )


def training_command(
    objective: str, data: str, changes: Mapping[str, str], options: Mapping[str, object]
) -> str:
    """Return the command line that trains; options that are None are not given."""
    name, *exact = typed(objective).split()
    words = ["unswayed", "train", name, data, *exact]
    for field, value in changes.items():
        option = OPTION_OF.get(field)
        words += ["--set", f"{field}={value}"] if option is None else [option, value]
    for option, given in options.items():
        words += [] if given is None else [option, str(given)]
    return shlex.join(words)


def typed(objective: str) -> str:
    """Return an objective as it is typed: `rl --exact` for rl-exact."""
    base = objective.removesuffix(EXACT)
    return f"{base} --exact" if base != objective and base in OBJECTIVES else objective


def _change(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not equals or not field:
        raise UsageError(f"--set {text!r}: write field=value, such as reward.lam=0.5.")
    return field.strip(), value.strip()
