"""`examples/outside-package` as if it were installed: its own entry points are all that names it."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unswayed.backends import BACKENDS
from unswayed.data.benchmarks import BENCHMARKS
from unswayed.data.importers import IMPORTERS
from unswayed.methods import METHODS
from unswayed.methods.apoc import SKIPS
from unswayed.metrics import METRICS
from unswayed.model.items import TASKS, Task
from unswayed.prompts import PROMPTS
from unswayed.training.reward_settings import REWARDS
from unswayed.training.table import ENGINES, OBJECTIVES

FOLDER: Final = Path(__file__).parents[1] / "examples" / "outside-package"
TABLES: Final = (
    BACKENDS, BENCHMARKS, ENGINES, IMPORTERS, METHODS, METRICS, OBJECTIVES, PROMPTS, REWARDS, SKIPS,
    TASKS,
)  # fmt: skip
PROJECT: Final = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
EXAMPLE: Final[dict[str, set[str]]] = defaultdict(set)
"""The names that the package registers, by kind."""
for group, entries in PROJECT["entry-points"].items():
    EXAMPLE[group.removeprefix("unswayed.").removesuffix("s")] |= entries.keys()


def describe(folder: Path) -> None:
    """Write what an installer writes about the package into a folder of installed packages."""
    facts = folder / "unswayed_example-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: unswayed-example\nVersion: 0.1\n")
    lines = [
        line
        for group, entries in PROJECT["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {where}" for name, where in entries.items()))
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that has the package, described in the folder."""
    path = [str(folder), str(FOLDER), *filter(None, sys.path)]
    return {
        **os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1", "COLUMNS": "200",
    }  # fmt: skip


@contextmanager
def on_path(*folders: Path) -> Iterator[None]:
    """Look for packages in these folders as well, for a while."""
    sys.path[:0] = added = [str(folder) for folder in folders]
    _look_again()
    try:
        yield
    finally:
        for entry in added:
            sys.path.remove(entry)
        _look_again()


@contextmanager
def installed() -> Iterator[None]:
    """Add the package to this process for a while."""
    with TemporaryDirectory() as folder:
        describe(Path(folder))
        with on_path(Path(folder), FOLDER):
            yield
    for name in EXAMPLE["task"]:
        Task._value2member_map_.pop(name, None)


def _look_again() -> None:
    importlib.invalidate_caches()
    for table in TABLES:
        vars(table).pop("_all", None)  # entry points are read once
