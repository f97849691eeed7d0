"""Tests that are coroutines run in an event loop of their own; one local model serves all."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unswayed.backends.huggingface import HuggingFaceBackend


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama with random weights; who changes it copies it."""
    from random_llama import make_random_llama

    return make_random_llama(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="session")
def backend(folder: Path) -> HuggingFaceBackend:
    from local_asking import opened

    return opened(folder)
