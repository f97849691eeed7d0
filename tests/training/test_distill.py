"""Objectives that sample nothing: which items they take, what they make of gold, what they refuse."""

import math

import msgspec
import numpy as np
import pytest
from small_models import COLOURS, colour_items, save_word_model, small_plan

from unswayed.api import audit
from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items import Item, Task
from unswayed.model.presentation import presentations
from unswayed.sources import load_data
from unswayed.tiny.items import judge_items
from unswayed.training.base_answers import ask_base, balanced
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.run import train
from unswayed.training.table import OBJECTIVES
from unswayed.training.targets import own_average

OBJECTIVE_NAMES = ("rl-exact", "distill", "sft")


def without_gold(items):
    return [msgspec.structs.replace(item, gold=None) for item in items]


# --- items without gold -----------------------------------------------------------------------


def test_questions_without_gold_are_distilled_without_accuracy(trained, tmp_path):
    rows = [f"q{item.id},{item.prompt},{','.join(item.candidates)}" for item in colour_items(12)]
    table = tmp_path / "questions.csv"
    table.write_text("\n".join(["id,prompt,candidate_0,candidate_1", *rows]) + "\n")
    items = load_data(table)
    assert all(item.gold is None for item in items)
    changes = {"data_held_out": "4", "run_check_every": "1", "optimiser_learning_rate": "1e-2"}
    lines, out = [], tmp_path / "out"
    steps = {"optimiser_steps": "12"}
    result = trained(out, "distill", list(items), report=lines.append, **steps, **changes)
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < losses[0] - 0.1
    assert {"held_out/consistency", "held_out/unparsed"} <= set(result.after)
    assert not any("accuracy" in name for line in (*lines, result.after) for name in line)
    assert "accuracy" not in (tmp_path / "out" / "README.md").read_text().partition("## Recipe")[0]
    assert {line["target/temperature"] for line in lines if "loss" in line} == {1.0}


def test_gold_of_any_kind_is_let_be_and_items_said_twice_are_not(planned):
    items = [
        *colour_items(3),
        *without_gold(colour_items(6)[3:]),
        Item(id="tie", task=Task.PAIRWISE, prompt="1", candidates=("red", "blue"), gold="tie"),
        Item(id="all", task=Task.PAIRWISE, prompt="1", candidates=("red", "cyan"), gold=(0, 1)),
        Item(id="twice", task=Task.PAIRWISE, prompt="1", candidates=("red", "red")),
    ]
    counts = planned("distill", items).groups.counts
    assert (counts.kept, counts.identical, counts.without_gold, counts.all_right) == (8, 1, 0, 0)
    for objective in ("rl-exact", "sft"):
        with pytest.raises(ItemError, match=r"q3: .* 6 of 9 .*these items with --set data.without"):
            planned(objective, items)
        with pytest.raises(ItemError, match=r"5 of 5 .* use train distill"):
            planned(objective, items[3:8])
        kept = planned(objective, items, data_without_gold="drop").groups.counts
        assert (kept.kept, kept.without_gold, kept.all_right) == (3, 5, 1)


def test_gold_changes_the_temperature_alone(planned, tmp_path):
    from unswayed.training.targets import ENOUGH_GOLD

    items = colour_items(400)  # gold of a few does not move the temperature

    def targets(data, out, **changes):
        plan = planned("distill", data, data_layouts="coupled", **changes)
        trainer = OBJECTIVES.load("distill").build(plan, tmp_path / out)
        return np.stack([example.target for example in trainer.train_dataset]), trainer.constants

    plain, free = targets(without_gold(items), "free")
    few, with_few = targets(
        [*items[: ENOUGH_GOLD - 1], *without_gold(items[ENOUGH_GOLD - 1 :])], "few"
    )
    assert free == with_few == {"temperature": 1.0}
    assert np.array_equal(plain, few)
    best = [
        msgspec.structs.replace(item, gold=int(row.argmax()))
        for item, row in zip(items, plain[::2], strict=True)
    ]
    chosen, with_all = targets(best, "all")
    (temperature,) = with_all.values()
    assert temperature < 1  # gold that is the average's own choice asks for more trust in it
    sharper = np.exp(np.log(plain) / temperature)
    np.testing.assert_allclose(chosen, sharper / sharper.sum(1, keepdims=True), atol=1e-9)
    fixed, told = targets(best, "fixed", target_temperature="1.0")
    assert told == {"temperature": 1.0}
    assert np.array_equal(fixed, plain)


