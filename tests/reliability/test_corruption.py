"""A damaged file ends in one line or in the same result: the minute-form of the harness."""

from pathlib import Path

import pytest

from reliability import corruption


def test_damaged_files_are_refused_or_change_nothing(tmp_path: Path) -> None:
    kinds = corruption.prepare(tmp_path / "good", models=False)
    for kind in kinds:
        ends, stories = corruption.damage(kind, tmp_path / "good", tmp_path, 4, seed=1)
        assert not stories, (kind.name, stories)
        assert ends.total() == 4


def test_a_damaged_model_or_adapter_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    kinds = corruption.prepare(tmp_path / "good")
    adapter = next(kind for kind in kinds if kind.name == "adapter adapter_config.json, audit")
    assert any(kind.name == "model config.json, audit" for kind in kinds)
    ends, stories = corruption.damage(adapter, tmp_path / "good", tmp_path, 2, seed=1)
    assert not stories
    assert ends.total() == 2


def test_the_harness_notices_another_result(tmp_path: Path) -> None:
    kinds = corruption.prepare(tmp_path / "good", models=False)
    unchecked = next(kind for kind in kinds if kind.name == "template, audit")
    silent = corruption.Kind("x", unchecked.file, unchecked.command, lambda *_: object())
    _, stories = corruption.damage(silent, tmp_path / "good", tmp_path, 12)
    assert any("another result" in story for story in stories)


def test_the_harness_notices_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = corruption.prepare(tmp_path / "good", models=False)
    recipe = next(kind for kind in kinds if kind.name == "recipe, train")
    monkeypatch.setattr("unswayed.training.recipe.UsageError", ZeroDivisionError)
    _, stories = corruption.damage(recipe, tmp_path / "good", tmp_path, 4)
    assert any("traceback ZeroDivisionError" in story for story in stories)
