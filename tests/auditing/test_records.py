"""`run.json` and `metrics.json`: what is written is read, whoever added a metric, however old."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unswayed as us
from unswayed.auditing.records import Metrics, RunRecord, check_kind, read_metrics, read_run
from unswayed.auditing.rows import as_json, converted
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import RunDirectoryError
from unswayed.metrics.rows import Row
from unswayed.model.decisions import Estimate

EST = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("records") / "run"
    us.audit(
        "simulated/judge",
        simulated_items(40, 2),
        methods=["pride"],
        estimation_sizes=[5],
        protocol="all",
        resamples=100,
        out=out,
    )
    return out


def written(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def test_what_is_read_is_what_was_written(run: Path) -> None:
    assert as_json(read_metrics(run)) == written(run / "metrics.json")
    assert read_run(run).to_json() == written(run / "run.json")


def test_a_row_keeps_metrics_of_any_name_and_its_strata() -> None:
    record = {
        "calls_per_item": 2.0,
        "somebody.elses": EST,
        "by_level": [EST, {"value": None, "n": 0, "reason": "no items"}],
        "counts": {"items": 10},
        "strata": {"3": {"consistency": EST, "set_size": 3}},
    }
    row = Row.of(record)
    assert row.get("somebody.elses") == Row.of({"a": EST}).get("a")
    assert row.strata[3].items == 10
    back = as_json(row)
    assert back.pop("by_level")[1]["reason"] == "no items"
    assert back == {name: value for name, value in record.items() if name != "by_level"}


def test_an_average_over_groups_says_over_how_many() -> None:
    row = {"groups": 2, "accuracy": {**EST, "groups": 2}}
    assert as_json(Row.of(row)) == row


def test_an_older_or_newer_file_reads_with_what_it_has() -> None:
    metrics = converted(
        {"methods": {"direct": {"accuracy": EST}}, "of_tomorrow": [1, "x"]}, Metrics
    )
    accuracy = metrics.methods["direct"].get("accuracy")
    assert isinstance(accuracy, Estimate)
    assert accuracy.value == 0.5
    assert metrics.calls.unknown_usage == 0
    assert not metrics.thresholds
    assert metrics.methods["direct"].calls is None


def test_a_value_of_another_type_is_refused_with_its_place(run: Path, tmp_path: Path) -> None:
    for name, damage in (("run.json", {"seed": -1}), ("metrics.json", {"flips": {"total": "x"}})):
        (tmp_path / name).write_text(json.dumps({**written(run / name), **damage}))
    with pytest.raises(RunDirectoryError, match=r"damaged.*seed"):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"damaged.*flips"):
        read_metrics(tmp_path)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("metrics.json", "data.n_items", -1),
        ("metrics.json", "data.n_units", -1),
        ("metrics.json", "protocol.n_presentations", -2),
        ("metrics.json", "calls.unparsed", -3),
        ("metrics.json", "recommendation.margin", -0.5),
        ("metrics.json", "recommendation.needed", -40),
        ("metrics.json", "methods.direct.accuracy.n", -7),
        ("run.json", "calls.made", -1),
        ("run.json", "data.n_items", -1),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_place(
    name: str, place: str, value: float, run: Path, tmp_path: Path
) -> None:
    record = written(run / name)
    *parents, last = place.split(".")
    inner = record
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    (tmp_path / name).write_text(json.dumps(record))
    with pytest.raises(RunDirectoryError, match=rf"damaged.*{last}"):
        (read_run if name == "run.json" else read_metrics)(tmp_path)


def test_recorded_decisions_say_nothing_about_calls() -> None:
    assert "fatal" not in RunRecord(recorded=True).to_json()
    assert "recorded" not in RunRecord().to_json()


def test_a_directory_of_another_kind_is_refused(run: Path) -> None:
    with pytest.raises(RunDirectoryError, match="holds an audit of a model's calls"):
        check_kind(run, recorded=True, model="m", data="d")
    with pytest.raises(RunDirectoryError, match="different prompt"):
        check_kind(run, recorded=False, model="m", data="d", prompt="sha256:other")


@pytest.mark.parametrize("state", ["better", "enough", "worse", "open"])
@pytest.mark.parametrize("lost", ["gain", "most_accurate", "used"])
def test_a_recommendation_without_its_parts_is_damaged(state: str, lost: str) -> None:
    used = "cheapest" if state == "open" else "method"
    told = {"state": state, used: "direct", "most_accurate": "vote", "gain": EST}
    assert converted({"recommendation": told}, Metrics).recommendation
    told.pop(used if lost == "used" else lost)
    with pytest.raises(msgspec.ValidationError, match=f"the state {state} goes with"):
        converted({"recommendation": told}, Metrics)


def test_a_recommendation_of_an_earlier_rule_is_none() -> None:
    earlier = {"method": "average", "reason": "it has the highest accuracy", "best": "average"}
    read = converted({"recommendation": earlier}, Metrics).recommendation
    assert read is not None
    assert (read.state, read.method) == ("none", None)
    assert read.reason == "the audit used an earlier rule; run it again"