def test_the_target_is_equal_for_all_layouts(tmp_path):
    """Of a base that answers by place and label alone, every average is undecided."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = save_word_model(tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()  # nothing of the candidates gets to the answer
        model.lm_head.weight[5, 0] = 2.0  # and A is liked better
    model.save_pretrained(folder)
    for layouts, count in (("coupled", 2), ("all", 4)):
        plan = small_plan(folder, "distill", 4, data_layouts=layouts)
        trainer = OBJECTIVES.load("distill").build(plan, tmp_path / layouts)
        assert len(trainer.train_dataset) == 4 * count
        for example in trainer.train_dataset:
            np.testing.assert_allclose(example.target, [0.5, 0.5], atol=1e-6)


def test_base_answers_are_by_item_and_view_whatever_the_sizes(planned, tmp_path):
    items = [
        Item(id=f"m{n}{k}", task=Task.MCQ, prompt=str(k), candidates=COLOURS[k : k + n])
        for k in range(2)
        for n in (4, 2, 3)
    ]
    plan = planned("distill", items, 4, data_orders="random:2")
    views = {n: presentations("full", n) for n in (2, 3, 4)}
    answers = ask_base(plan, tmp_path / "run", views=views)
    for item in items:
        assert answers[item.id].shape == (math.factorial(item.n), item.n)
        assert (np.exp(answers[item.id]).sum(1) < 1 + 1e-9).all()
        places = [views[item.n].index(view) for view in balanced(item.n)]
        own = own_average(answers[item.id][places])
        example = next(
            example
            for example, row in zip(
                OBJECTIVES.load("distill").build(plan, tmp_path / "out").train_dataset,
                plan.groups.rows,
                strict=True,
            )
            if row.item_id == item.id
        )
        np.testing.assert_allclose(example.target, own, atol=1e-6)


def test_the_tiny_judge_learns_its_own_average_without_labels(tmp_path):
    changes = {
        "data.held_out": "100",
        "optimiser.steps": "30",
        "optimiser.learning_rate": "1e-3",
        "run.save_every": "0",
        "run.check_every": "30",
        "run.loggers": "[]",
    }
    recipe = with_changes(load_recipe("tiny-judge"), changes)
    items = judge_items(500, seed=7)
    gold = {item.id: item.gold for item in items}
    plan = small_plan("tiny/judge", "distill", without_gold(items), recipe=recipe)
    assert plan.groups.n_presentations == 4  # candidates through the labels, labels, both
    result = train(plan, tmp_path)
    assert result.before["held_out/consistency"] < 0.5
    assert result.after["held_out/consistency"] > 0.85
    golden = [msgspec.structs.replace(item, gold=gold[item.id]) for item in plan.groups.held_out]
    before, after = (
        audit(name, golden, methods="direct", resamples=100).metrics["methods"]["direct"]
        for name in ("tiny/judge", result.model_name)
    )
    assert after["accuracy"]["value"] > before["accuracy"]["value"] + 0.08


# --- gold that may be wrong -------------------------------------------------------------------


def test_sft_weighs_gold_against_the_average_and_shares_it(planned, tmp_path):
    items = colour_items(40)
    plain = planned("sft", items)
    gold = OBJECTIVES.load("sft").build(plan := plain, tmp_path / "gold").train_dataset
    assert not (tmp_path / "gold" / "base_answers").exists()
    for item, example in zip(plan.groups.items, gold, strict=True):
        assert example.target.tolist() == [float(k == item.gold) for k in range(2)]
    auto = OBJECTIVES.load("sft").build(
        planned("sft", items, target_gold_noise="auto"), tmp_path / "auto"
    )
    share, tau = auto.constants["wrong_gold"], auto.constants["temperature"]
    assert 0 < share < 0.5  # gold drawn at random and a random model: much of it is wrong
    before = ask_base(plain, tmp_path / "run")
    for item, example in zip(plain.groups.items, auto.train_dataset, strict=True):
        weighed = own_average(before[item.id], temperature=tau) * np.where(
            gold_mask(item), 1 - share, share
        )
        np.testing.assert_allclose(example.target, weighed / weighed.sum(), atol=1e-6)
    several = [
        Item(id=f"s{k}", task=Task.MCQ, prompt=str(k), candidates=COLOURS[:3], gold=(0, 2))
        for k in range(2)
    ]
    changes = {"data_orders": "cyclic", "target_gold_noise": "auto"}
    shared = OBJECTIVES.load("sft").build(
        planned("sft", several, 4, **changes), tmp_path / "several"
    )
    assert shared.train_dataset[0].target.tolist() == [0.5, 0.0, 0.5]
    assert shared.train_dataset[0].right.tolist() == [True, False, True]


def gold_mask(item):
    return [k == item.gold for k in range(item.n)]


# --- what is refused before anything is loaded ------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVE_NAMES)
def test_a_reasoning_prompt_is_refused_with_a_remedy(tmp_path, objective):
    model = save_word_model(tmp_path / "model", context=1024)
    (model / "prompt_template.jinja").unlink()
    changes = {"prompt_style": "reasoning", "data_max_prompt_tokens": "900"}
    with pytest.raises(UsageError, match=r"prompt\.style=direct.*train rl --reward inv"):
        small_plan(model, objective, **changes)


@pytest.mark.parametrize(
    ("objective", "n", "reward", "said"),
    [
        ("rl-exact", 2, {"consistency": "mode"}, "no expectation for 2 presentations: .*inv"),
        ("rl-exact", 4, {"consistency": "con"}, "no expectation for 5 presentations: .*columnwise"),
        ("rl-exact", 2, {"advantage": "group"}, "has no advantages"),
        ("rl-exact", 2, {"reward_advantage": "prompt"}, "has no advantages"),
        ("distill", 2, {"consistency": "inv"}, "no reward and no advantage"),
        ("sft", 2, {"consistency": "inv"}, "no reward and no advantage"),
    ],
)
def test_rewards_and_advantages_without_use_are_refused(planned, objective, n, reward, said):
    with pytest.raises(UsageError, match=said):
        planned(objective, n=n, **reward)


@pytest.mark.parametrize("objective", OBJECTIVE_NAMES)
def test_a_plan_says_what_a_run_does(planned, objective):
    plan = planned(objective, 7, optimiser_steps="3")
    presentations_of_item = 4 if objective == "distill" else 2
    assert (plan.steps, plan.steps_per_epoch, plan.responses_per_step) == (3, 3, 0)
    assert plan.record["presentations"] == presentations_of_item
    assert plan.record["recipe"]["target.distill"] == 0.5
    assert plan.record["reward"] is None or plan.record["reward"]["consistency"] == "inv"


def test_a_given_temperature_serves_the_share_of_wrong_gold():
    from unswayed.training.targets import compared, estimated_noise, noise_of_gold

    items = colour_items(300)
    rng = np.random.default_rng(0)
    answers = {}
    for item in items:  # an average that is right on 80% and says so: likeliest at temperature 1
        p = np.where(np.arange(2) == (item.gold if rng.random() < 0.8 else 1 - item.gold), 0.8, 0.2)
        answers[item.id] = np.log(np.stack([p, p]))
    against = compared(items, answers)
    free, given = estimated_noise(items, answers), estimated_noise(items, answers, temperature=2.0)
    assert free == noise_of_gold(*against)
    assert given == noise_of_gold(*against, temperatures=[2.0])
    assert given.wrong_gold != free.wrong_gold
    assert estimated_noise(items[:5], answers, temperature=2.0) == (2.0, 0.0)
