"""Lazy tables of names: one line registers a method, metric, backend, importer, prompt, task, objective,
reward or engine.

A table maps a public name to `"module:attribute"`; nothing is imported until it is asked for.
Third parties add to a table through the entry-point group `unswayed.<kind>` of their package.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from unswayed.errors import MissingExtraError, UnknownNameError

__all__ = ["Registry", "did_you_mean", "require"]

T = TypeVar("T")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The sentence that ends an "unknown name" error: a close match, else all names."""
    listed = sorted(names)
    close = difflib.get_close_matches(name, listed, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known: {', '.join(listed)}."


class Registry(Generic[T]):
    """A lazy table of one kind of extension.

    Args:
        kind: Singular noun used in messages and in the entry-point group (`unswayed.<kind>s`).
        table: Name to `"module:attribute"`.
    """

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)
        self._loaded: dict[str, T] = {}

    @functools.cached_property
    def _all(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        self._loaded.clear()
        others = {point.name: point.value for point in entry_points(group=f"unswayed.{self.kind}s")}
        return {**others, **self._table}  # a built-in name cannot be taken over silently

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def load(self, name: str) -> T:
        """Import and return the registered object.

        Raises:
            UnknownNameError: If nothing is registered under `name`.
            MissingExtraError: If the entry needs an optional dependency that is not installed.
        """
        if name not in self._all:
            raise UnknownNameError(f"unknown {self.kind} {name!r}. {did_you_mean(name, self._all)}")
        if name not in self._loaded:
            module_name, _, attribute = self._all[name].partition(":")
            self._loaded[name] = getattr(importlib.import_module(module_name), attribute)
        return self._loaded[name]

    def name_of(self, entry: T) -> str:
        """The name under which an object is registered.

        Raises:
            UnknownNameError: If it is not registered.
        """
        name = _name_in(self._table, entry) or _name_in(self._all, entry)
        if name is None:
            raise UnknownNameError(f"no {self.kind} is {entry!r}.")
        return name


def _name_in(table: Mapping[str, str], entry: object) -> str | None:
    """Whoever holds an object has imported its module, so nothing is imported here."""
    for name, where in table.items():
        module_name, _, attribute = where.partition(":")
        if getattr(sys.modules.get(module_name), attribute, None) is entry:
            return name
    return None


def require(module: str, *, extra: str, feature: str) -> None:
    """Check that an optional dependency is installed.

    Raises:
        MissingExtraError: Naming the feature and the install command.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtraError(
            f"{feature} needs {module}, which is not installed. "
            f'Install it with: pip install "unswayed[{extra}]"'
        )
