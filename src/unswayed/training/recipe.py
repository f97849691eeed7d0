"""Reading recipes: shipped ones by name, one's own by path, with single fields changed."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.inspect import Type, UnionType, type_info

from unswayed.backends.own_prompts import PROMPT_FILE, OwnPrompt
from unswayed.base.errors import UnknownNameError, UsageError, field_and_reason
from unswayed.base.files import read_whole
from unswayed.base.registry import did_you_mean
from unswayed.training.recipe_parts import Recipe

FOLDER: Final = Path(__file__).with_name("recipes")

LARGEST: Final = 1e30
"""What single precision holds, with room for what it is multiplied by."""


def recipe_names() -> tuple[str, ...]:
    """Return the shipped recipes."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


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
        raise UsageError(f"{where}: not valid TOML ({error}). Correct it.") from None
    raw.setdefault("name", Path(str(name)).name.removesuffix(".toml"))
    return _build(raw, where)


def with_changes(recipe: Recipe, changes: Mapping[str, str]) -> Recipe:
    """Return the recipe with some fields set, such as `{"reward.lam": "0.5", "data.orders": "cyclic"}`.

    Args:
        recipe: The recipe to start from.
        changes: Dotted field to a TOML value; bare words are taken as strings.

    Raises:
        UnknownNameError: If a field does not exist.
        UsageError: If a value does not fit.
    """
    raw: dict[str, object] = {k: v for k, v in msgspec.to_builtins(recipe).items() if v is not None}
    for field, value in changes.items():
        if any("\ud800" <= letter <= "\udfff" for letter in field + value):  # bytes that are none
            raise UsageError(f"recipe field {field!a}: {value!a} is not UTF-8 text. Correct it.")
        table, _, key = field.rpartition(".")
        target = raw
        if table:
            inner = raw.setdefault(table, {})
            if not isinstance(inner, dict):
                raise UnknownNameError(f"recipe field {field!r}: {table} has no fields.")
            target = inner
        target[key] = _toml_value(value)
    return _build(raw, "the recipe as changed")


def recipe_at(place: str | Path) -> Recipe | None:
    """Return the recipe that `--recipe` names; None if it names the folder of a trained model."""
    return None if (Path(place) / PROMPT_FILE).exists() else load_recipe(place)


def local_name(model: str | None) -> str | None:
    """Return the name by which a recipe's model is asked on this machine."""
    return model if model is None or model.startswith(("hf/", "tiny/")) else f"hf/{model}"


def with_own_prompt(recipe: Recipe, own: OwnPrompt) -> Recipe:
    """Return the recipe, with the base's own template and thinking mode where it leaves them open."""
    changes: dict[str, object] = {}
    if recipe.prompt.template is None and own.template is not None:
        changes["prompt"] = msgspec.structs.replace(recipe.prompt, template=own.template)
    if recipe.chat.enable_thinking is None and own.enable_thinking is not None:
        changes["chat"] = msgspec.structs.replace(recipe.chat, enable_thinking=own.enable_thinking)
    return msgspec.structs.replace(recipe, **changes)


def prompt_of(recipe: Recipe, own: OwnPrompt) -> OwnPrompt:
    """Return how a recipe asks a model that has its own prompt, and how its result is to be asked."""
    recipe = with_own_prompt(recipe, own)
    prompt = recipe.prompt
    return OwnPrompt(
        style=prompt.style,
        labels=prompt.labels,
        template=prompt.template,
        only_template=own.only_template,
        think_tags=prompt.think_tags,
        answer_tags=prompt.answer_tags,
        max_response_tokens=prompt.max_response_tokens,
        enable_thinking=recipe.chat.enable_thinking,
    )


def for_engine(recipe: Recipe, name: str) -> Recipe:
    """Return the recipe without the tables of other engines."""
    own = {key: table for key, table in recipe.engine.items() if key == name}
    return msgspec.structs.replace(recipe, engine=own)


