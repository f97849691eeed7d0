"""What every test runs under: one torch thread, compiled modules that are kept, no deadlines, a loop if it is async."""

import asyncio
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two are many times slower on a busy machine
# else each command that a test starts, and each worker, compiles the package anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.pop("COLUMNS", None)  # pytest-xdist hands its terminal's width to the workers

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from unswayed.store import CallStore

settings.register_profile("unswayed", deadline=None)  # tests never assert a time
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "unswayed")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def store(tmp_path: Path) -> "Iterator[CallStore]":
    """A pool of recorded calls in `run`."""
    from unswayed.store import CallStore

    with CallStore.open(tmp_path / "run") as opened:
        yield opened


@pytest.fixture
def keyless_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a test: a folder of its own, in an environment without keys."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    return tmp_path
