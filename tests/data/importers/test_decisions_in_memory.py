"""Decisions in memory are read by the same checks as a file."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

import unswayed as us
from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import read_recording, write_decisions

GIVEN = [
    {"item_id": f"q{i}", "order": order, "labels": ["A", "B"], "choice": (i + order[0]) % 2}
    for i in range(30)
    for order in ([0, 1], [1, 0])
]


def as_decisions() -> list[us.Decision]:
    return [msgspec.convert(one, us.Decision) for one in GIVEN]


def with_numpy() -> list[dict[str, object]]:
    return [
        {**one, "order": np.array(one["order"]), "choice": np.int64(one["choice"])} for one in GIVEN
    ]


def as_frame() -> object:
    return pytest.importorskip("pandas").DataFrame(GIVEN)


@pytest.mark.parametrize("form", [lambda: GIVEN, as_decisions, with_numpy, as_frame])
def test_memory_and_file_give_the_same_figures(form: Callable[[], object], tmp_path: Path) -> None:
    write_decisions(tmp_path / "d.jsonl", as_decisions())
    filed = us.audit(decisions=tmp_path / "d.jsonl", resamples=100)
    given = us.audit(decisions=form(), resamples=100)  # type: ignore[arg-type]
    assert given.metrics["methods"] == filed.metrics["methods"]
    assert given.run["data"]["name"] == "decisions"


def test_iterator_of_decisions_is_read_once_and_written_whole(tmp_path: Path) -> None:
    result = us.audit(decisions=iter(as_decisions()), resamples=100, out=tmp_path / "run")
    assert len((tmp_path / "run" / "decisions.jsonl").read_text().splitlines()) == 60
    assert [one.item_id for one in result.decisions][:2] == ["q0", "q0"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({**GIVEN[1], "choice": 5}, r"decisions:2: .*choice: 5 is out of range"),
        ({**GIVEN[1], "order": [0, 0]}, r"decisions:2: .*order"),
        (GIVEN[0], r"decisions:2: item_id: q0: the same question was answered by decisions:1"),
        ({"item_id": "q1"}, r"decisions:2: .*order"),
        (7, "decisions:2: 7 is neither a decision nor a mapping"),
        ({**GIVEN[1], "choice": float("inf")}, "decisions:2: choice: inf is not a finite number"),
        ({**GIVEN[1], "label_mass": -np.inf}, "decisions:2: label_mass: -inf is not a finite"),
        ({**GIVEN[1], "choice": object()}, "decisions:2: Encoding objects of type object"),
    ],
)
def test_bad_decision_is_named_by_its_place(bad: object, reason: str) -> None:
    with pytest.raises(ItemError, match=reason):
        us.audit(decisions=[GIVEN[0], bad], resamples=100)  # type: ignore[list-item]


@pytest.mark.parametrize("rows", [[], [{"item_id": "q1"}], [GIVEN[0], GIVEN[0]]])
def test_errors_of_decisions_in_memory_name_no_file(rows: list[dict[str, object]]) -> None:
    with pytest.raises(ItemError, match="decisions") as raised:
        us.audit(decisions=rows, resamples=100)
    told = str(raised.value)
    assert not [word for word in ("line", "file", "import auto", "--on-bad-item") if word in told]
    assert 'on_bad_item="skip"' in told or not rows


def test_bad_decisions_may_be_skipped() -> None:
    result = us.audit(
        decisions=[*GIVEN, {**GIVEN[1], "choice": 5}], on_bad_item="skip", resamples=100
    )
    assert "1 bad line" in result.run["warnings"][0]


def test_no_decisions_are_an_error() -> None:
    with pytest.raises(ItemError, match="no decisions"):
        us.audit(decisions=[], resamples=100)


def test_function_beside_decisions_is_rejected() -> None:
    with pytest.raises(UsageError, match="need no judge"):
        us.audit(lambda p, a: 0, decisions=GIVEN)


def test_reading_twice_gives_the_same_decisions() -> None:
    recording = read_recording(GIVEN)
    assert list(recording.decisions(np.array([3]))) == as_decisions()[3:4]


def test_audit_takes_method_objects() -> None:
    judged = us.audit(
        "simulated/judge?slot=0.6", "tiny-judge", limit=40, methods=[us.methods.Vote(), "average"]
    )
    assert list(judged.metrics["methods"]) == ["direct", "vote", "average"]
    fitted = us.methods.PriDe().fit  # a bound method is no method
    with pytest.raises(UsageError, match="methods"):
        us.audit("simulated/judge", "tiny-judge", methods=[fitted])


def test_judge_takes_mappings() -> None:
    pair = {"id": "x", "task": "pairwise", "prompt": "p", "candidates": ["a", "b"]}
    with us.Judge("simulated/judge", method="vote") as judge:
        assert [verdict.item_id for verdict in judge.verdicts([pair])] == ["x"]
        assert judge.price([pair]).n_distinct == 2
        with pytest.raises(ItemError, match=r"items:2: .*`candidates`"):
            list(judge.verdicts([pair, {"id": "y", "prompt": "p"}]))


def test_missing_values_of_frame_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [{**GIVEN[0], "choice": None, "sample": 0}, *GIVEN[1:]]
    frame = pandas.DataFrame(rows)
    assert frame["choice"].dtype == frame["sample"].dtype == float
    given = us.audit(decisions=frame, resamples=100)
    filed = us.audit(decisions=rows, resamples=100)
    assert given.metrics["methods"] == filed.metrics["methods"]
    assert given.metrics["methods"]["direct"]["unparsed_rate"]["value"] > 0
    numbered = frame.assign(item_id=frame["item_id"].factorize()[0] + 7)
    assert us.audit(decisions=numbered, resamples=100).decisions[0].item_id == "7"
