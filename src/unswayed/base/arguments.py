"""Arguments of the public functions and options of commands: each option is stated once, as a field.

A field of a `Settings` class whose `Meta` has a description is an option. Where a command line or a function
differ from the field, `extra` says so: `text` is the type that is typed, `typed` its default there, `value`
what a function takes. A field that is True by default has a switch `--no-...`, which the description is of.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import (
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta

from unswayed.base.errors import UsageError
from unswayed.base.registry import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings whose described fields are options."""

    @classmethod
    def of(cls, given: Mapping[str, Any], base: Self | None = None) -> Self:
        """Return settings with their options laid over `base`; None leaves a value as it is."""
        named = {field.name: given.get(field.name) for field in fields(cls)}
        values = {name: value for name, value in named.items() if value is not None}
        return replace(base or cls(), **values).valid()

    def valid(self) -> Self:
        """Return the same, with values of the kinds that are kept."""
        return self


class Option(NamedTuple):
    """One option, as a function takes it and as a command line does."""

    name: str
    kind: Any  # Any: a type, which may be a union
    default: object
    typed_kind: Any
    typed_default: object
    help: str
    least: float | None

    @property
    def is_off_switch(self) -> bool:
        """True if it is on unless `--no-...` is typed."""
        return self.default is True


def options_of(settings: type[Settings]) -> Iterator[Option]:
    """Yield the options that a class states, in the order of its fields."""
    full, plain = get_type_hints(settings, include_extras=True), get_type_hints(settings)
    for field in fields(settings):
        metas, kind = list(_metas(full[field.name])), plain[field.name]
        extra = dict(pair for meta in metas for pair in (meta.extra or {}).items())
        typed_kind = extra.get("text", kind)
        typed_default = extra.get("typed", field.default)
        for meta in metas:
            if meta.description:
                yield Option(
                    name=field.name,
                    kind=extra.get("value", kind),
                    default=field.default,
                    typed_kind=typed_kind | None if typed_default is None else typed_kind,
                    typed_default=typed_default,
                    help=meta.description,
                    least=meta.ge if meta.gt is None else meta.gt + 0.001,
                )


def _metas(kind: object) -> Iterator[Meta]:
    """Yield the metadata of a type and of its parts."""
    for part in get_args(kind):
        if isinstance(part, Meta):
            yield part
        else:
            yield from _metas(part)


def takes(
    *kinds: type[Settings], over: type[Settings] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a function whose `**options` are the options of settings, shown by its signature and its help.

    Those of `over` may be None, because they are laid over settings that are given whole.
    """

    def shown(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more, lines = [], []
        for kind in (*kinds, *([over] if over else [])):
            for option in options_of(kind):
                annotation = option.kind | None if kind is over else option.kind
                more.append(
                    inspect.Parameter(
                        option.name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=option.default,
                        annotation=annotation,
                    )
                )
                lines.append(
                    f"    {option.name}: {'False: ' if option.is_off_switch else ''}{option.help}"
                )
        told = [inspect.cleandoc(function.__doc__ or ""), "\n".join(["Keyword Args:", *lines])]
        function.__doc__ = "\n\n".join(told)
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *more])
        function.__annotations__ = {p.name: p.annotation for p in (*own, *more)}
        return function

    return shown


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose wrong arguments are an error that names the argument and what it takes."""
    signature = inspect.signature(function)
    name = function.__qualname__.removesuffix(".__init__")
    parameters = [parameter for parameter in signature.parameters if parameter != "self"]
    positional = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    required = {
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is inspect.Parameter.empty
    }
    kinds_of = functools.cache(partial(get_type_hints, function))  # names may be defined later

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for option in kwargs:
            if option not in parameters:
                raise UsageError(
                    f"{name}() has no option {option!r}. {did_you_mean(option, parameters)}"
                )
        given: dict[str, object] = dict(zip(positional, args, strict=False))
        twice = len(given) < len(args) or not given.keys().isdisjoint(kwargs)
        given.update(kwargs)
        if twice or not required <= given.keys():
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise UsageError(f"{name}(): {error}.") from None
        kinds = kinds_of()
        for option, value in given.items():
            if option != "self" and not _is_of(value, kinds[option]):
                wanted = written(signature.parameters[option].annotation)
                raise UsageError(f"{name}(): {option} {value!r:.60}: expected {wanted}.")
        return function(*args, **kwargs)

    return call


def written(kind: object) -> str:
    """Return a type as it is written in a signature."""
    if get_origin(kind) in (Union, types.UnionType):
        return " | ".join(map(written, get_args(kind)))
    if isinstance(kind, type) and not get_args(kind):
        return "None" if kind is types.NoneType else kind.__name__
    return re.sub(r"\b(?:\w+\.)+", "", str(kind))


@functools.cache
def _parts(kind: object) -> tuple[object, tuple[object, ...]]:
    return get_origin(kind), get_args(kind)


@functools.cache
def _plain(kind: object) -> frozenset[object]:
    """Return the types whose own values are of a kind without a second look."""
    union = get_origin(kind) in (Union, types.UnionType)
    return frozenset(get_args(kind) if union else (kind,))


def _is_of(value: object, kind: object) -> bool:
    if type(value) in _plain(kind):
        return True
    origin, inner = _parts(kind)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, part) for part in inner)
    if origin is Literal:
        return value in inner
    plain = origin or kind
    if getattr(plain, "_is_protocol", False) and origin is None:  # any object of somebody's class
        return type(value).__module__ != "builtins"
    if plain is Sequence and isinstance(value, str):  # whose elements are letters
        return False
    if isinstance(value, bool):
        return plain is bool
    return isinstance(value, (int, float) if plain is float else plain)  # type: ignore[arg-type]
