"""An audit of items with criteria: calls counted once, planted order effects found and removed."""

import asyncio
import itertools
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

import unswayed as us
from unswayed.api import audit
from unswayed.auditing.evaluation import score_method
from unswayed.backends.utilities import level_utilities
from unswayed.base.errors import UsageError
from unswayed.cli import main
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Task, by_criterion, encode_item
from unswayed.training.filtering import filter_asks, keep_inconsistent

NAMES = ("coherence", "fluency", "relevance")
VALUES = (1.0, 2.0, 3.0, 4.0, 5.0)
N_ITEMS = 40


def stories(n_items: int = N_ITEMS, names: tuple[str, ...] = NAMES) -> ItemSet:
    """Stories scored by three people on each criterion, as the public sets have them."""
    draw = np.random.default_rng(5)
    items = []
    for number in range(n_items):
        quality = {name: float(draw.uniform(1.5, 4.5)) for name in names}
        people = {name: value + draw.normal(0, 0.5, 3) for name, value in quality.items()}
        utility = {
            name: [4 * own for own in level_utilities(VALUES, value)]
            for name, value in quality.items()
        }
        items.append(
            Item(
                id=f"story-{number}", task=Task.RUBRIC, prompt=f"Write story {number}.",
                response=f"Story {number}.", values=VALUES, criteria=names,
                candidates=("very poor", "poor", "fair", "good", "very good"),
                gold={name: float(own.round().clip(1, 5).mean()) for name, own in people.items()},
                meta={"utility": utility, "quality": quality},
            )
        )  # fmt: skip
    return ItemSet.of(items, name="stories")


def judge(criteria: float) -> str:
    return f"simulated/judge?slot=0&label=0&noise=0.3&criteria={criteria}"


@pytest.fixture(scope="module")
def swayed() -> us.AuditResult:
    methods = ["direct", "balanced-rubric", "balanced-rubric:criteria=rotate"]
    return audit(judge(8), stories(), methods=methods, protocol="all", resamples=100)


def test_all_criteria_of_an_item_cost_one_call(swayed: us.AuditResult) -> None:
    calls, data = swayed.metrics["calls"], swayed.metrics["data"]
    decisions = swayed.decisions
    requests = {(d.item_id.partition("#")[0], d.ask) for d in decisions}
    assert len(decisions) == 3 * len(requests)
    assert (calls["planned"], calls["made"]) == (len(requests), len(requests))
    assert (data["n_items"], data["criteria"]) == (3 * N_ITEMS, dict.fromkeys(NAMES, N_ITEMS))
    assert {len({d.text for d in decisions if d.ask == ask and d.item_id.startswith("story-0#")})
            for ask in {d.ask for d in decisions}} == {1}  # fmt: skip


def test_what_is_priced_is_what_is_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "stories.jsonl"
    lines = [encode_item(item).decode() for item in stories(4)]
    file.write_text("\n".join(lines) + "\n")
    assert main(["audit", str(file), "--model", judge(0), "--methods", "vote", "--dry-run"]) == 0
    assert "40 calls for 120 questions" in capsys.readouterr().out


def test_the_place_of_a_criterion_moves_its_score_as_planted(swayed: us.AuditResult) -> None:
    row = swayed.metrics["protocols"]["criteria"]
    first, middle, last = row["criterion_place"]
    assert first["low"] > 0.1
    assert last["high"] < -0.1
    assert middle["low"] < 0 < middle["high"]
    assert sum(own["value"] for own in (first, middle, last)) == pytest.approx(0, abs=1e-9)
    assert first["n"] == 3 * N_ITEMS
    assert row["consistency"]["value"] < 0.9
    assert "criterion_place" not in swayed.metrics["protocols"]["coupled"]


def test_rotation_removes_what_the_order_of_criteria_adds(swayed: us.AuditResult) -> None:
    plan = swayed.record.plan
    errors = {}
    for name, method in plan.methods.items():
        scored = score_method(method, plan.strata, swayed.record.source, estimation_items=None)
        (outcomes,) = scored.outcomes
        quality = np.array([item.meta["quality"][item.criterion] for item in plan.items])
        apart = outcomes.score[:, 0] - quality
        groups = np.array(outcomes.groups)
        errors[name] = [float(apart[groups == criterion].mean()) for criterion in NAMES]
    given, rotated = errors["balanced-rubric"], errors["balanced-rubric:criteria=rotate"]
    favoured = given[0] - given[2]  # the first criterion of the list over the last
    assert favoured > 0.25
    # ten orders show a criterion 4, 3 and 3 times at the places: a tenth of it is left
    assert rotated[0] - rotated[2] == pytest.approx(favoured / 10, abs=0.04)
    close = {name: row["pearson"]["value"] for name, row in swayed.metrics["methods"].items()}
    assert close["balanced-rubric:criteria=rotate"] > close["balanced-rubric"]


def test_a_judge_without_such_an_effect_is_left_alone() -> None:
    methods = ["balanced-rubric", "balanced-rubric:criteria=rotate"]
    result = audit(judge(0), stories(), methods=methods, protocol="criteria", resamples=200)
    for own in result.metrics["protocols"]["criteria"]["criterion_place"]:
        assert abs(own["value"]) < 0.05
        assert own["low"] < 0 < own["high"]
    given, rotated = (result.metrics["methods"][name]["pearson"]["value"] for name in methods)
    assert abs(given - rotated) < 0.02


