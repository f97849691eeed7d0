"""The study's ordering on three fixed seeds, and that its loop is the paper's objective."""

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from unswayed.presentation import presentations
from unswayed.tiny.backend import WEIGHTS

STUDY = Path(__file__).parents[2] / "examples" / "study"


@pytest.fixture(scope="module")
def study():
    """The study's modules, imported as its script does."""
    sys.path.insert(0, str(STUDY))
    try:
        import arms
        import inference
        import loop
        import outcome
        import run
        import supervised
        import tables
        import world

        modules = (arms, inference, loop, outcome, run, supervised, tables, world)
        yield {module.__name__: module for module in modules}
    finally:
        sys.path.remove(str(STUDY))


@pytest.fixture(scope="module")
def base():
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    return model.requires_grad_(False)


@pytest.fixture(scope="module")
def trained(study, base):
    """Con and CA after 100 steps on noisy gold, per arm, mean of three fixed seeds."""
    arms, world = study["arms"], study["world"]
    setting = arms.SETTINGS[0]
    held_out = world.evaluation_items(setting.task)
    found = {arm: [] for arm in ("GRPO", "PA-GRPO")}
    for seed in range(3):
        items, kept = world.inconsistent_items(base, setting.task, seed)
        pool = world.make_pool(items, kept, setting, seed)
        for arm, figures in found.items():
            job = arms.Job(setting, arm, seed)

            def note(model, figures=figures):
                figures.append(study["outcome"].measure_model(model, held_out))

            study["loop"].train_arm(base, pool, job, at_steps={100: note})
    means = {
        arm: {name: statistics.fmean(row[name] for row in rows) for name in ("Con", "CA")}
        for arm, rows in found.items()
    }
    means["base"] = study["outcome"].measure_model(base, held_out)
    return means


def test_with_noisy_gold_pa_grpo_is_more_consistent_than_grpo_than_the_base(trained):
    assert trained["PA-GRPO"]["Con"] > trained["GRPO"]["Con"] > trained["base"]["Con"] + 20


def test_with_noisy_gold_pa_grpo_has_the_higher_consistent_accuracy(trained):
    assert trained["PA-GRPO"]["CA"] > trained["GRPO"]["CA"]


def test_the_prompts_are_those_of_the_template_and_the_tokenizer(study):
    from transformers import AutoTokenizer

    from unswayed.backends.local_chats import ChatWriter
    from unswayed.presentation import Ask
    from unswayed.prompts import PromptSettings, render
    from unswayed.training.chats import ChatTokens

    writer = ChatWriter(AutoTokenizer.from_pretrained(WEIGHTS), model="tiny/judge")
    chat = ChatTokens(writer, thinking=False)
    settings = PromptSettings(template=str(WEIGHTS / "prompt_template.jinja"))
    for setting in (study["arms"].SETTINGS[0], study["arms"].SETTINGS[4]):
        items = study["world"].evaluation_items(setting.task)[:3]
        shown = presentations(setting.orders, items[0].n)
        made = study["world"].prompts_of(items, shown)
        for row, item in zip(made, items, strict=True):
            for tokens, one in zip(row, shown, strict=True):
                messages = render(item, Ask(one), settings).messages
                assert tokens.tolist() == chat.ids(messages)


def test_training_items_are_inconsistent_and_not_evaluation_items(study, base):
    world, setting = study["world"], study["arms"].SETTINGS[0]
    items, kept = world.inconsistent_items(base, setting.task, 0, wanted=200)
    choices = world.choices_of(base, items, presentations("swap", 2))
    assert (choices[:, 0] != choices[:, 1]).all()
    assert 0.4 < kept < 0.7
    evaluated = {world.content_of(item) for item in world.evaluation_items(setting.task)}
    assert not evaluated & {world.content_of(item) for item in items}


def test_gold_is_as_noisy_as_the_setting_says(study, base):
    world, settings = study["world"], study["arms"].SETTINGS
    items, kept = world.inconsistent_items(base, settings[0].task, 0, wanted=400)
    wrong = {s.gold: world.make_pool(items, kept, s, 0).wrong_gold for s in settings[:3]}
    assert wrong["clean"] == 0
    assert 0.2 < wrong["noisy"] < 0.4
    assert 0.28 < wrong["flips"] < 0.42


