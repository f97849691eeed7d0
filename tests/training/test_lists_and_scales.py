"""Groups of more than two candidates that are no options: a list by its best, a scale by its level."""

import json

import numpy as np
import pytest
from small_models import COLOURS

from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items import Item, Task
from unswayed.model.parsing import FLAGS
from unswayed.model.presentation import presentations
from unswayed.training.groups import build_groups
from unswayed.training.recipe_parts import DataTable, PromptTable, Recipe
from unswayed.training.responses import reader
from unswayed.training.scoring import GroupScorer

ABC = ("A", "B", "C")


def scale(number: int, gold: float | None = 4) -> Item:
    return Item(
        id=f"r{number}",
        task=Task.RUBRIC,
        prompt=str(number % 10),
        candidates=("red", "blue", "green"),
        values=(1, 2, 4),
        response=COLOURS[number % 6],
        gold=gold,
    )


def ranked(number: int, gold: int = 2) -> Item:
    return Item(
        id=f"l{number}",
        task=Task.LISTWISE,
        prompt=str(number),
        candidates=("red", "blue", "green"),
        gold=gold,
    )


def reply(scores: dict[str, float], ranking: str) -> str:
    marks = {
        label: {"score": score, "rationale": "so", **dict.fromkeys(FLAGS, False)}
        for label, score in scores.items()
    }
    return json.dumps({"candidates": marks, "ranking": list(ranking)})


def scorer(items: list[Item], *, samples: int = 1) -> GroupScorer:
    recipe = Recipe("r", items[0].task)
    groups = build_groups(items, DataTable(), PromptTable())
    rollout = type(recipe.rollout)(samples=samples)
    return GroupScorer.of(groups, recipe.reward, Recipe("r", items[0].task, rollout=rollout))


# --- scales -----------------------------------------------------------------------------------


def test_a_scale_trains_the_level_of_the_human_score() -> None:
    groups = build_groups([scale(0), scale(1, 1)], DataTable(), PromptTable())
    assert groups.numbers == (3,)
    assert groups.views[3] == presentations("structured", 3)
    assert [groups.rows[0].gold, groups.rows[groups.n_presentations].gold] == [(2,), (0,)]
    assert groups.answer_only


def test_a_score_between_levels_stops_or_is_dropped() -> None:
    items = [scale(0), scale(1, 3.5), scale(2, None)]
    with pytest.raises(ItemError, match=r"r1: gold 3\.5 is not the value of a level; 2 of 3 items"):
        build_groups(items, DataTable(), PromptTable())
    groups = build_groups(items, DataTable(without_gold="drop"), PromptTable())
    assert [item.id for item in groups.items] == ["r0"]
    assert groups.counts.without_gold == 2


def test_rewards_of_a_scale_follow_the_level() -> None:
    scored = scorer([scale(0)])
    groups = scored.groups
    right = [groups.symbols[row.shown.label_of_candidate(2)] for row in groups.rows]
    rewards, choices = scored.rewards(scored.features(range(len(right)), right))
    assert choices.ravel().tolist() == [2] * len(right)
    assert (rewards.accuracy == 1).all()
    assert (rewards.consistency == 1).all()
    always_first = ["A"] * len(right)
    rewards, choices = scored.rewards(scored.features(range(len(right)), always_first))
    assert choices.ravel().tolist() == [row.shown.order[0] for row in groups.rows]
    assert (rewards.accuracy == np.where(choices == 2, 1, -1)).all()


def test_a_short_training_on_scales_runs_to_its_end(trained, tmp_path) -> None:
    items = [scale(number, (1, 2, 4)[number % 3]) for number in range(8)]
    checks = {"data_held_out": "2", "run_check_every": "2"}
    result = trained(tmp_path, "pa-grpo", items, 4, **checks, run_micro_batch="8", task="rubric")
    assert result.steps == 2
    assert 0 <= result.after["held_out/accuracy"] <= 1
    logged = [json.loads(line) for line in (tmp_path / "train.jsonl").open()]
    steps = [line for line in logged if "group/unparsed" in line]
    assert len(steps) == 2
    assert all(line["group/unparsed"] < 1 for line in steps)


# --- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "label", "well_formed"),
    [
        (reply({"A": 20, "B": 90, "C": 40}, "BCA"), 1, True),
        (reply({"A": 70, "B": 70, "C": 40}, "BAC"), 1, True),  # the ranking decides
        (reply({"A": 70, "B": 60, "C": 40}, "AB"), 0, False),  # no full ranking
        (reply({"A": 70, "B": 60}, "ABC"), 0, False),  # no score for C
        ("no object", None, False),
        ("", None, False),
    ],
)
def test_a_list_is_read_by_its_top_choice(text: str, label: int | None, well_formed: bool) -> None:
    read = reader(PromptTable(), answer_only=False, task=Task.LISTWISE)
    assert read(text, ABC) == (label, well_formed, 0)


def test_reasoning_before_the_object_is_counted() -> None:
    read = reader(PromptTable(style="reasoning"), answer_only=False, task=Task.LISTWISE)
    text = f"<think>abcde</think>{reply({'A': 1, 'B': 3, 'C': 2}, 'BCA')}"
    assert read(text, ABC) == (1, True, 5)


def test_rewards_of_a_list_follow_the_best_answer() -> None:
    scored = scorer([ranked(0)])
    groups = scored.groups
    assert groups.rows[0].max_tokens > 3 * 100  # room for the whole object
    texts = []
    for row in groups.rows:
        best = groups.symbols[row.shown.label_of_candidate(2)]
        rest = [symbol for symbol in groups.symbols if symbol != best]
        texts.append(reply({best: 90, rest[0]: 10, rest[1]: 5}, "".join([best, *rest])))
    rewards, choices = scored.rewards(scored.features(range(len(texts)), texts))
    assert choices.ravel().tolist() == [2] * len(texts)
    assert (rewards.accuracy == 1).all()
    assert (rewards.format > 0).all()
    texts[0] = "I cannot say."
    rewards, choices = scored.rewards(scored.features(range(len(texts)), texts))
    assert choices.ravel()[0] == -1
    assert rewards.accuracy.ravel()[0] == rewards.consistency.ravel()[0] == -1
    assert (rewards.accuracy.ravel()[1:] == 1).all()


def test_every_objective_plans_lists_and_pif_refuses_them(planned) -> None:
    changes = {"task": "listwise", "run_micro_batch": "8"}
    items = [ranked(number) for number in range(4)]
    for objective in ("pa-grpo", "grpo", "rl"):
        reward = {"consistency": "con", "advantage": "group"} if objective == "rl" else {}
        assert planned(objective, items, 4, **reward, **changes).groups.numbers == (3,)
    with pytest.raises(UsageError, match=r"pif trains .* Use pa-grpo, grpo or rl"):
        planned("pif", items, 4, **changes)