def _read(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml" or path.parent != Path():
        try:
            return read_whole(path).decode("utf-8-sig"), str(path)
        except OSError as error:
            raise UsageError.cannot(f"read recipe {path}", error, "Correct --recipe.") from None
        except UnicodeDecodeError as error:
            raise UsageError(
                f"cannot read recipe {path}: it is not UTF-8 text (byte {error.start}). "
                "Save it as UTF-8."
            ) from None
    if str(name) not in recipe_names():
        raise UnknownNameError(
            f"unknown recipe {str(name)!r}. {did_you_mean(str(name), recipe_names())} "
            "Give your own recipe as a path that ends in .toml."
        )
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"recipe {name}"


def _build(raw: Mapping[str, object], where: str) -> Recipe:
    _check_fields(raw, where)
    try:
        recipe = msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        hint = _hint(field)
        raise UsageError(f"{where}: {field or 'recipe'}: {reason}.{hint}") from None
    _check_values(recipe, where)
    return recipe


def _check_fields(raw: Mapping[str, object], where: str) -> None:
    tables = _fields_by_table()
    for key, value in raw.items():
        if key not in tables:
            raise UnknownNameError(f"{where}: unknown field {key!r}. {did_you_mean(key, tables)}")
        for name in value if tables[key] and isinstance(value, Mapping) else ():
            if name not in tables[key]:
                homes = [f"{table}.{name}" for table in tables if name in tables[table]]
                hint = did_you_mean(name, homes or tables[key], cutoff=0.0 if homes else 0.5)
                raise UnknownNameError(f"{where}: unknown field {key}.{name}. {hint}")


def _hint(field: str) -> str:
    """Return the allowed content of a field: its choices, or the fields of a table."""
    tables = _fields_by_table()
    if names := tables.get(field):
        return f" It is a table: set {' or '.join(f'{field}.{name}' for name in sorted(names))}."
    table, _, name = field.rpartition(".")
    kinds = tables.get(table, {}).get(name, ())
    choices = [str(value) for kind in kinds for value in getattr(kind, "values", ())]
    return f" Known: {', '.join(choices)}." if choices else ""


@functools.cache
def _fields_by_table() -> Mapping[str, Mapping[str, Sequence[Type]]]:
    """Return the fields of each table of a recipe with the types they may have; none of a plain field."""
    tables: Any = type_info(Recipe)
    return {
        table.name: {
            field.name: _kinds(field.type)
            for kind in _kinds(table.type)
            for field in getattr(kind, "fields", ())
        }
        for table in tables.fields
    }


def _kinds(declared: Type) -> Sequence[Type]:
    return declared.types if isinstance(declared, UnionType) else (declared,)


def _check_values(recipe: Recipe, where: str) -> None:
    """Check what no type can say: finite numbers, and fields that depend on each other."""
    for name, number in recipe.identity().items():
        if isinstance(number, float) and not math.isfinite(number):
            raise UsageError(f"{where}: {name}: {number} is not a finite number. Correct it.")
        if isinstance(number, float) and abs(number) > LARGEST:
            raise UsageError(
                f"{where}: {name}: {number} is above {LARGEST:.0e}; weights cannot be computed with it."
            )
    rollout, run, inner_updates = recipe.rollout, recipe.run, recipe.optimiser.inner_updates
    if rollout.engine == "vllm-server" and rollout.server_url is None:
        raise UsageError(f"{where}: rollout.engine vllm-server needs rollout.server_url. Set it.")
    if recipe.data.evaluation is not None and recipe.data.held_out:
        raise UsageError(
            f"{where}: data.evaluation does not work with data.held_out {recipe.data.held_out}. Set "
            "data.held_out to 0."
        )
    if run.save_every != "auto" and run.save_every % inner_updates:
        raise UsageError(
            f"{where}: run.save_every {run.save_every} must be a multiple of "
            f"optimiser.inner_updates {inner_updates}: a checkpoint between two updates "
            "of the same responses could not be resumed exactly."
        )


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
