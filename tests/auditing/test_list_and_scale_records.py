"""What `metrics.json` says of lists and of scales beyond the metrics."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import unswayed as us
from unswayed.auditing.records import LevelChoices, Metrics
from unswayed.auditing.rows import as_json, converted
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import Task


@pytest.fixture(scope="module")
def lists() -> Metrics:
    items = simulated_items(60, 3, seed=2, task=Task.LISTWISE)
    judge = "simulated/judge?slot=2&noise=0.4"
    return us.audit(judge, items, methods=["direct", "pcf"], resamples=100).record.metrics


@pytest.fixture(scope="module")
def scale() -> Metrics:
    items = simulated_items(40, 5, seed=2, task=Task.RUBRIC)
    judge = "simulated/judge?slot=3&label=0&noise=0.4"
    return us.audit(judge, items, methods=["direct"], resamples=100).record.metrics


def test_a_list_counts_what_a_method_improves_with_an_exact_test(lists: Metrics) -> None:
    (pair,) = lists.improvements  # type: ignore[misc]
    counts = lists.improvements["pcf-direct"]  # type: ignore[index]
    assert pair == "pcf-direct"
    assert counts.n == 60
    assert counts.improved > counts.regressed
    assert 0 < counts.p < 1
    assert counts.improved_shared > counts.regressed_shared > 0
    assert lists.level_choices is msgspec.UNSET


def test_a_scale_counts_its_levels_by_position(scale: Metrics) -> None:
    counted = scale.level_choices[5]  # type: ignore[index]
    chosen, shown = np.array(counted.chosen), np.array(counted.shown)
    assert counted.values == (1, 2, 3, 4, 5)
    assert (shown == 40 * 2).all()  # ten orders show every level twice at every position
    assert chosen.sum() == 400
    rates = [rate.value for rate in scale.protocols["coupled"].position_rate]
    assert (chosen.sum(axis=0) / 400).tolist() == pytest.approx(rates)
    assert scale.improvements is msgspec.UNSET


def test_levels_of_several_scales_have_no_common_values() -> None:
    items = simulated_items(20, 5, seed=2, task=Task.RUBRIC).items
    other = [
        msgspec.structs.replace(item, values=(0, 1, 2, 3, 4)) if number % 2 else item
        for number, item in enumerate(items)
    ]
    run = us.audit("simulated/judge?slot=1", other, methods=["direct"], resamples=100)
    assert run.record.metrics.level_choices[5].values is None


def test_both_survive_the_file(lists: Metrics, scale: Metrics) -> None:
    for metrics in (lists, scale):
        assert converted(as_json(metrics), Metrics) == metrics
    assert isinstance(converted(as_json(scale), Metrics).level_choices[5], LevelChoices)  # type: ignore[index]


def test_pairs_have_neither_key() -> None:
    run = us.audit(
        "simulated/judge", simulated_items(20), methods=["direct", "vote"], resamples=100
    )
    assert not {"improvements", "level_choices"} & set(as_json(run.record.metrics))
