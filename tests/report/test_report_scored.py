"""What the report says of lists and scales, and from which numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import unswayed as us
from judges import est, figures, fixed, list_run, scale_run, with_metrics
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import Task
from unswayed.report.applying import applications_of
from unswayed.report.collect import load_run, load_runs
from unswayed.report.data import RunData
from unswayed.report.explorer import item_view
from unswayed.report.findings import Finding
from unswayed.report.heat import DARKEST, exposure_heat, share_heat
from unswayed.report.page import render_report
from unswayed.report.papers import write_figures
from unswayed.report.scores import (
    costs_of,
    curve_tables,
    group_tables,
    lede_of,
    lists_of,
    points_tables,
    scale_of,
    uneven_orders,
)
from unswayed.report.table import main_table
from unswayed.report.words import plain


def changed(run: RunData, method: str, **values: object) -> RunData:
    rows = figures(run)["methods"]
    rows[method].update(values)
    return with_metrics(run, methods=rows)


def test_a_place_gains_only_if_its_joint_interval_excludes_zero() -> None:
    own = lists_of(Finding(list_run()))
    assert own is not None
    assert [place.index for place in own.gains] == [0]
    assert [place.index for place in own.losses] == [2]
    # 0.5 ± 0.45 excludes 0 by itself, not for three places together
    near = lists_of(Finding(list_run((0.5, 0.0, -0.5), half=0.45)))
    assert near is not None
    assert (near.gains, near.losses) == ((), ())


def test_too_few_lists_say_nothing_of_places() -> None:
    run = list_run()
    coupled = {**figures(run)["protocols"]["coupled"], "consistency": est(0.7, 0.4, 0.9, 12)}
    data = {**figures(run)["data"], "n_items": 12}
    few = with_metrics(run, data=data, protocols={"coupled": coupled})
    assert lists_of(Finding(few)) is None


def test_points_are_drawn_around_zero() -> None:
    (table,) = points_tables([Finding(list_run())])
    (block,) = table.blocks
    assert (table.axis.low, table.axis.high) == (-5, 5)
    assert [row.line for row in block.rows] == [0.5] * 3
    assert block.rows[0].marks == pytest.approx(((5 + 3.7) / 10, 0.91, 0.95))
    assert [row.on for row in block.rows] == [True, False, True]


def test_groups_are_drawn_from_the_lowest_correlation_on() -> None:
    groups = figures(scale_run())["groups"]
    turned = with_metrics(scale_run(), groups=dict(reversed(groups.items())))
    (table,) = group_tables([Finding(turned)])
    assert [row.label for row in table.blocks[0].rows] == ["wit", "facts"]
    alone = with_metrics(scale_run(), groups={"wit": groups["wit"]})
    assert group_tables([Finding(alone)]) == []


def test_point_of_curve_by_construction_has_no_interval() -> None:
    points = [
        {"calls_per_item": calls, "accuracy": est(0.6, 0.5, 0.7), "consistency": consistency}
        for calls, consistency in ((1.0, est(0.7, 0.6, 0.8)), (3.0, fixed(1.0, 100)))
    ]
    run = with_metrics(list_run(), order_curve={"pcf": points})
    right, same = curve_tables(Finding(run))
    assert [len(row.marks) for row in right.blocks[0].rows] == [3, 3]
    first, last = same.blocks[0].rows
    assert last.estimate is not None
    assert (first.label, last.label) == ("1 order", "3 orders")
    assert (last.estimate.low, last.estimate.high) == (None, None)
    assert same.ticks == (0, 0.5, 1)


def test_uneven_orders_are_named_and_even_ones_are_not() -> None:
    ((method, n, shown),) = uneven_orders(Finding(list_run()))
    assert (method, n, shown.first) == ("pcf", 3, (3, 1, 3))
    even = changed(list_run(), "pcf", exposure={"3": [[1, 1, 1]] * 3})
    assert list(uneven_orders(Finding(even))) == []


def test_a_scale_is_compared_by_its_rank_correlation() -> None:
    finding = Finding(scale_run())
    own = scale_of(finding)
    assert own is not None
    assert own.now is not None
    assert own.then is not None
    assert (own.now.value, own.then.value) == (0.825, 0.876)
    assert own.gain is not None
    assert own.gain.value == 0.051
    assert own.shift is not None  # its interval excludes 0
    assert main_table(finding).columns[0].title == "Spearman ρ"
    assert "Use average: 3 calls per item, +0.051 in rank correlation" in plain(lede_of(finding))


def test_a_shift_whose_interval_holds_zero_is_not_told() -> None:
    still = changed(scale_run(), "direct", score_shift=est(-0.01, -0.05, 0.03, 200))
    rows = figures(still)["methods"]["direct"]
    still = with_metrics(still, protocols={"coupled": rows})
    own = scale_of(Finding(still))
    assert own is not None
    assert own.shift is None


def test_a_correlation_needs_an_interval_that_excludes_zero() -> None:
    def said(value: float, low: float, high: float) -> str:
        run = changed(scale_run(), "direct", spearman=est(value, low, high, 200))
        return " ".join(plain(lede_of(Finding(run))).split())

    assert "with human scores is 0.825" in said(0.825, 0.79, 0.85)
    told = "human scores is 0.084 (95% interval −0.125 to 0.270), which shows no correlation."
    assert told in said(0.084, -0.125, 0.27)
    against = said(-0.4, -0.5, -0.3)
    assert "human scores is −0.400 (95% interval −0.500 to −0.300)." in against
    assert "as people do" not in against


def test_costs_are_those_of_the_counts() -> None:
    counted = scale_run().metrics.level_choices
    usual, reverse, tried, best = costs_of(counted[3])  # type: ignore[index]
    assert usual.order == (0, 1, 2)
    # 200 choices of each level and 1/3 added to each of its positions
    shares = (100 + 1 / 3) / 201, (50 + 1 / 3) / 201, (50 + 1 / 3) / 201
    assert usual.cost == pytest.approx(sum(abs(share - 1 / 3) for share in shares))
    assert best.cost <= tried.cost <= min(usual.cost, reverse.cost)


def test_heats_shade_by_share_and_count_rows() -> None:
    heat = share_heat("t", "s", ["1", "2"], [[3, 1], [0, 0]])
    assert [[text for text, _ in row.cells] for row in heat.rows] == [["75", "25"], ["–", "–"]]
    assert heat.shaded[0].cells[0] == ("75", DARKEST)
    assert [row.total for row in heat.rows] == ["4", "0"]
    orders = exposure_heat("t", "s", "answer", [[2, 0], [0, 2]])
    assert [row.label for row in orders.rows] == ["answer 1", "answer 2"]


@pytest.mark.parametrize(
    ("task", "call"),
    [("listwise", "judge.rank("), ("rubric", "judge.score("), ("mcq", "judge.answer(")],
)
@pytest.mark.parametrize("model", ["tiny/rubric", "openai/some"])
def test_the_call_in_python_is_that_of_the_task(task: str, call: str, model: str) -> None:
    run = list_run()
    asked = {**run.run.asked, "model": model}
    named = msgspec.structs.replace(run.run, task=task, asked=asked)
    (use,) = applications_of(Finding(replace(run, run=named)))
    assert call in use.python[-1]


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> dict[Task, Path]:
    folder = tmp_path_factory.mktemp("scored")
    for task, n in ((Task.LISTWISE, 3), (Task.RUBRIC, 5)):
        for number, slot in enumerate((2, 1)):
            us.audit(
                f"simulated/judge?slot={slot}&noise=0.4",
                simulated_items(40, n, seed=1, task=task),
                methods=["direct", "pcf" if task is Task.LISTWISE else "balanced-rubric"],
                resamples=100,
                out=folder / f"{task.value}-{number}",
            )
    return {task: folder / task.value for task in (Task.LISTWISE, Task.RUBRIC)}


@pytest.mark.parametrize("task", [Task.LISTWISE, Task.RUBRIC])
def test_runs_stand_side_by_side(audits: dict[Task, Path], task: Task) -> None:
    runs = load_runs([f"{audits[task]}-{number}" for number in (0, 1)])
    page = render_report(runs)
    assert 'id="scores"' in page
    assert "2 runs side by side" in page


def test_an_item_of_a_list_tells_its_scores_and_its_gains(audits: dict[Task, Path]) -> None:
    flips = load_run(f"{audits[Task.LISTWISE]}-0").flips
    steady = [item.stability for item in flips.flipped]
    assert steady == sorted(steady)  # type: ignore[type-var]
    first = flips.flipped[0]
    own = first.shown[0].scores
    elsewhere = [shown.scores[0] for shown in first.shown if shown.order[0] != 0]  # type: ignore[index]
    assert first.first_gain[0] == pytest.approx(own[0] - sum(elsewhere) / len(elsewhere))  # type: ignore[index,operator,arg-type]
    view = item_view(first, "answer")
    assert "Shown first" in view.summary
    assert view.views[0].quiet.startswith("scores: answer ")


def test_an_item_of_a_scale_tells_its_scores(audits: dict[Task, Path]) -> None:
    item = load_run(f"{audits[Task.RUBRIC]}-0").flips.flipped[0]
    assert item.values == (1, 2, 3, 4, 5)
    view = item_view(item, "level")
    assert f"Its human score is {item.human:g}." in view.summary
    assert "score" in view.views[0].quiet


def test_papers_have_points_and_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    lists = {path.stem for path in write_figures([list_run()], tmp_path)}
    scales = {path.stem for path in write_figures([scale_run()], tmp_path)}
    assert "points" in lists
    assert "levels" not in lists
    assert "levels" in scales
    assert "points" not in scales
