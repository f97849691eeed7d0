"""A damaged file ends in one line or in the same result: the minute-form of the harness."""

from pathlib import Path

import pytest

from reliability import corruption

Good = tuple[Path, dict[str, corruption.Kind]]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """Good files and the kinds of them, by name."""
    folder = tmp_path_factory.mktemp("files") / "good"
    return folder, {kind.name: kind for kind in corruption.prepare(folder, models=False)}


def test_damaged_files_are_refused_or_change_nothing(good: Good, tmp_path: Path) -> None:
    folder, kinds = good
    for kind in kinds.values():
        ends, stories = corruption.damage(kind, folder, tmp_path, 2, seed=1)
        assert not stories, (kind.name, stories)
        assert ends.total() == 2


def test_a_damaged_model_or_adapter_never_changes_figures(tmp_path: Path) -> None:
    kinds = {kind.name: kind for kind in corruption.prepare(tmp_path / "good")}
    assert "model config.json, audit" in kinds
    adapter = kinds["adapter adapter_config.json, audit"]
    ends, stories = corruption.damage(adapter, tmp_path / "good", tmp_path, 2, seed=1)
    assert not stories
    assert ends.total() == 2


def test_the_harness_notices_another_result(good: Good, tmp_path: Path) -> None:
    folder, kinds = good
    unchecked = kinds["template, audit"]
    silent = corruption.Kind("x", unchecked.file, unchecked.command, lambda *_: object())
    _, stories = corruption.damage(silent, folder, tmp_path, 12)
    assert any("another result" in story for story in stories)


def test_the_harness_notices_a_traceback(
    good: Good, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kinds = good
    monkeypatch.setattr("unswayed.training.recipe.UsageError", ZeroDivisionError)
    _, stories = corruption.damage(kinds["recipe, train"], folder, tmp_path, 4)
    assert any("traceback ZeroDivisionError" in story for story in stories)