def test_criteria_have_own_figures_and_a_macro_average(swayed: us.AuditResult) -> None:
    groups, macro = swayed.metrics["groups"], swayed.metrics["macro"]
    assert set(groups) == set(NAMES)
    own = [groups[name]["direct"]["spearman"] for name in NAMES]
    assert {estimate["n"] for estimate in own} == {N_ITEMS}
    mean = np.mean([estimate["value"] for estimate in own])
    assert macro["direct"]["spearman"]["value"] == pytest.approx(mean)
    assert macro["direct"]["spearman"]["low"] < mean < macro["direct"]["spearman"]["high"]


def test_an_option_chooses_groups_or_criteria() -> None:
    grouped = [
        msgspec.structs.replace(item, group="even" if place % 2 == 0 else "odd")
        for place, item in enumerate(stories(8))
    ]
    items = ItemSet.of(grouped, name="grouped")
    own = audit(judge(0), items, methods=["direct"], resamples=100)
    assert set(own.metrics["groups"]) == {"even", "odd"}
    by_name = audit(judge(0), items, methods=["direct"], group_by="criterion", resamples=100)
    assert set(by_name.metrics["groups"]) == set(NAMES)
    with pytest.raises(UsageError, match="the items have no criteria"):
        audit("simulated/judge", "tiny-judge", methods=["direct"], group_by="criterion", limit=20)
    with pytest.raises(UsageError, match="no criteria that could be moved"):
        audit("simulated/judge", "tiny-judge", methods=["direct"], protocol="criteria", limit=20)


def test_decisions_go_out_and_come_back(tmp_path: Path) -> None:
    file, run, decisions = (tmp_path / name for name in ("items.jsonl", "run", "d.jsonl"))
    file.write_text("".join(encode_item(item).decode() + "\n" for item in stories(12)))
    asked = ["--methods", "vote:criteria=rotate", "--protocol", "criteria"]
    arguments = ["audit", str(file), "--model", judge(6), *asked, "--out", str(run)]
    assert main(arguments) in (0, 3)
    assert main(["export", str(run), "--out", str(decisions)]) == 0
    rows = [json.loads(line) for line in decisions.read_text().splitlines()]
    assert {row["item_id"] for row in rows} == {f"story-{number}" for number in range(12)}
    assert {row["criterion"] for row in rows} == set(NAMES)
    assert {tuple(row["criteria_order"]) for row in rows} == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    again = tmp_path / "again"
    back = ["audit", str(file), "--decisions", str(decisions), "--methods", "vote:criteria=rotate"]
    assert main([*back, "--out", str(again)]) == 0
    first, second = (json.loads((path / "metrics.json").read_text()) for path in (run, again))
    assert set(second["protocols"]) == {"coupled", "criteria"}
    for name, metric in itertools.product(
        ("direct", "vote:criteria=rotate"), ("consistency", "spearman", "pearson")
    ):
        one, two = (own["methods"][name][metric] for own in (first, second))
        ends = ("value", "low", "high")
        assert [one[end] for end in ends] == pytest.approx([two[end] for end in ends])
    places = [own["protocols"]["criteria"]["criterion_place"] for own in (first, second)]
    assert places[0] == places[1]
    replayed = audit(f"replay/{decisions}", str(file), methods=["direct"], resamples=100)
    assert replayed.metrics["calls"]["unparsed"] == 0


def test_criteria_and_levels_moving_together_are_inseparable(tmp_path: Path) -> None:
    rows = [
        {"item_id": f"q{number}", "order": order, "labels": ["A", "B"], "choice": number % 2,
         "criterion": name, "criteria_order": order}
        for number in range(8) for order in ([0, 1], [1, 0]) for name in ("x", "y")
    ]  # fmt: skip
    file = tmp_path / "d.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = audit(decisions=str(file), methods=["vote"])
    assert any("their effects are not separate" in said for said in result.run["warnings"])
    assert result.metrics["data"]["criteria"] == {"x": 8, "y": 8}
    assert result.metrics["methods"]["direct"]["consistency"]["value"] == 1.0


def test_a_judge_gives_a_verdict_for_each_criterion() -> None:
    items = list(stories(3))
    with us.Judge(judge(0), method="balanced-rubric:criteria=rotate") as judging:
        verdicts = list(judging.verdicts(items))
        assert judging.counts.made == 3 * 10
        assert [verdict.item_id for verdict in verdicts] == [own.id for own in by_criterion(items)]
        assert all(1 <= verdict.score <= 5 for verdict in verdicts)
        assert judging.price(items).n_to_make == 0
        with pytest.raises(UsageError, match="has 3 criteria, each with a verdict of its own"):
            asyncio.run(judging.ajudge(items[0]))


def test_filter_keeps_an_item_with_any_inconsistent_criterion() -> None:
    items = list(stories(2, ("x", "y")))
    decisions = [
        Decision(
            item_id=own.id,
            order=ask.presentation.order,
            labels=ask.presentation.symbols("ABCDE"),
            choice=place if own.id == "story-1#y" else 0,
            criterion=own.criterion,
        )
        for own in by_criterion(items)
        for place, ask in enumerate(filter_asks(5))
    ]
    filtered = keep_inconsistent(items, decisions)
    assert filtered.items == (items[1],)
    assert (filtered.report.given, filtered.report.kept, filtered.report.consistent) == (2, 1, 1)
