"""The version of this package, and those of others."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

VERSION: Final = "0.1.0"


@cache
def versions_of(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of packages; those that are not installed are left out."""
    versions = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
