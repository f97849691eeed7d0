"""A method of another package, one class and one entry point, is seen everywhere without an edit."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from outside_methods import LabelShift, installed

from unswayed.cli import main
from unswayed.items import Task
from unswayed.methods.files import load_method
from unswayed.methods.names import default_methods

ROOT = Path(__file__).parents[2]
JUDGE = "simulated/judge?slot=0.9&noise=1"


@pytest.fixture(scope="module", autouse=True)
def _package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("site")):
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 questions with four options."""
    path = tmp_path_factory.mktemp("data") / "questions.jsonl"
    items = [
        {
            "id": f"q{number}",
            "task": "mcq",
            "prompt": f"which of these, number {number}?",
            "candidates": [f"text {c} of {number}" for c in range(4)],
            "gold": number % 4,
        }
        for number in range(60)
    ]
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit with both methods."""
    folder = tmp_path_factory.mktemp("runs") / "audit"
    names = "first-two,label-shift,vote"
    arguments = ["audit", str(data), "--model", JUDGE, "--methods", names, "--resamples", "100"]
    assert main([*arguments, "--estimation-sizes", "10,20", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def metrics(run: Path) -> Any:
    return json.loads((run / "metrics.json").read_text())


def test_it_is_listed_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods"]) == 0
    shown = capsys.readouterr().out
    assert "first-two" in shown
    assert "strength=1.0" in shown


def test_the_docs_have_a_row_and_a_page_for_it() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    page = generate.method_page("label-shift", "")
    assert "`strength` | `1.0` | Share of the shift that is subtracted." in page
    assert "unswayed calibrate label-shift" in page


def test_it_is_part_of_all() -> None:
    names = {method.name for method in default_methods(Task.MCQ, {4})}
    assert {"first-two", "label-shift"} <= names


def test_it_is_priced_and_what_is_planned_is_asked(
    data: Path, run: Path, metrics: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    arguments = ["audit", str(data), "--model", JUDGE, "--methods", "first-two,label-shift"]
    assert main([*arguments, "--dry-run", "--out", str(run.parent / "priced")]) == 0
    assert "240" in capsys.readouterr().out  # 60 items in 4 rotations; nothing else is asked
    assert metrics["calls"]["made"] == 240
    rows = metrics["methods"]
    assert 2 < rows["first-two"]["calls_per_item"] < 4
    assert rows["label-shift"]["calls_per_item"] == 1
    assert rows["label-shift"]["estimation_calls"] == 4 * 12
    assert [point["estimation_items"] for point in metrics["estimation_curve"]["label-shift"]] == [
        10,
        20,
    ]


def test_stopping_early_is_not_consistent_by_construction_where_the_prefixes_differ(
    metrics: Any,
) -> None:
    # every view reads the same four rotations in the end, but not the same two first
    rows = metrics["methods"]
    assert rows["vote"]["consistency"]["by_construction"]
    assert not rows["first-two"]["consistency"].get("by_construction", False)
    assert rows["first-two"]["consistency"]["value"] < 1
    assert not rows["label-shift"]["consistency"].get("by_construction", False)


def test_it_has_a_place_in_differences_and_in_the_report(run: Path, metrics: Any) -> None:
    assert {"first-two-direct", "label-shift-direct"} <= set(metrics["differences"])
    assert main(["report", str(run), "--out", str(run / "page.html")]) == 0
    page = (run / "page.html").read_text()
    assert "first-two" in page
    assert "label-shift" in page


def test_judging_with_it_stops_early(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    arguments = ["judge", str(data), "--model", JUDGE, "--method", "first-two"]
    assert main([*arguments, "--out", str(out)]) == 0
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert {verdict["n_calls"] for verdict in verdicts} == {2, 4}
    assert {verdict["method"] for verdict in verdicts} == {"first-two"}


def test_what_it_learned_is_filed_loaded_and_judged_with(data: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "shift.json", tmp_path / "verdicts.jsonl"
    prompt = ["--prompt", "direct"]
    fit = ["calibrate", "label-shift:strength=0.5", str(data), "--model", JUDGE, *prompt]
    assert main([*fit, "--out", str(file)]) == 0
    record = json.loads(file.read_text())
    assert record["diagnostics"]["estimates"]["shift of label 0 among 4"]["n"] == 60
    loaded = load_method(file).load()
    assert isinstance(loaded, LabelShift)
    assert loaded.strength == 0.5
    assert [shift.n for shift in loaded.shifts or ()] == [4]
    judge = ["judge", str(data), "--model", JUDGE, *prompt, "--method", str(file)]
    assert main([*judge, "--shadow", "0.5", "--out", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 60
