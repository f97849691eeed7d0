"""Reading recipes: shipped ones by name, one's own by path, with single fields changed."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from unswayed.errors import UnknownNameError, UsageError, field_and_reason
from unswayed.registry import did_you_mean
from unswayed.training.recipe_parts import (
    KINDS,
    Chat,
    Data,
    Kind,
    Lora,
    Optimiser,
    Pif,
    Prompt,
    Recipe,
    RewardNumbers,
    Rollout,
    Run,
    reward_settings,
)

__all__ = [
    "KINDS",
    "Chat",
    "Data",
    "Kind",
    "Lora",
    "Optimiser",
    "Pif",
    "Prompt",
    "Recipe",
    "RewardNumbers",
    "Rollout",
    "Run",
    "load_recipe",
    "recipe_names",
    "reward_settings",
    "with_changes",
]


def recipe_names() -> tuple[str, ...]:
    """The shipped recipes."""
    folder = resources.files("unswayed.training") / "recipes"
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))
    )


def load_recipe(name: str | Path) -> Recipe:
    """Read a shipped recipe by name, or a TOML file by path.

    Raises:
        UnknownNameError: If there is no such recipe, or it has an unknown field.
        UsageError: If the file is not valid TOML or a value is out of range.
    """
    text, where = _read(name)
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise UsageError(f"{where}: not valid TOML ({error}).") from None
    raw.setdefault("name", Path(str(name)).name.removesuffix(".toml"))
    return _build(raw, where)


def with_changes(recipe: Recipe, changes: Mapping[str, str]) -> Recipe:
    """The recipe with some fields set, such as `{"reward.lam": "0.5", "data.orders": "cyclic"}`.

    Args:
        recipe: The recipe to start from.
        changes: Dotted field to a TOML value; bare words are taken as strings.

    Raises:
        UnknownNameError: If a field does not exist.
        UsageError: If a value does not fit.
    """
    raw: dict[str, object] = {k: v for k, v in msgspec.to_builtins(recipe).items() if v is not None}
    for field, value in changes.items():
        table, _, key = field.rpartition(".")
        target = raw
        if table:
            inner = raw.setdefault(table, {})
            if not isinstance(inner, dict):
                raise UnknownNameError(f"recipe field {field!r}: {table} has no fields.")
            target = inner
        target[key] = _toml_value(value)
    return _build(raw, "the recipe as changed")


def _read(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml" or path.parent != Path():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except OSError as error:
            raise UsageError(f"cannot read recipe {path}: {error.strerror or error}.") from None
        except UnicodeDecodeError as error:
            raise UsageError(
                f"cannot read recipe {path}: it is not UTF-8 text (byte {error.start}). "
                "Save it as UTF-8."
            ) from None
    if str(name) not in recipe_names():
        raise UnknownNameError(
            f"unknown recipe {str(name)!r}. {did_you_mean(str(name), recipe_names())} "
            "A recipe of your own is given as a path ending in .toml."
        )
    file = resources.files("unswayed.training") / "recipes" / f"{name}.toml"
    return file.read_text(encoding="utf-8"), f"recipe {name}"


def _build(raw: Mapping[str, object], where: str) -> Recipe:
    _check_fields(raw, where)
    try:
        recipe = msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        raise UsageError(f"{where}: {field or 'recipe'}: {reason}.") from None
    _check_values(recipe, where)
    return recipe


_TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "data": Data,
    "prompt": Prompt,
    "reward": RewardNumbers,
    "rollout": Rollout,
    "optimiser": Optimiser,
    "lora": Lora,
    "pif": Pif,
    "chat": Chat,
    "run": Run,
}


def _check_fields(raw: Mapping[str, object], where: str) -> None:
    known = set(Recipe.__struct_fields__)
    for key, value in raw.items():
        if key not in known:
            raise UnknownNameError(f"{where}: unknown field {key!r}. {did_you_mean(key, known)}")
        if key in _TABLES and isinstance(value, Mapping):
            fields = _TABLES[key].__struct_fields__
            for name in value:
                if name not in fields:
                    raise UnknownNameError(
                        f"{where}: unknown field {key}.{name}. {did_you_mean(name, fields)}"
                    )


def _check_values(recipe: Recipe, where: str) -> None:
    for name, number in recipe.identity().items():
        if isinstance(number, float) and not math.isfinite(number):
            raise UsageError(f"{where}: {name}: {number} is not a finite number.")
    optimiser, rollout, run = recipe.optimiser, recipe.rollout, recipe.run
    at_least: tuple[tuple[str, float, float], ...] = (
        ("rollout.samples", rollout.samples, 1),
        ("optimiser.items_per_step", optimiser.items_per_step, 1),
        ("optimiser.inner_updates", optimiser.inner_updates, 1),
        ("optimiser.beta", optimiser.beta, 0),
        ("optimiser.entropy", optimiser.entropy, 0),
        ("optimiser.steps", 1 if optimiser.steps is None else optimiser.steps, 1),
        ("data.held_out", recipe.data.held_out, 0),
        ("data.max_prompt_tokens", recipe.data.max_prompt_tokens, 1),
        ("run.micro_batch", run.micro_batch, 1),
        ("run.save_every", run.save_every, 0),
        ("run.log_every", run.log_every, 1),
        ("run.keep", run.keep, 1),
        ("pif.negatives", recipe.pif.negatives, 0),
    )
    for name, value, lowest in at_least:
        if not value >= lowest:
            raise UsageError(f"{where}: {name}: {value} is too small; the least is {lowest}.")
    above_zero = (
        ("optimiser.learning_rate", optimiser.learning_rate),
        ("optimiser.epochs", optimiser.epochs),
        ("optimiser.clip", optimiser.clip),
        ("rollout.temperature", rollout.temperature),
    )
    for name, value in above_zero:
        if not value > 0:
            raise UsageError(f"{where}: {name}: {value} must be above 0.")
    if rollout.engine == "vllm-server" and rollout.server_url is None:
        raise UsageError(f"{where}: rollout.engine vllm-server needs rollout.server_url.")
    if run.save_every % optimiser.inner_updates:
        raise UsageError(
            f"{where}: run.save_every {run.save_every} must be a multiple of "
            f"optimiser.inner_updates {optimiser.inner_updates}: a checkpoint between two updates "
            "of the same responses could not be resumed exactly."
        )
    reward_settings("rl", recipe)  # checks the reward's own ranges


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
