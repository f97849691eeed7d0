"""Fitted methods as files: round trip, and refusing what they do not belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from simulated_judges import fit, pairs

from unswayed.base.errors import MethodError, UnknownNameError, UnswayedError, UsageError
from unswayed.methods.fitted_file import FittedFile, load_method, save_method
from unswayed.methods.over_orders import Vote
from unswayed.methods.pride import PriDe
from unswayed.methods.protocol import Method
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X2, Ask

PAIR = [Ask(X0), Ask(X2)]


def saved(path: Path, method: Method, **more: Any) -> FittedFile:
    belongs = {"model": "tiny/judge@1", "prompt_fingerprint": "sha256:aa", "label_set": ("A", "B")}
    return save_method(path, method, estimation_fingerprint="sha256:bb", **{**belongs, **more})


@pytest.fixture
def fitted() -> PriDe:
    return PriDe().fit_tables({2: pairs(40).table.select(PAIR)})


@pytest.fixture
def path(tmp_path: Path, fitted: PriDe) -> Path:
    target = tmp_path / "pride.json"
    known = {"estimation_ids": ["s1", "s2"], "diagnostics": {"items": 40}, "version": "0.1.0"}
    saved(target, fitted, **known)
    return target


def test_a_file_gives_back_the_same_method(path: Path, fitted: PriDe) -> None:
    record = load_method(
        path, model="tiny/judge@1", prompt_fingerprint="sha256:aa", label_set=("A", "B")
    )
    assert record.load() == fitted
    assert record.diagnostics == {"items": 40}
    assert record.version == "0.1.0"
    assert json.loads(path.read_text())["method"]["name"] == "pride"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "openai/other"}, "fitted for tiny/judge@1, not for openai/other"),
        ({"prompt_fingerprint": "sha256:cc"}, "fitted for another prompt"),
        ({"label_set": ("X", "Y")}, "fitted for the labels A B, not for X Y"),
        ({"label_set": ("B", "A")}, "fitted for the labels A B, not for B A"),
    ],
)
def test_another_model_prompt_or_label_set_is_refused(path: Path, given, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        load_method(path, **given)


def test_a_longer_list_of_the_same_labels_is_the_same_label_set(path: Path) -> None:
    load_method(path, label_set=("A", "B", "C"))


def test_items_the_method_was_fitted_on_are_noticed(path: Path) -> None:
    items = [Item(id=name, prompt="?", candidates=("a", "b")) for name in ("s2", "s3")]
    assert load_method(path).overlap(items) == ("s2",)


def test_an_unfitted_method_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="pride has not been fitted"):
        saved(tmp_path / "x.json", PriDe())


def test_a_method_without_anything_to_learn_can_be_saved(tmp_path: Path) -> None:
    method = Vote(orders="balanced")
    assert saved(tmp_path / "vote.json", method).load() == method


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda data: data["method"].update(name="prode"), UnknownNameError, "prode"),
        (lambda data: data["method"].update(extra=1), MethodError, "unknown fields.*extra"),
        (lambda data: data["method"].update(seed="x"), MethodError, "the file is damaged"),
        (lambda data: data.update(unswayed_method=99), UsageError, "newer unswayed"),
        (lambda data: data.pop("model"), UsageError, "not a calibration file"),
        (lambda data: data.update(surprise=1), UsageError, "not a calibration file"),
    ],
)
def test_damaged_files_are_refused_with_the_reason(path: Path, change, error, message) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(error, match=message):
        load_method(path)


NAN = float("nan")


@pytest.mark.parametrize(
    ("spec", "field", "change", "reason"),
    [
        ("pride", "priors", lambda priors: priors.clear(), "priors is empty"),
        ("pride", "priors", lambda p: p[0].update(values=[1.0]), "values: 1 numbers where 2"),
        ("pride", "priors", lambda p: p[0].update(values=[1.5, -0.5]), "values: 1.5 is not a"),
        ("pride", "priors", lambda p: p[0].update(values=[1.0, 0.0]), "not positive with a sum"),
        ("pride", "priors", lambda p: p[0].update(values=[0.5, 0.4]), "not positive with a sum"),
        ("pride", "priors", lambda p: p[0].update(values=[None, 0.5]), "Expected `float`"),
        ("pride", "priors", lambda p: p[0].update(values=[NAN, 0.5]), "not a calibration file"),
        ("pride", "priors", lambda p: p[0].update(layout=[0, 0]), "layout: .0, 0. is not a seq"),
        ("pride", "priors", lambda p: p[0].update(low=[0.1]), "low: 1 numbers where 2"),
        ("batch", "priors", lambda p: p[0].update(n=3), "layout: .0, 1. is not a sequence"),
        ("cell-median", "priors", lambda p: p[0].update(n=1), "layout"),
        ("additive", "effects", lambda e: e.clear(), "effects is empty"),
        ("additive", "effects", lambda e: e[0].update(labels=[0.1]), "labels: 1 numbers where 2"),
        ("additive", "effects", lambda e: e[0].update(positions_low=[1.0]), "positions_low: 1 num"),
        ("additive", "effects", lambda e: e[0].update(layouts=[[0, 2]]), "layouts: .0, 2."),
        ("calibraeval", "curves", lambda c: c[0].update(g=c[0]["g"][1:]), "g: .* numbers where"),
        ("calibraeval", "curves", lambda c: c[0].update(z=[], g=[]), "no points"),
        ("calibraeval", "curves", lambda c: c[0].update(g=c[0]["g"][::-1]), "g: .* is followed"),
        ("calibraeval", "curves", lambda c: c[0]["g"].__setitem__(-1, 7), "g: 7.0 is not a num"),
        ("calibraeval", "curves", lambda c: c[0].update(label=1), "curves: .*labels"),
        ("calibraeval", "curves", lambda c: c.append(c[0]), "curves: .*labels"),
    ],
)
def test_learned_values_that_no_fit_makes_are_refused(
    tmp_path: Path, spec: str, field: str, change, reason: str
) -> None:
    path = tmp_path / "fitted.json"
    saved(path, fit(spec, pairs(40).table))
    load_method(path)
    data = json.loads(path.read_text())
    change(data["method"][field])
    path.write_text(json.dumps(data))
    with pytest.raises(UnswayedError, match=rf"fitted\.json(?s:.)*{reason}") as raised:
        load_method(path)
    if "not a calibration file" not in reason:
        assert field in str(raised.value)
        assert "unswayed calibrate" in str(raised.value)


def test_files_that_are_not_there_or_not_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_method(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(UsageError, match="not a calibration file"):
        load_method(tmp_path / "text.json")
    with pytest.raises(UsageError, match="cannot write"):
        saved(tmp_path / "no" / "where.json", Vote())
