"""What `--methods all` asks, what it leaves out, and audits that nothing named can run in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import unswayed as us
from unswayed.auditing.design import stratum_asks
from unswayed.auditing.planning import (
    AuditPlan,
    equal_candidates,
    plan_audit,
    referring_options,
    shared_prompts,
)
from unswayed.auditing.settings import AuditSettings
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UsageError
from unswayed.cli import main
from unswayed.methods import METHODS
from unswayed.model.items import Item, ItemSet, Task, expanded
from unswayed.model.tasks import task_of


def planned(items: Sequence[Item], methods: str = "all", protocol: str = "coupled") -> AuditPlan:
    data = expanded(ItemSet.of(items, name="items"))
    settings = AuditSettings.of({"methods": methods, "protocol": protocol})
    return plan_audit(data, settings, gives=task_of(data.task).gives)


def per_item(plan: AuditPlan) -> float:
    return len({(question.item.id, question.ask) for question in plan.calls()}) / len(plan.items)


def lists(n: int) -> list[Item]:
    texts = [tuple(f"answer {c} to {i}" for c in range(n)) for i in range(30)]
    return [
        Item(id=str(i), task=Task.LISTWISE, prompt=f"question {i}", candidates=texts[i])
        for i in range(30)
    ]


def test_all_names_every_method_it_leaves_out() -> None:
    plan = planned(simulated_items(30, 4))
    reasons = plan.skipped
    assert {name.partition(":")[0] for name in (*plan.methods, *reasons)} == set(METHODS)
    assert reasons["cell-median"] == "it needs 2 candidates, got 4"
    assert reasons["batch"] == "left out of --methods all unless named"
    assert "repeat" not in reasons


def test_a_method_named_beside_all_is_not_left_out() -> None:
    assert "batch" not in planned(simulated_items(30), "all,batch").skipped


def test_without_all_nothing_is_missing() -> None:
    assert planned(simulated_items(30), "direct,vote").skipped == {}


@pytest.mark.parametrize("n", [5, 8, 26])
def test_all_asks_three_calls_per_candidate_at_most(n: int) -> None:
    plan = planned(simulated_items(40, n))
    assert per_item(plan) <= 3 * n
    assert {"direct", "canonical", "pride", "average", "vote", "debias-prompt"} <= set(plan.methods)
    assert plan.skipped["average:layouts=all"] == (
        f"not part of --methods all for {n} candidates, because it adds {n * (n - 1)} calls per item; "
        "name it to run it"
    )
    assert f"adds {3 * n} calls per item" in plan.skipped["repeat"]


@pytest.mark.parametrize(("n", "asks"), [(2, 13), (3, 25), (4, 37)])
def test_all_is_whole_up_to_four_candidates(n: int, asks: int) -> None:
    plan = planned(simulated_items(40, n))
    assert len(stratum_asks(plan.strata[0], plan.methods.values())) == asks
    assert {"repeat", "average:layouts=all", "sequential"} <= set(plan.methods)


def test_all_is_bounded_for_lists_and_scales() -> None:
    of_lists, of_scales = planned(lists(6)), planned(us.load_data("tiny-rubric", limit=40).items)
    assert per_item(of_lists) <= 18
    assert per_item(of_scales) <= 15
    assert "pcf:orders=cyclic" in of_lists.methods
    assert "adds 30 calls" in of_lists.skipped["pcf"]
    assert "adds 9 calls" in of_scales.skipped["bias-cost"]


def test_what_is_named_takes_no_room_in_all() -> None:
    items = simulated_items(40, 5)
    plain, more = planned(items), planned(items, "all,repeat,sequential", protocol="all")
    assert set(more.methods) == set(plain.methods) | {"repeat", "sequential"}
    assert "average:layouts=all" in more.skipped


def test_a_dry_run_says_what_each_method_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "items.jsonl"
    rows = [{"id": i.id, "task": "mcq", "prompt": i.prompt, "candidates": i.candidates} for i in
            simulated_items(4, 5)]  # fmt: skip
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ["audit", str(data), "--model", "simulated/judge", "--methods", "all", "--dry-run"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "fitting excluded): direct 5, canonical 1, " in said
    assert (
        "skipped repeat: not part of --methods all for 5 candidates, because it adds 15 calls per item"
        in said
    )
    assert main([*command[:-1], "--probs", "sampled:5", "--dry-run", "--json"]) == 0
    priced = json.loads(capsys.readouterr().out)
    assert (priced["per_item"]["direct"], priced["per_item"]["vote"]) == (30, 30)
    assert "repeat" not in priced["skipped"]  # its samples are asked anyway
    assert "adds 120 calls per item" in priced["skipped"]["average:layouts=all"]


def test_an_audit_that_no_named_method_fits_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, run = tmp_path / "pairs.jsonl", tmp_path / "run"
    row = {"id": "a", "task": "pairwise", "prompt": "?", "candidates": ["x", "y"], "gold": 0}
    data.write_text(json.dumps(row))
    made = tmp_path / "made.jsonl"
    made.write_text(
        json.dumps({"item_id": "a", "order": [0, 1], "labels": ["A", "B"], "choice": 0})
    )
    for source in (["--model", "simulated/judge"], ["--decisions", str(made)]):
        command = ["audit", str(data), *source, "--out", str(run)]
        assert main([*command, "--methods", "direct,pcf"]) == 2
        assert "pcf: it needs a score for every candidate" in capsys.readouterr().err
        assert main([*command, "--methods", "pcf,bias-cost"]) == 2
        assert capsys.readouterr().err == (
            "unswayed: pcf: it needs a score for every candidate, and these answers have none; bias-cost: it "
            "needs levels that have values, and these answers have none. Name another method, or all that can "
            "run: --methods all.\n"
        )
        assert not run.exists()
    with pytest.raises(UsageError, match="pcf: it needs a score for every candidate"):
        us.audit("simulated/judge", simulated_items(4, 2), methods="pcf")
    assert main([*command, "--methods", "direct,pride"]) == 0


@pytest.mark.parametrize(
    ("prompts", "unit", "told"),
    [(25, None, True), (5, None, False), (40, None, False), (25, "u", False)],
)
def test_prompts_of_several_items_are_told(prompts: int, unit: str | None, *, told: bool) -> None:
    items = [
        Item(id=str(k), prompt=f"Q{k % prompts}", candidates=(f"a{k}", "b"), unit=unit)
        for k in range(60)
    ]
    said = shared_prompts(items)
    assert (said is not None) == told
    assert said is None or said.startswith(
        "60 items have 25 distinct prompts and count as independent."
    )


def test_candidates_with_the_same_text_are_told() -> None:
    texts = [("a", "b"), ("a", "a"), ("", ""), ("", "a"), ("b", "b"), ("a", "a ")]
    items = [Item(id=str(k), prompt="Q", candidates=pair) for k, pair in enumerate(texts)]
    said = equal_candidates(items)
    assert said is not None
    assert said.startswith("2 of 6 items have two candidates with the same text, such as 1.")
    assert equal_candidates([items[k] for k in (0, 2, 3, 5)]) is None


def test_options_that_refer_to_others_are_told() -> None:
    last = ["a lung", "All of the above", "Both A and B", "None of these", "all of Gaul"]
    items = [
        Item(id=str(k), prompt="Q", candidates=("a heart", "a liver", text), task=Task.MCQ)
        for k, text in enumerate(last)
    ]
    said = referring_options(items)
    assert said is not None
    assert said.startswith("3 of 5 items have an option that seems to refer to others, such as 1.")
    kept = [msgspec.structs.replace(item, permutable=False) for item in items]
    assert referring_options(kept) is None
    assert (
        referring_options([msgspec.structs.replace(i, task=Task.LISTWISE) for i in items]) is None
    )
