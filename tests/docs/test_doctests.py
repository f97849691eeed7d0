"""The examples in the docstrings of the package hold."""

import doctest
import importlib
from pathlib import Path

import pytest

import unswayed

SOURCES = Path(unswayed.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
    for path in SOURCES.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
