"""Arguments of the public functions: checked before anything is done with them."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose wrong arguments are an error that names the argument and what it takes.

    Raises:
        UsageError: On the call, if an argument is unknown, missing or of another kind.
    """
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
                wanted = signature.parameters[option].annotation
                raise UsageError(f"{name}(): {option} {value!r:.60}: expected {wanted}.")
        return function(*args, **kwargs)

    return call


@functools.cache
def _parts(kind: object) -> tuple[object, tuple[object, ...]]:
    return get_origin(kind), get_args(kind)


@functools.cache
def _plain(kind: object) -> frozenset[object]:
    """The types whose own values are of a kind without a second look."""
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
