"""Rules of the house that a reader can see in the sources, checked in the sources."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from unswayed.backends import Backend
from unswayed.methods import METHODS
from unswayed.methods.protocol import Method
from unswayed.metrics.table import METRICS

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ROOT / "src" / "unswayed"
FILES: Final = sorted(SOURCES.rglob("*.py"))
SCRIPTS: Final = [
    path
    for room in ("benchmarks", "docs", "examples")
    for path in sorted((ROOT / room).rglob("*.py"))
]
TABLES: Final = ("methods/__init__.py", "metrics/table.py")

NOT_NOUNS: Final = frozenset({"found", "made", "known", "one", "how"})
"""Participles and pronouns that have stood where the name of the thing belongs."""

OTHER_THINGS: Final = {
    ("methods/", "canonical"): "label sequences that a prior is estimated for (`Layouts`)",
    ("testing/", "direct"): "the prompt",
    ("prompts/", "direct"): "the prompt, and the `answer:` of a template",
    ("training/recipe_parts.py", "direct"): "the prompt",
    ("cli/judge.py", "canonical"): "the value of --order",
    ("auditing/", "batch"): "the option that calls a model in batches",
    ("audits.py", "batch"): "the same option",
    (
        "data/importers/rated.py",
        "consistency",
    ): "a criterion of SummEval, of a summary with its document",
    ("data/importers/table.py", "pride"): "the project whose files are read",
    ("metrics/outcomes.py", "label_mass"): "the array of recorded masses, named in an error",
    ("data/benchmarks/scored.py", "consistency"): "a criterion that summaries are scored on",
    ("metrics/metric.py", "label_mass"): "the same array, which a metric needs",
    ("calls/calibration.py", "label_mass"): "a key of the file that `calibrate` writes",
    ("training/rewards/score.py", "accuracy"): "a part of a reward, a field of `Rewards`",
    ("training/rewards/score.py", "consistency"): "a part of a reward, a field of `Rewards`",
}
"""Words that are names of methods or metrics and mean something else in this file or room."""


def name_of(path: Path) -> str:
    return path.relative_to(SOURCES).as_posix()


every_file = pytest.mark.parametrize("path", FILES, ids=name_of)
every_script_too = pytest.mark.parametrize(
    "path", [*FILES, *SCRIPTS], ids=lambda path: path.relative_to(ROOT).as_posix()
)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def targets(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The variables and parameters that a node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno


def bodies(path: Path) -> Iterator[ast.AST]:
    """Everything but the fields of classes, whose names are those of files."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    return (node for node in ast.walk(tree(path)) if id(node) not in fields)


@every_file
def test_variables_and_parameters_are_nouns(path: Path) -> None:
    names = (entry for node in bodies(path) for entry in targets(node))
    assert [entry for entry in names if entry[0] in NOT_NOUNS] == []


