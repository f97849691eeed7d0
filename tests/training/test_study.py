"""The study's ordering on three fixed seeds, and that its loop is the paper's objective."""

import statistics
import sys
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
        import loop
        import outcome
        import tables
        import world

        yield {"arms": arms, "loop": loop, "outcome": outcome, "tables": tables, "world": world}
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


def test_sweeps_share_the_runs_of_the_main_table(study):
    arms = study["arms"]
    names = [job.name for job in arms.jobs(2)]
    assert len(names) == len(set(names))
    swept = {setting.name for settings in arms.SWEEPS.values() for setting in settings}
    assert {"judge-noisy", "mcq-noisy", "mcq-quarter"} <= swept
