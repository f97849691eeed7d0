"""What another package registers wrongly is named with the remedy, and breaks nothing else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from example_package import on_path
from unswayed.cli import main

MEND = "Fix or uninstall the package that registers it."

Run = Callable[..., str]


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Run]]:
    """Installs a package with one module, `mine`; what is returned runs commands beside it."""
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main([*arguments]) == code
        return "".join(capsys.readouterr())

    with ExitStack() as stack:

        def install(kind: str, line: str, source: str = "") -> Run:
            (tmp_path / "mine.py").write_text(source)
            facts = tmp_path / "mine-1.0.dist-info"
            facts.mkdir()
            (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
            (facts / "entry_points.txt").write_text(f"[unswayed.{kind}s]\n{line}\n")
            stack.enter_context(on_path(tmp_path))
            return run

        yield install


@pytest.mark.parametrize("kind", ["method", "metric", "importer", "prompt"])
def test_what_cannot_be_imported_is_left_out_with_a_warning(kind: str, package) -> None:
    run = package(kind, "broken = no_such_module:X")
    text = run("list", f"{kind}s")
    assert f"{kind} 'broken', registered as no_such_module:X, cannot be loaded" in text
    assert MEND in text


def test_what_cannot_be_imported_ends_no_audit(package, tmp_path: Path) -> None:
    run = package("method", "broken = no_such_module:X")
    audit = (
        "audit",
        "--model",
        "simulated/judge",
        "--limit",
        "8",
        "--resamples",
        "100",
        "--methods",
        "all",
    )
    run(*audit, "--out", str(tmp_path / "run"))


def test_asked_for_by_name_it_is_an_error(package) -> None:
    run = package("method", "broken = mine:NOPE")
    text = run("audit", "tiny-judge", "--methods", "broken", "--dry-run", code=2)
    assert "method 'broken', registered as mine:NOPE, cannot be loaded (AttributeError" in text


@pytest.mark.parametrize(
    ("kind", "source", "wanted", "command"),
    [
        ("method", "class X:\n    name = 'mine'", "a Method", "list methods"),
        ("metric", "X = [1]", "a Metric", "list metrics"),
        ("prompt", "X = {}", "a Style", "list prompts"),
        ("importer", "X = print", "an Importer", "list importers"),
        ("reward", "X = 3", "a Reward", "list rewards"),
        ("backend", "X = 3", "a function", "list models"),
    ],
)
def test_wrong_kind_of_addition_is_rejected(
    kind: str, source: str, wanted: str, command: str, package
) -> None:
    text = package(kind, "mine = mine:X", source)(*command.split())
    assert f"{kind} 'mine', registered as mine:X, is " in text
    assert f", not {wanted}. {MEND}" in text


def test_built_in_name_cannot_be_replaced(package) -> None:
    text = package("metric", "accuracy = mine:X", "X = 1")("list", "metrics")
    assert "metric 'accuracy' of mine:X is left out: the name is built in." in text


def test_a_method_is_registered_under_its_own_name(package) -> None:
    source = "from unswayed.methods.over_orders import Vote\nclass X(Vote):\n    name = 'other'\n"
    text = package("method", "mine = mine:X", source)("list", "methods")
    assert "calls itself 'other'. Register it under that name." in text
