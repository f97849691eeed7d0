"""Lazy tables of names: one line registers an extension; CONTRIBUTING.md lists the kinds.

A table maps a public name to `"module:attribute"`; nothing is imported until it is asked for.
Third parties add to a table through the entry-point group `unswayed.<kind>s` of their package. What
they register is checked when it is loaded, and left out of lists, with a warning, where it cannot be.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from unswayed.base.errors import (
    MissingExtraError,
    RegistrationError,
    UnknownNameError,
    UnswayedError,
)

T = TypeVar("T")


def did_you_mean(name: str, names: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the sentence that ends an "unknown name" error: a close match, else all names.

    >>> did_you_mean("pried", ["pride", "vote"])
    "Did you mean 'pride'?"
    """
    listed = sorted(names)
    close = difflib.get_close_matches(name, listed, n=1, cutoff=cutoff)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known: {', '.join(listed)}."


class RegistrationWarning(UserWarning):
    """Something that another package registers cannot be used, and is left out."""


class Registry(Generic[T]):
    """A lazy table of one kind of extension; iterating gives the names that can be loaded.

    `like` is what an entry is an instance or a subclass of, as `"module:Class"`; "" for a callable. With
    `files`, `FILE.py:NAME` names an object of a file.
    """

    def __init__(
        self, kind: str, table: Mapping[str, str], *, like: str | None = None, files: bool = False
    ) -> None:
        self.kind = kind
        self._table = dict(table)
        self._like = like
        self._files = files
        self._loaded: dict[str, T] = {}

    @functools.cached_property
    def _all(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        self._loaded.clear()
        others = {point.name: point.value for point in entry_points(group=f"unswayed.{self.kind}s")}
        for name in others.keys() & self._table.keys():
            _warn(f"{self.kind} {name!r} of {others[name]} is left out: the name is built in.")
        return {**others, **self._table}

    def __contains__(self, name: object) -> bool:
        return name in self._all or (self._files and isinstance(name, str) and in_file(name))

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._all) if name in self._table or self._is_usable(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, name: str) -> T:
        """Import and return the registered object."""
        if name in self._loaded:
            return self._loaded[name]
        if name not in self:
            raise UnknownNameError(f"unknown {self.kind} {name!r}. {did_you_mean(name, self._all)}")
        where = self._all.get(name, name)
        entry = _imported(where) if name in self._table else self._checked(name, where)
        return self._loaded.setdefault(name, entry)

    def _is_usable(self, name: str) -> bool:
        try:
            self.load(name)
        except UnswayedError as error:
            _warn(str(error))
            return False
        return True

    def _checked(self, name: str, where: str) -> T:
        """Check and return an object that another package registers."""
        start = f"{self.kind} {name!r}, registered as {where},"
        end = "Fix or uninstall the package that registers it."
        if in_file(where):
            start, end = f"{self.kind} {where}", "Fix the file."
        try:
            entry: T = _imported(where)
        except UnswayedError:
            raise
        except (Exception, SystemExit) as error:  # whatever the import of a foreign module raises
            reason = f"{type(error).__name__}: {error}"
            raise RegistrationError(f"{start} cannot be loaded ({reason}). {end}") from error
        if self._like == "":
            fits, wanted = callable(entry), "a function"
        elif self._like is not None:
            kind = _imported(self._like)
            fits = isinstance(entry, kind) or (isinstance(entry, type) and issubclass(entry, kind))
            wanted = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
        else:
            fits, wanted = True, ""
        if not fits:
            raise RegistrationError(f"{start} is {entry!r}, not {wanted}. {end}")
        own = getattr(entry, "name", name)
        if isinstance(own, str) and own != name and not in_file(where):
            raise RegistrationError(f"{start} calls itself {own!r}. Register it under that name.")
        return entry

    def name_of(self, entry: T) -> str:
        """Return the name under which an object is registered."""
        name = _name_in(self._table, entry) or _name_in(self._all, entry)
        if name is None:
            raise UnknownNameError(f"no {self.kind} is {entry!r}.")
        return name


def in_file(where: str) -> bool:
    """Return True if a name is `FILE.py:NAME`."""
    return where.rpartition(":")[0].endswith(".py")


def _imported(where: str) -> Any:  # Any: the table says what it holds
    module_name, _, attribute = where.rpartition(":")
    module = _file_module(module_name) if in_file(where) else importlib.import_module(module_name)
    return getattr(module, attribute)


@functools.cache
def _file_module(file: str) -> Any:
    """Run a Python file once, as a module that nothing else imports."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _warn(message: str) -> None:
    warnings.warn(message, RegistrationWarning, stacklevel=3)


def _name_in(table: Mapping[str, str], entry: object) -> str | None:
    """Whoever holds an object has imported its module, so nothing is imported here."""
    for name, where in table.items():
        module_name, _, attribute = where.partition(":")
        if getattr(sys.modules.get(module_name), attribute, None) is entry:
            return name
    return None


def install_command(extra: str) -> str:
    """Command that installs an extra: from the folder that the package was installed from, else by name."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(distribution("unswayed").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # found through PYTHONPATH
        origin = {}
    if "dir_info" not in origin:
        return f'pip install "unswayed[{extra}]"'
    editable = "-e " if origin["dir_info"].get("editable") else ""
    return f'pip install {editable}"{url2pathname(urlsplit(origin["url"]).path)}[{extra}]"'


def require(module: str, *, extra: str, feature: str) -> None:
    """Check that an optional dependency is installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtraError(
            f"{feature} needs {module}, which is not installed. "
            f"Install it with: {install_command(extra)}"
        )
