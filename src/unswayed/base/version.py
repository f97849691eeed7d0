"""The version of this package, and those of others."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

VERSION: Final = "0.1.0"


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages; those that are not installed are left out."""
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
