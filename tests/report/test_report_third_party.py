"""A method and a metric from another package appear in the report, with no edit here."""

import dataclasses

import pytest

from judges import better, est, figures, method, plain_run, with_metrics
from unswayed.metrics import METRICS
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.frontier import panels
from unswayed.report.page import render_report
from unswayed.report.table import main_table, more_table

SHORTNESS = dataclasses.replace(
    METRICS.load("accuracy"), title="Shortness", meaning="share of short verdicts", better=-1,
    compared="no",
)  # fmt: skip
CLARITY = dataclasses.replace(
    METRICS.load("accuracy"), title="Clarity", meaning="share of clear verdicts"
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> RunData:
    monkeypatch.setitem(METRICS._all, "shortness", f"{__name__}:SHORTNESS")
    base = plain_run()
    rows = {
        "direct": {**figures(base)["methods"]["direct"], "shortness": est(0.4, 0.35, 0.45)},
        "oracle:depth=3": {**method((0.9, 0.88, 0.92), 2.5), "shortness": est(0.3, 0.25, 0.35)},
    }
    advice = better("oracle:depth=3", "accuracy_fractional", est(0.19, 0.17, 0.21))
    return with_metrics(base, methods=rows, recommendation=advice)


def test_a_metric_has_a_worded_column_and_its_best_value(run: RunData) -> None:
    table = more_table(Finding(run))
    assert table is not None
    (place,) = [place for place, column in enumerate(table.columns) if column == SHORTNESS]
    cells = [row.cells[place] for row in table.rows]
    assert [(cell.text, cell.best) for cell in cells] == [("40.0", ""), ("30.0", "lowest")]


def test_the_compared_metric_takes_the_place_of_accuracy(
    run: RunData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS._all, "clarity", f"{__name__}:CLARITY")
    rows = figures(run)["methods"]
    for row, value in zip(rows.values(), (0.5, 0.6), strict=True):
        row["clarity"] = est(value, value - 0.05, value + 0.05)
    finding = Finding(with_metrics(run, methods=rows))
    assert [column.title for column in main_table(finding).columns][:2] == ["Accuracy", "Clarity"]
    panel = panels([finding]).panels[1]
    assert (panel.title, panel.sub) == ("Clarity", "share of clear verdicts")
    assert [dot.value for dot in panel.drawings[0].dots] == [0.5, 0.6]


def test_a_method_has_its_row_its_dot_and_the_recommendation(run: RunData) -> None:
    finding = Finding(run)
    assert [row.kind for row in main_table(finding).rows] == ["ref", "rec"]
    accuracy, *_ = panels([finding]).panels
    assert "oracle:depth=3" in [dot.name for dot in accuracy.drawings[0].dots]
    assert "oracle:depth=3: 2.5 calls, 90.0 percent" in render_report([run])


def test_a_run_of_a_missing_method_shows_no_commands(run: RunData) -> None:
    asked = {"model": "tiny/judge", "data": "pairs.jsonl"}
    told = dataclasses.replace(run, run=type(run.run)(asked=asked))
    assert "Apply the method" not in render_report([told])
