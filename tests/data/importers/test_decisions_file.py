"""Our own decisions file: validated reading, whole writing, items without text."""

import gzip
from pathlib import Path

import msgspec
import pytest

from unswayed.base.errors import ItemError, StoreError, UsageError
from unswayed.data.importers import (
    items_from_decisions,
    read_decisions_file,
    read_recording,
    write_decisions,
)
from unswayed.metrics import measure, outcomes_from_decisions
from unswayed.model.decisions import Decision, Estimate, tie_rank
from unswayed.model.items import Task


def decision(name: str = "q1", order: tuple[int, ...] = (0, 1), **fields: object) -> Decision:
    letters = tuple("ABCD"[: len(order)])
    made = {"choice": 0, **fields}
    return Decision(item_id=name, order=order, labels=letters, label_set=letters, **made)  # type: ignore[arg-type]


def encoded(**fields: object) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(decision()), **fields})


def test_decisions_survive_a_round_trip(tmp_path: Path) -> None:
    made = [
        decision(probs=(0.25, 0.75), label_mass=0.9, text="é", cost_usd=0.01),
        decision(order=(1, 0), choice="tie"),
        decision("q2", order=(1, 2, 0), choice=None, ranking=(2, 1, 0)),
    ]
    for name in ("d.jsonl", "d.jsonl.gz"):
        assert write_decisions(tmp_path / name, made) == 3
        assert list(read_decisions_file(tmp_path / name)) == made
    with gzip.open(tmp_path / "d.jsonl.gz") as file:
        assert file.read() == (tmp_path / "d.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{not json", "JSON: not valid JSON"),
        (b'{"item_id": "q"}', "missing required field `order`"),
        (encoded(order="01"), "order: Expected `array`, got `str`"),
        (encoded(order=[0, 0]), "order: .* is not a permutation"),
        (encoded(choice=2), r"choice: 2 is out of range \(0 to 1\)"),
        (encoded(choice="draw"), "choice"),
        (encoded(probs=[0.9, 0.9]), "probs: not probabilities"),
        (encoded(probs=[1.0]), "probs: 1 values for 2 candidates"),
        (encoded(labels=["A", "C"]), "labels"),
    ],
)
def test_a_bad_line_is_reported_with_its_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(encoded(item_id="fine") + b"\n\n" + line + b"\n")
    with pytest.raises(ItemError, match=rf"d\.jsonl:3: .*{message}"):
        read_decisions_file(path)
    kept = read_recording(path, "skip")
    assert kept.item_ids == ("fine",)
    assert [bad.line for bad in kept.bad_lines] == [3]


def test_a_question_answered_twice_is_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(
        path,
        [
            decision(choice=0),
            decision(choice=1, sample=1),  # another sample
            decision(choice=1, model="other"),  # another model
            decision(choice=1, prompt_id="debias"),  # another prompt
            decision(choice=1),  # the same question again
        ],
    )
    with pytest.raises(
        ItemError, match=r":5: item_id: q1: the same question was answered on line 1"
    ):
        read_decisions_file(path)
    assert [one.choice for one in read_decisions_file(path, "skip")] == [0, 1, 1, 1]
    assert len(read_recording(path, "skip").bad_lines) == 1


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("\n")
    with pytest.raises(ItemError, match="no decisions"):
        read_decisions_file(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_decisions_file(tmp_path / "absent.jsonl")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        write_decisions(tmp_path / "absent" / "d.jsonl", [decision()])
    target = tmp_path / "d.jsonl"
    target.mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        write_decisions(target, [decision()])
    assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"]


def test_items_are_made_without_text_and_gold() -> None:
    made = items_from_decisions([decision("a"), decision("a", order=(1, 0)), decision("b")])
    assert [(item.id, item.n, item.task, item.gold) for item in made] == [
        ("a", 2, Task.PAIRWISE, None),
        ("b", 2, Task.PAIRWISE, None),
    ]
    assert sorted(tie_rank(made[0])) == [0, 1]  # ties fall back to the index
    four = items_from_decisions([decision("a", order=(1, 2, 3, 0))])
    assert four[0].task is Task.MCQ
    ranked = items_from_decisions([decision("a", order=(1, 2, 0), ranking=(0, 1, 2))])
    assert ranked[0].task is Task.LISTWISE


def test_decisions_that_rank_or_score_several_are_listwise() -> None:
    def task(n: int, **rated: object) -> Task:
        order = tuple(range(n))
        one = Decision(item_id="q", order=order, labels=tuple("ABC"[:n]), **rated)  # type: ignore[arg-type]
        return items_from_decisions([one])[0].task

    assert task(3, choice=0) is Task.MCQ
    assert task(3, scores=(1.0, None, 2.0)) is Task.LISTWISE
    assert task(2, ranking=(1, 0)) is Task.LISTWISE
    assert task(2, scores=(1.0, 2.0)) is Task.PAIRWISE  # a reward model's


def test_an_item_has_one_number_of_candidates() -> None:
    with pytest.raises(ItemError, match="a: one decision has 2 candidates and another has 3"):
        items_from_decisions([decision("a"), decision("a", order=(0, 1, 2))])


def test_decisions_alone_can_be_measured() -> None:
    decisions = [decision("a"), decision("a", order=(1, 0)), decision("b", choice=1)]
    strata = outcomes_from_decisions(items_from_decisions(decisions), decisions)
    row = measure(strata, resamples=0)
    assert row["consistency"] == Estimate(value=1.0, n=1)
    assert row.incomplete == 1
    assert row["accuracy"].value is None


def test_label_sets_may_be_left_out_where_the_labels_suffice(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        '{"item_id": "q1", "order": [1, 0], "labels": ["A", "B"], "choice": 1}\n'
        '{"item_id": "q2", "order": [0, 1], "labels": ["X", "Y"], "choice": 0}\n'
    )
    with pytest.raises(ItemError, match=r"d\.jsonl:2: .*label_set: give it"):
        read_decisions_file(path)
    (decision,) = read_decisions_file(path, on_bad_item="skip")
    assert decision.label_set == ("A", "B")
