"""Lower layers never import higher ones; every module imports; the package imports light."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

import unswayed

SOURCE = Path(unswayed.__file__).parent
LAYERS = (
    {"base"},
    {"model"},
    {"prompts", "methods", "metrics"},
    {"backends", "store", "data"},
    {"calls", "auditing", "serving", "keywords"},
    {"training", "tiny", "report"},
    {
        "cli",
        "api",
        "result",
        "audits",
        "ranking",
        "sharded",
        "sources",
        "__main__",
        "ext",
        "testing",
        "integrations",
    },
)
PURE = 2
"""The layer whose rooms do not import each other."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PEERS = {"inspect_ai"}
"""Packages that a file of `integrations` needs, and no other file and no installation."""
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
def test_a_module_imports_lower_layers_alone(
    path: Path,
) -> None:
    room = room_of(path)
    for imported in imports_of(path) - {room}:
        allowed = LEVEL[imported] < LEVEL[room] or (
            LEVEL[room] != PURE and LEVEL[imported] == LEVEL[room]
        )
        assert allowed, f"{path.relative_to(SOURCE)} imports unswayed.{imported}"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in SOURCE.rglob("*.py")}


def modules_imported(path: Path) -> Iterator[str]:
    """Our modules that a file names, also inside functions and for the type checker only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """What is left once modules that import nothing, or that nothing imports, are taken away."""
    left = {name: set(imported) for name, imported in imports.items()}
    while True:
        reached = set().union(*left.values())
        kept = {
            name: imported & left.keys()
            for name, imported in left.items()
            if imported & left.keys() and name in reached
        }
        if kept == left:
            return [[name, *sorted(imported)] for name, imported in sorted(kept.items())]
        left = kept


def test_imports_form_no_circle() -> None:
    imports = {
        name: {other for other in modules_imported(path) if other in MODULES and other != name}
        for name, path in MODULES.items()
    }
    assert circles(imports) == []


def test_a_circle_would_be_noticed() -> None:
    line = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert circles(line) == []
    assert circles({**line, "c": {"b"}}) == [["b", "c"], ["c", "b"]]


FACES = LAYERS[-1] | {"__init__", "unswayed"}


def home_of(name: str) -> str:
    """The room of a folder, or of a file beside the folders."""
    return "faces" if name in FACES else name


def floors(imports: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room: one above the highest room that it imports."""
    height: dict[str, int] = {}
    while len(height) < len(imports):
        ready = {
            room: 1 + max((height[other] for other in imported), default=0)
            for room, imported in imports.items()
            if room not in height and imported <= height.keys()
        }
        if not ready:
            raise AssertionError(f"circle of rooms among {sorted(imports.keys() - height.keys())}")
        height |= ready
    return height


def test_rooms_stand_on_eight_floors_without_a_circle() -> None:
    imports: dict[str, set[str]] = defaultdict(set)
    for path in MODULES.values():
        room = home_of(room_of(path))
        imports[room] |= {
            home_of(other.split(".")[1])
            for other in modules_imported(path)
            if other in MODULES and other != "unswayed"
        } - {room}
    assert max(floors(imports).values()) <= 8


def test_a_circle_of_rooms_would_be_noticed() -> None:
    assert floors({"a": {"b"}, "b": set()}) == {"a": 2, "b": 1}
    with pytest.raises(AssertionError, match="circle of rooms"):
        floors({"a": {"b"}, "b": {"a"}, "c": set()})


def test_every_module_imports() -> None:
    absent = {f"unswayed.integrations.{peer}" for peer in PEERS if not find_spec(peer)}
    for module in pkgutil.walk_packages([str(SOURCE)], "unswayed."):
        if not module.name.endswith("__main__") and module.name not in absent:
            importlib.import_module(module.name)


def test_no_other_module_imports_a_peer() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            assert path.stem in PEERS or not PEERS & {name.split(".")[0] for name in names}, path


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, unswayed; print(' '.join(sorted(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not HEAVY & set(loaded)
