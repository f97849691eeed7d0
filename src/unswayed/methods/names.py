"""Methods by name: `pride:prior=group` to a method and back, and what `--methods all` means."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from unswayed.base.errors import UsageError
from unswayed.base.registry import did_you_mean
from unswayed.methods import METHODS
from unswayed.methods.protocol import Method, learned_fields, why_not
from unswayed.model.items import Task
from unswayed.model.tasks import task_of


def parameters(method: type[Method] | Method) -> dict[str, object]:
    """Return the hyperparameters of a method with their defaults, by name."""
    filled = learned_fields(method)
    return {spec.name: spec.default for spec in fields(method) if spec.name not in filled}


def parse_method(text: str) -> Method:
    """Return the method of a name with parameters: `name` or
    `name:parameter=value:parameter=value`.

    A value may contain colons (`vote:orders=random:8`); `+` separates the parts of a list
    (`contextual:strings=N/A+[MASK]`).
    """
    name, *rest = text.strip().split(":")
    if "=" in name or "=" in text.partition(",")[2]:
        way = text.replace(",", ":") if "," in text else "contextual:per_item=true:strings=N/A"
        raise UsageError(f"{text!r}: write the parameters after the method, with colons: {way}.")
    if name.endswith(".json"):
        raise UsageError(
            f"{name} is a file, but methods are given by name here. To audit a fitted method, pass a us.Judge "
            "that uses it to us.audit (docs/correct.md)."
        )
    kind = METHODS.load(name)
    defaults = parameters(kind)
    given: dict[str, str] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals and given:
            last = next(reversed(given))
            given[last] = f"{given[last]}:{part}"
            continue
        if key not in defaults:
            if not defaults:
                raise UsageError(f"{text!r}: {name} has no parameters. Leave them out.")
            raise UsageError(f"{text!r}: unknown parameter {key!r}. {did_you_mean(key, defaults)}")
        if not equals or not value:
            raise UsageError(f"{text!r}: give {key} a value, such as {key}={defaults[key]}.")
        if key in given:
            raise UsageError(f"{text!r}: {key} is given twice. Give it once.")
        given[key] = value
    hints = get_type_hints(kind)
    return kind(**{key: _convert(text, key, value, hints[key]) for key, value in given.items()})


def _convert(text: str, key: str, value: str, kind: Any) -> object:  # Any: a type expression
    raw: object = value
    if get_origin(kind) is tuple:
        raw = value.split("+")
    elif bool in (kind, *get_args(kind)):
        raw = {"true": True, "yes": True, "false": False, "no": False}.get(value.lower(), value)
    try:
        converted: object = msgspec.convert(raw, kind, strict=False)
    except msgspec.ValidationError as error:
        allowed = [
            str(option)
            for part in (kind, *get_args(kind))
            if get_origin(part) is Literal
            for option in get_args(part)
        ]
        if allowed:
            raise UsageError(
                f"{text!r}: {key} cannot be {value!r}. {did_you_mean(value, allowed)}"
            ) from None
        raise UsageError(f"{text!r}: {key}={value}: {error}.") from None
    return converted


def spec_name(method: Method) -> str:
    """Return the name with the parameters that are not the default, as `parse_method` reads it."""
    given = {key: getattr(method, key) for key in parameters(method)}
    changed = (key for key, default in parameters(method).items() if given[key] != default)
    return ":".join([method.name, *(f"{key}={written_value(given[key])}" for key in changed)])


def written_value(value: object) -> str:
    """Return the value of a parameter as a name holds it."""
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def named(method: object) -> object:
    """Return the name of a method with its parameters, and anything else as it is.

    Raises:
        UsageError: If the method has learned something, which no name tells.
    """
    if not isinstance(method, Method):
        return method
    name = spec_name(method)
    if parse_method(name) != method:
        raise UsageError(
            f"{name} is fitted already. An audit fits each method itself: give its name."
        )
    return name


def default_methods(
    task: Task, candidates: Collection[int], *, groups: bool = False
) -> tuple[Method, ...]:
    """Return the methods of `--methods all`: every method that applies to the task and to all these
    numbers of candidates, and the useful variants; with `groups` also those that learn per group.

    Methods that are off by default (`batch`) are left out.
    """
    names: list[str] = []
    for name in METHODS:
        about = METHODS.load(name).about
        if about.default:
            names += [name, *about.variants, *(about.group_variants if groups else ())]
            names += about.points_variants if task_of(task).points is not None else ()
    usable = [
        method
        for method in map(parse_method, names)
        if all(why_not(method, task=task, n=n) is None for n in candidates)
    ]
    return tuple(sorted(usable, key=lambda method: (method.about.rank, spec_name(method))))
