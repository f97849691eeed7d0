"""What another package registers wrongly is named with the remedy, and breaks nothing else."""

from pathlib import Path

import pytest

from outside_package import OutsidePackage

AUDIT = ("audit", "tiny-judge", "--limit", "8", "--resamples", "100", "--methods", "all")
MEND = "Mend or uninstall the package that registers it."


def package(folder: Path, kind: str, line: str, source: str = "") -> OutsidePackage:
    return OutsidePackage(folder, group=f"unswayed.{kind}s", line=line, source=source)


@pytest.mark.parametrize("kind", ["method", "metric", "importer", "prompt"])
def test_what_cannot_be_imported_is_left_out_with_a_warning(kind: str, tmp_path: Path) -> None:
    outside = package(tmp_path, kind, "broken = no_such_module:X")
    text = outside.run("list", f"{kind}s")
    assert f"{kind} 'broken', registered as no_such_module:X, cannot be loaded" in text
    assert MEND in text
    outside.run(*AUDIT, "--out", tmp_path / "run")


def test_asked_for_by_name_it_is_an_error(tmp_path: Path) -> None:
    outside = package(tmp_path, "method", "broken = mine:NOPE")
    text = outside.run("audit", "tiny-judge", "--methods", "broken", "--dry-run", code=2)
    assert "method 'broken', registered as mine:NOPE, cannot be loaded (AttributeError" in text


@pytest.mark.parametrize(
    ("kind", "source", "wanted", "command"),
    [
        ("method", "class X:\n    name = 'mine'", "a Method", "list methods"),
        ("metric", "X = [1]", "a Metric", "list metrics"),
        ("prompt", "X = {}", "a Style", "list prompts"),
        ("importer", "X = print", "an Importer", "list importers"),
        ("reward", "X = 3", "a Reward", "train pa-grpo --help"),
        ("backend", "X = 3", "a function", "list models"),
    ],
)
def test_what_is_no_such_thing_is_refused(
    kind: str, source: str, wanted: str, command: str, tmp_path: Path
) -> None:
    text = package(tmp_path, kind, "mine = mine:X", source).run(*command.split())
    assert f"{kind} 'mine', registered as mine:X, is " in text
    assert f", not {wanted}. {MEND}" in text


def test_a_name_that_is_built_in_stays_built_in_and_is_said(tmp_path: Path) -> None:
    outside = package(tmp_path, "metric", "accuracy = mine:X", "X = 1")
    assert "metric 'accuracy' of mine:X is left out: the name is built in." in outside.run(
        "list", "metrics"
    )


def test_a_method_is_registered_under_its_own_name(tmp_path: Path) -> None:
    source = """
    from unswayed.methods.over_orders import Vote

    class X(Vote):
        name = "other"
    """
    text = package(tmp_path, "method", "mine = mine:X", source).run("list", "methods")
    assert "calls itself 'other'. Register it under that name." in text
