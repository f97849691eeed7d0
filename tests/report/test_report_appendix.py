"""The folded tables, the names of runs, and pages of runs that failed or were recorded."""

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judges import est, method, plain_run, sample_run, with_metrics
from unswayed.auditing.records import PromptRecord, RunRecord
from unswayed.cli import main
from unswayed.report.data import RunData
from unswayed.report.findings import Finding, State
from unswayed.report.page import named, render_report
from unswayed.report.plots import call_tables, curve_tables


def grouped() -> RunData:
    def row(accuracy: float, consistency: float) -> dict[str, Any]:
        rates = [est(0.8, 0.7, 0.9), est(0.2, 0.1, 0.3)]
        rest = method((accuracy, 0.5, 0.9), 1.0, (consistency, 0.3, 0.7))
        return {**rest, "position_rate": rates}

    long = "a group whose name is far too long for any figure on a phone"
    groups = {"short": {"direct": row(0.7, 0.6)}, long: {"direct": row(0.6, 0.4)}}
    return with_metrics(sample_run(n_items=200), groups=groups)


def folded(run: RunData, title: str) -> str:
    """The text of a fold, its cells after "|"; empty where there is none."""
    _, _, rest = render_report([run]).partition(f"<summary>{title}</summary>")
    cells = re.sub("<t[hd][ >]", r"|\g<0>", rest.partition("</details>")[0])
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", cells)).split())


def test_every_group_stands_with_its_full_name_and_three_figures() -> None:
    text = folded(grouped(), "Every group")
    assert "| Group | Items | Accuracy | Consistency | First position" in text
    long = "| a group whose name is far too long for any figure on a phone"
    assert f"{long} | 1,000 | 60.0 50.0–90.0 | 40.0 30.0–70.0 | 80.0 70.0–90.0" in text
    assert text.index(long) < text.index("| short |")  # the least consistent first
    assert '<details class="every"><summary>Every group' in render_report([grouped()])


def test_thresholds_are_shown_beside_the_best_in_hindsight() -> None:
    thresholds = {
        "methods": {"pride": {"X0": 0.82, "X1": None}, "direct": {"X0": 0.5, "X1": 0.5}},
        "by_presentation": {"X0": {"threshold": 0.855, "accuracy": 0.87, "n": 10}},
        "single": None,
        "cells": None,
        "text": "Why.",
    }
    text = folded(
        with_metrics(sample_run(n_items=200), thresholds=thresholds), "Thresholds on P(A)"
    )
    assert text == (
        "Why. | Method | X0 | X1 | pride | 0.82 | – | direct | 0.50 | 0.50 "
        "| best in hindsight | 0.85 accuracy 87.0 | –"
    )


def test_the_estimation_curve_is_shown_point_by_point() -> None:
    point = {
        "estimation_items": 40,
        "calls_per_item_amortised": 1.05,
        "accuracy": est(0.8, 0.75, 0.85),
        "consistency": {"value": None, "reason": "no"},
    }
    run = with_metrics(sample_run(n_items=200), estimation_curve={"pride": [point]})
    (chart,) = curve_tables(Finding(run))  # no consistency was measured
    ((row,), title) = chart.blocks[0].rows, chart.blocks[0].title
    assert (chart.caption, title, row.label) == ("Accuracy, ties wrong", "pride", "40 items")
    assert (row.marks, row.flow) == ((0.75, 0.8, 0.85), "1.05 calls per item")
    page = render_report([replace(run, name="a"), replace(run, name="b")])
    assert "<summary>Fewer or more estimation items, b</summary>" in page


def test_the_call_curve_is_shown_point_by_point() -> None:
    right = est(0.8, 0.75, 0.85)
    points = [
        {"calls_per_item": calls, "changed": est(own, own / 2, 2 * own), "accuracy": right}
        for calls, own in ((1.0, 0.08), (1.256, 0.01), (2.0, 0.0))
    ]
    run = with_metrics(sample_run(n_items=200), call_curve={"escalate": points})
    right, changed = call_tables(Finding(run))
    labels = ["1.00 calls", "1.26 calls", "2.00 calls"]
    for chart in (right, changed):
        (block,) = chart.blocks
        assert block.title == "escalate"
        assert [row.label for row in block.rows] == labels
    assert [row.marks for row in right.blocks[0].rows] == [(0.75, 0.8, 0.85)] * 3
    assert changed.axis.high == 0.2  # the widest interval ends at 16%
    assert changed.blocks[0].rows[0].marks == pytest.approx((0.2, 0.4, 0.8))
    page = render_report([run])
    assert "<summary>Fewer or more calls</summary>" in page
    without = [{key: point[key] for key in ("calls_per_item", "changed")} for point in points]
    (alone,) = call_tables(Finding(with_metrics(run, call_curve={"escalate": without})))
    assert alone.caption == "Changed verdicts"
    assert "Fewer or more calls" not in render_report([with_metrics(run, call_curve={})])


def test_runs_are_told_apart_by_prompt_where_only_that_differs() -> None:
    run = sample_run(n_items=200)
    names = ("direct", "reasoning")
    runs = [replace(run, run=RunRecord(prompt=PromptRecord(name=name))) for name in names]
    assert [own.name.rpartition(", ")[2] for own in named(runs)] == list(names)


def test_a_run_without_an_answer_leads_with_the_failure() -> None:
    calls = {"planned": 60, "made": 0, "cached": 0, "failed": 60, "unparsed": 0}
    rows = {"direct": method((0.7, 0.6, 0.8), 1.0), "vote": method((0.7, 0.6, 0.8), 2.0)}
    run = plain_run(methods=rows, calls=calls)
    reason = "60 of 60 calls failed, such as q1: HTTP 400. Run the same command again to retry."
    run = replace(run, run=RunRecord(failures=(reason,)))
    finding = Finding(run)
    assert (finding.state, finding.run.run.failures) == (State.FAILED, (reason,))
    page = render_report([run])
    assert page.index("None of 60 calls") < page.index("such as q1: HTTP 400")
    assert "pays best" not in page
    assert "What each method costs" not in page


def test_recorded_decisions_promise_no_prompt() -> None:
    run = sample_run(n_items=200)
    assert run.flips.flipped
    assert "the two prompts that the judge read" in render_report([run])
    page = render_report([replace(run, run=RunRecord(recorded=True))])
    assert "the two prompts that the judge read" not in page
    assert "Its prompt was not recorded." in page


def test_names_are_given_once_for_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["report", "a", "b", "--out", str(tmp_path / "r.html"), "--name", "one"]
    assert main(arguments) == 2
    assert "--name was given 1 times for 2 runs" in capsys.readouterr().err