@every_script_too
def test_a_file_fits_a_head(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400


@every_script_too
def test_function_fits_a_screen(path: Path) -> None:
    """A signature and its options may be longer than what follows it."""
    lines: Counter[str] = Counter()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
            lines[f"{node.name}:{node.lineno}"] = (node.end_lineno or 0) - first.lineno + 1
    assert {name: n for name, n in lines.items() if n > 60} == {}


BUDGETS: Final = {
    ".": 1362,
    "auditing": 5101,
    "backends": 7942,
    "base": 1122,
    "calls": 3161,
    "cli": 3156,
    "data": 5962,
    "ext": 128,
    "integrations": 462,
    "methods": 5378,
    "metrics": 4950,
    "model": 7886,
    "prompts": 1607,
    "report": 4002,
    "serving": 728,
    "store": 1273,
    "testing": 1335,
    "tiny": 1148,
    "training": 9128,
}
"""Lines of Python by room. Who raises one names, in that commit, the feature that needs it."""

ONCE: Final = {
    ".": 2,
    "auditing": 11,
    "backends": 7,
    "base": 1,
    "calls": 1,
    "cli": 6,
    "data": 19,
    "methods": 3,
    "metrics": 18,
    "model": 10,
    "prompts": 3,
    "report": 5,
    "store": 1,
    "tiny": 1,
    "training": 8,
}
"""Private functions of at most four lines that are named once, by room. These limits only fall."""


def room_of(path: Path) -> str:
    first, *rest = path.relative_to(SOURCES).parts
    return first if rest else "."


def test_rooms_keep_within_their_budgets() -> None:
    lines: Counter[str] = Counter()
    for path in FILES:
        lines[room_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    assert {room: n for room, n in lines.items() if n > BUDGETS.get(room, 0)} == {}


def test_file_names_do_not_recur() -> None:
    """A table, a protocol and the way into a package are called so wherever they are."""
    homes = Counter(path.name for path in FILES)
    usual = {"__init__.py", "table.py", "protocol.py"}
    assert {name: n for name, n in homes.items() if n > 3 and name not in usual} == {}


def test_folders_of_tests_have_no_files_of_one_name() -> None:
    """They are no packages, so two such files would be one module to pytest and to each other."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if "stub_of_vllm" not in path.parts]
    homes = Counter(path.name for path in files if not path.with_name("__init__.py").exists())
    assert {name: n for name, n in homes.items() if n > 1 and name != "conftest.py"} == {}


def test_public_class_names_mean_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))
    repeated = {name: files for name, files in homes.items() if len(files) > 1}
    assert repeated == {}


def short_functions_named_once(path: Path) -> Iterator[str]:
    names = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Name | ast.Attribute)
    )
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = sum((part.end_lineno or part.lineno) - part.lineno + 1 for part in body)
            if node.name.startswith("_") and names[node.name] == 1 and lines <= 4:
                yield node.name


def test_short_private_functions_named_once_are_inlined() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        found[room_of(path)] += short_functions_named_once(path)
    assert {room: names for room, names in found.items() if len(names) > ONCE.get(room, 0)} == {}


LABEL_READING: Final = {"labels": 400, "places": 325, "words": 120, "symbols": 150, "quoting": 160}
"""Lines of the files that read labels: who adds a rule takes another one out."""


def test_reading_labels_stays_small() -> None:
    lines = {
        name: len(
            (SOURCES / "model" / "parsing" / f"{name}.py").read_text(encoding="utf-8").splitlines()
        )
        for name in LABEL_READING
    }
    assert {name: n for name, n in lines.items() if n > LABEL_READING[name]} == {}


def test_what_a_package_offers_stands_in_its_init() -> None:
    lists = {
        name_of(path)
        for path in FILES
        for node in tree(path).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    }
    assert {name for name in lists if not name.endswith("__init__.py")} == set()


def own_modules(name: str) -> set[str]:
    """The files in which something is registered under a name."""
    homes = [table._all[name].partition(":")[0] for table in (METHODS, METRICS) if name in table]
    return {f"{home.removeprefix('unswayed.').replace('.', '/')}.py" for home in homes}


def of_prompts(node: ast.AST) -> Iterator[ast.expr]:
    """Strings that stand where the name of a prompt stands."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
        for argument, default in [
            *zip(positional, defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]:
            if default is not None and argument.arg == "prompt":
                yield default
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "prompt":
                yield value
    elif isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("prompt"):
        yield from node.comparators


def not_names(node: ast.AST) -> Iterator[ast.AST]:
    """Strings that are no names: docstrings, `__all__`."""
    if isinstance(node, ast.Expr):
        yield node.value
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        yield from ast.walk(node.value)


def names_written_out(path: Path) -> list[tuple[str, int]]:
    here = name_of(path)
    excused = {
        id(expression)
        for node in ast.walk(tree(path))
        for expression in (*of_prompts(node), *not_names(node))
    }
    strings = (
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return [
        (node.value, node.lineno)
        for node in strings
        if (node.value in METHODS or node.value in METRICS)
        and id(node) not in excused
        and here not in own_modules(node.value)
        and not any(here.startswith(room) and node.value == word for room, word in OTHER_THINGS)
    ]


@pytest.mark.parametrize("path", [p for p in FILES if name_of(p) not in TABLES], ids=name_of)
def test_methods_and_metrics_are_named_in_their_tables_only(path: Path) -> None:
    assert names_written_out(path) == []


@pytest.mark.parametrize(("room", "word"), OTHER_THINGS, ids=" ".join)
def test_every_word_that_means_another_thing_is_still_written(room: str, word: str) -> None:
    rooms = [path for path in FILES if name_of(path).startswith(room)]
    assert any(f'"{word}"' in path.read_text(encoding="utf-8") for path in rooms)


def method_classes() -> set[str]:
    return {Method.__name__, *(METHODS.load(name).__name__ for name in METHODS)}


def calls(path: Path, *functions: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in functions:
            yield node


@pytest.mark.parametrize(
    "path", [p for p in FILES if not name_of(p).startswith("methods/")], ids=name_of
)
def test_nobody_asks_which_method_it_is(path: Path) -> None:
    kinds = method_classes()
    assert [
        (call.lineno, ast.unparse(call))
        for call in calls(path, "isinstance", "issubclass")
        if kinds & {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)}
    ] == []


@pytest.mark.parametrize(
    "path", [p for p in FILES if not name_of(p).startswith("methods/")], ids=name_of
)
def test_nobody_gropes_for_attributes_of_methods_and_backends(path: Path) -> None:
    attributes = {name for kind in (Backend, Method) for name in vars(kind) if name[0] != "_"}
    assert [
        (call.lineno, ast.unparse(call))
        for call in calls(path, "getattr", "hasattr", "setattr")
        if ast.unparse(call.args[0]).rpartition(".")[2].strip("_") in {"backend", "method"}
        or (isinstance(call.args[1], ast.Constant) and call.args[1].value in attributes)
    ] == []


@every_file
def test_nothing_of_a_file_is_unpickled(path: Path) -> None:
    """Pickles run what they hold; one process may send another its own (`copies.py`)."""
    named = {node.module for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)}
    named |= {
        alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    own = {"data/benchmarks/copies.py"}
    assert name_of(path) in own or not named & {"pickle", "dill", "cloudpickle", "shelve"}
    assert "FileSystemBytecodeCache" not in path.read_text(encoding="utf-8")  # it unpickles
