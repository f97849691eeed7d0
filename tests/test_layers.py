"""Lower layers never import higher ones; every module imports; the package imports light."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import unswayed

SOURCE = Path(unswayed.__file__).parent
LAYERS = (
    {
        "arguments",
        "calls",
        "decisions",
        "digests",
        "errors",
        "items",
        "parsing",
        "permutations",
        "presentation",
        "quantiles",
        "files",
        "redaction",
        "registry",
        "reward_settings",
        "sync",
        "tasks",
        "visible",
    },
    {"prompts", "methods", "metrics", "rewards"},
    {"backends", "store", "importers"},
    {"runner", "judge", "auditing", "calibration", "shadow"},
    {"training", "tiny", "report"},
    {"cli", "api", "result", "audits", "__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
HEAVY = {"torch", "scipy", "matplotlib", "pandas", "transformers", "trl", "aiohttp", "numpy"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "unswayed":
                names = [f"unswayed.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("unswayed.")}
    return rooms


FILES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_lower_layers_and_only_outside_layer_one_its_neighbours(
    path: Path,
) -> None:
    room = room_of(path)
    for imported in imports_of(path) - {room}:
        allowed = LEVEL[imported] < LEVEL[room] or (
            LEVEL[room] != 1 and LEVEL[imported] == LEVEL[room]
        )
        assert allowed, f"{path.relative_to(SOURCE)} imports unswayed.{imported}"


def test_every_module_imports() -> None:
    for module in pkgutil.walk_packages([str(SOURCE)], "unswayed."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, unswayed; print(' '.join(sorted(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not HEAVY & set(loaded)