def test_a_step_without_advantages_moves_towards_the_reference_only(study, base):
    # With zero advantages the loss is beta * KL - entropy bonus: at the reference, KL is 0.
    arms, world, loop = (study[name] for name in ("arms", "world", "loop"))
    setting = arms.SETTINGS[0]
    items, kept = world.inconsistent_items(base, setting.task, 0, wanted=50)
    pool = world.make_pool(items, kept, setting, 0)
    batch = np.arange(4)
    from unswayed.reward_settings import RewardSettings

    still = RewardSettings(delta=100.0)
    loss = loop._loss(base, base, pool, batch, still, 8, torch.device("cpu")).item()
    log_p = world.answer_log_probs(base, torch.from_numpy(pool.prompts[batch].reshape(8, -1)))
    entropy = -(log_p.exp() * log_p).sum(1).mean().item()
    assert loss == pytest.approx(-1e-3 * entropy, rel=1e-4)


@pytest.fixture
def small(study, tmp_path_factory):
    """The study of one step with a few items, its base measured."""
    whole, draw = study["world"].evaluation_items, study["run"].inconsistent_items
    few = tuple(replace(study["arms"].SETTINGS[place], steps=1) for place in (0, 4))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("inference", "run", "world"):
            patch.setattr(study[name], "evaluation_items", lambda task: whole(task)[:24])
        for name in ("arms", "run", "tables"):
            patch.setattr(study[name], "SETTINGS", few)
        for name in ("arms", "tables"):
            patch.setattr(study[name], "SWEEPS", {})
        patch.setattr(
            study["run"], "inconsistent_items", lambda *given, wanted: draw(*given, wanted=32)
        )
        patch.setattr(study["run"], "MEASURED_AT", (1,))
        patch.setattr(study["tables"], "STEPS", ("1",))
        patch.setattr(study["tables"], "LAST", "1")
        out = tmp_path_factory.mktemp("study")
        (out / "runs").mkdir()
        small = study["run"].Study(WEIGHTS, out, torch.device("cpu"))
        small.base_figures()
        yield small


def test_a_run_of_every_arm_makes_the_tables(study, small):
    base = json.loads((small.out / "base.json").read_text())
    for setting, calls in zip(study["run"].SETTINGS, (2, 24), strict=True):
        assert list(base[setting.task.value]) == ["coupled", "label", "order"]
        rows = base["methods"][setting.task.value]
        assert max(row["calls"] for row in rows.values()) == calls
        assert study["tables"]._averaged(base, setting, "Con") == 100  # over all orders
    for job in study["arms"].jobs(1):
        small.run(job)
        assert small.done(job)
    text = study["tables"].write_tables(small.out, seeds=1, command="this")
    assert "nan" not in text
    for rival in ("GRPO", "permuted SFT", "PIF", "base averaged"):
        assert f"| judge, noisy gold | {rival} |" in text
    record = json.loads((small.out / "runs" / "mcq-noisy__permuted-sft__seed0.json").read_text())
    assert record["arm"] == "permuted SFT"
    assert record["steps"]["1"] == record["protocols"]["coupled"]


@pytest.mark.parametrize("place", [0, 4])
def test_permuted_sft_is_the_cross_entropy_on_the_gold_label(study, base, place):
    arms, world = study["arms"], study["world"]
    setting = arms.SETTINGS[place]
    items, kept = world.inconsistent_items(base, setting.task, 0, wanted=50)
    pool = world.make_pool(items, kept, setting, 0)
    batch = np.array([3, 0, 17])
    loss_of = study["supervised"].supervised_loss
    found = loss_of(base, pool, arms.Job(setting, "permuted SFT", 0), torch.device("cpu"))(batch)
    prompts = torch.from_numpy(pool.prompts[batch].reshape(-1, pool.prompts.shape[-1]))
    label = (pool.orders[None] == pool.gold[batch][:, None, None]).argmax(axis=2).ravel()
    gold = torch.from_numpy(world.label_ids(pool.orders.shape[1])[label])
    expected = torch.nn.functional.nll_loss(world.answer_log_probs(base, prompts), gold)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    taught = loss_of(base, pool, arms.Job(setting, "PIF", 0), torch.device("cpu"))(batch)
    assert taught.item() > found.item()  # content and negatives come on top


def test_supervised_arms_learn_the_noisy_gold_that_the_rewarded_ones_are_paid_for(study, base):
    arms, world = study["arms"], study["world"]
    items, kept = world.inconsistent_items(base, arms.SETTINGS[0].task, 0, wanted=200)
    pool = world.make_pool(items, kept, arms.SETTINGS[0], 0)
    assert [item.gold for item in pool.items] == pool.gold.tolist()
    assert [item.gold for item in pool.items] != [item.gold for item in items]


def test_sweeps_share_the_runs_of_the_main_table(study):
    arms = study["arms"]
    names = [job.name for job in arms.jobs(2)]
    assert len(names) == len(set(names))
    swept = {setting.name for settings in arms.SWEEPS.values() for setting in settings}
    assert {"judge-noisy", "mcq-noisy", "mcq-quarter"} <= swept
