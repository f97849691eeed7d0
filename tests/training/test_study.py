"""The study's ordering on a fixed seed, its items, its runs and its tables."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from studied import pool_of, setting_of

from unswayed.model.items import Task
from unswayed.model.presentation import presentations
from unswayed.tiny.backend import WEIGHTS
from unswayed.tiny.items import NOUNS, WORDS, worth


@pytest.fixture(scope="module")
def learned(study, base):
    """Figures on other items after 50 steps on noisy gold, per arm, of one fixed seed."""
    world, measured = study["world"], study["outcome"].measure_model
    setting = setting_of(study, "judge-noisy", steps=50)
    held_out = world.evaluation_items(setting)
    pool = world.make_pool(*world.inconsistent_items(base, setting, 0), setting, 0)
    figures = {"base": measured(base, held_out)}
    for arm in ("GRPO", "PA-GRPO", "exact inv + distill"):
        job = study["settings"].Job(setting, arm, 0)

        def note(model, arm=arm):
            figures[arm] = measured(model, held_out)

        study["loop"].train_arm(base, pool, job, at_steps={50: note})
    return figures


def test_with_noisy_gold_consistency_rises_from_base_to_pa_grpo(learned):
    assert learned["PA-GRPO"]["Con"] > learned["GRPO"]["Con"] > learned["base"]["Con"] + 20


def test_with_noisy_gold_pa_grpo_is_right_in_both_orders_more(learned):
    assert learned["PA-GRPO"]["CA"] > learned["GRPO"]["CA"]


def test_invariance_and_distillation_beat_pa_grpo_on_noisy_gold(learned):
    better, paper = learned["exact inv + distill"], learned["PA-GRPO"]
    assert better["CA"] > paper["CA"]
    assert better["ECE"] < paper["ECE"]


def test_the_prompts_are_those_of_the_template_and_the_tokenizer(study):
    from transformers import AutoTokenizer

    from unswayed.backends.local_chats import ChatWriter
    from unswayed.model.presentation import Ask
    from unswayed.prompts import PromptSettings, render
    from unswayed.training.chats import ChatTokens

    writer = ChatWriter(AutoTokenizer.from_pretrained(WEIGHTS), model="tiny/judge")
    chat = ChatTokens(writer, thinking=False)
    settings = PromptSettings(template=str(WEIGHTS / "prompt_template.jinja"))
    for name in ("judge-noisy", "mcq-noisy", "judge-layouts"):
        setting = setting_of(study, name)
        items = study["world"].evaluation_items(setting)[:3]
        shown = study["world"].shown_in(setting)
        made = study["world"].prompts_of(items, shown)
        for row, item in zip(made, items, strict=True):
            for tokens, one in zip(row, shown, strict=True):
                messages = render(item, Ask(one), settings).messages
                assert tokens.tolist() == chat.ids(messages)


def test_only_training_items_are_inconsistent(study, base):
    world, setting = study["world"], setting_of(study, "judge-noisy")
    items, kept = world.inconsistent_items(base, setting, 0, wanted=200)
    labels = world.label_log_probs(base, items, presentations("swap", 2)).argmax(-1)
    assert (labels[:, 0] == labels[:, 1]).all()  # the same label in both orders: another candidate
    assert 0.4 < kept < 0.7
    evaluated = {world.content_of(item) for item in world.evaluation_items(setting)}
    assert not evaluated & {world.content_of(item) for item in items}


def test_gold_is_as_noisy_as_the_setting_says(study, base):
    world = study["world"]
    settings = [setting_of(study, f"judge-{gold}") for gold in ("clean", "noisy", "flips")]
    items, kept = world.inconsistent_items(base, settings[0], 0, wanted=400)
    wrong = {s.gold: world.make_pool(items, kept, s, 0).wrong_gold for s in settings}
    assert wrong["clean"] == 0
    assert 0.2 < wrong["noisy"] < 0.4
    assert 0.28 < wrong["flips"] < 0.42


def test_a_topic_is_held_out_by_seed(study, base):
    setting = setting_of(study, "judge-topic")
    topics = {study["held_out"].topic_of(seed) for seed in range(5)}
    assert len(topics) == 5
    for seed in (0, 3):
        topic = study["held_out"].topic_of(seed)
        assert {item.prompt for item in study["world"].evaluation_items(setting, seed)} == {topic}
        trained_on = {item.prompt for item in pool_of(study, base, setting, 200, seed).items}
        assert len(trained_on) == 9
        assert topic not in trained_on


@pytest.mark.parametrize(("name", "listed"), [("judge-words", WORDS), ("mcq-nouns", NOUNS)])
def test_training_and_evaluation_use_disjoint_words(study, base, name, listed):
    setting = setting_of(study, name)
    pool, evaluated = pool_of(study, base, setting, 300), study["world"].evaluation_items(setting)
    for items, parity in ((pool.items, 0), (evaluated, 1)):
        words = {word for item in items for text in item.candidates for word in text.split()}
        assert words == set(listed[parity::2])
        assert all(len(set(item.candidates)) == item.n for item in items)
    assert len(evaluated) > 250
    for item in evaluated[:50]:
        places = [
            [worth().words[WORDS.index(word)] for word in text.split()]
            if listed is WORDS
            else [worth().sizes[NOUNS.index(text)]]
            for text in item.candidates
        ]
        assert item.gold == int(np.argmax([sum(values) for values in places]))


def test_the_confirmation_has_other_items_and_other_seeds(study):
    settings, world = study["settings"], study["world"]
    first, second = setting_of(study, "judge-noisy"), setting_of(study, "second-judge-noisy")
    contents = [
        {world.content_of(item) for item in world.evaluation_items(setting)}
        for setting in (first, second)
    ]
    assert not contents[0] & contents[1]
    seeds = {part: {job.seed for job in settings.jobs(5, [part])} for part in settings.PARTS}
    assert seeds["confirmation"] == {5, 6, 7, 8, 9}
    assert seeds["main"] == seeds["robustness"] == {0, 1, 2, 3, 4}


def test_calibration_by_hand(study):
    outcome = study["outcome"]
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    gold = np.array([0, 1, 1, 1])
    # one bin holds .9 twice, right once: |.9 - .5|, half of all; .6 and .8 are alone and right
    assert outcome.calibration_error(p, gold) == pytest.approx(0.5 * 0.4 + 0.25 * 0.4 + 0.25 * 0.2)
    squares = 2 * (0.1**2 + 0.9**2 + 0.4**2 + 0.2**2)
    assert outcome.brier(p, gold) == pytest.approx(squares / 4)
    assert outcome.calibration_error(np.array([[1.0, 0.0]]), np.array([0])) == 0


def test_the_averaged_base_gives_one_verdict_to_every_order(study, base):
    items = study["world"].evaluation_items(setting_of(study, "mcq-noisy"))[:60]
    averaged = study["outcome"].measure_average(base, items)
    one_call = study["outcome"].measure_model(base, items)
    assert averaged["Con"] == 100
    assert averaged["CA"] == averaged["Acc"] > one_call["Acc"]
    assert averaged["Brier"] < one_call["Brier"]


def arms_of(setting):
    """All arms of one setting, two or three of the others."""
    if setting.name == "judge-noisy":
        return setting.arms
    some = ("PA-GRPO", "distill", *(("permuted SFT",) if setting.name == "mcq-noisy" else ()))
    return tuple(arm for arm in setting.arms if arm in some)


@pytest.fixture
def small(study, tmp_path_factory):
    """The study of one step with a few items, its base measured."""
    whole, draw = study["world"].evaluation_items, study["run"].inconsistent_items
    parts = {
        part: tuple(
            replace(setting, steps=1, items_per_step=4, arms=arms_of(setting))
            for setting in settings
        )
        for part, settings in study["settings"].PARTS.items()
    }
    every = tuple(setting for settings in parts.values() for setting in settings)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("inference", "run", "world"):
            patch.setattr(study[name], "evaluation_items", lambda *given: whole(*given)[:12])
        for name in ("inference", "page_tables", "run", "settings", "tables"):
            patch.setattr(study[name], "PARTS", parts)
        for name in ("page_tables", "settings", "tables"):
            patch.setattr(study[name], "SETTINGS", every)
            patch.setattr(study[name], "SWEEPS", {})
        patch.setattr(
            study["run"], "inconsistent_items", lambda *given, wanted: draw(*given, wanted=16)
        )
        patch.setattr(study["settings"], "HEADLINE", ())
        patch.setattr(study["tables"], "STEPS", (1,))
        patch.setattr(study["tables"], "EARLY", (1,))
        out = tmp_path_factory.mktemp("study")
        (out / "runs").mkdir()
        small = study["run"].Study(WEIGHTS, out, torch.device("cpu"))
        small.base_figures()
        yield small


def test_a_run_of_every_arm_makes_the_tables(study, small):
    base = json.loads((small.out / "base.json").read_text())
    for task, calls in ((Task.PAIRWISE, 2), (Task.MCQ, 24)):
        assert list(base[task.value]) == ["coupled", "label", "order"]
        rows = base["methods"][task.value]
        assert max(row["calls"] for row in rows.values()) == calls
        assert rows["canonical"]["Con"] == 100  # by construction: one order for every order
    for job in study["settings"].jobs(1):
        small.run(job)
        assert small.done(job)
    records = study["tables"].write_tables(small.out, seeds=1)
    assert "nan" not in (small.out / "study.csv").read_text()
    assert {record["arm"] for record in records} >= set(study["arms"].ARMS)
    titles = {setting.title for setting in study["settings"].SETTINGS}
    assert {record["setting"] for record in records} >= titles
    pages = study["page_tables"].page_data(records)
    assert "–" not in pages["study"]["figures"].values()
    for table in pages["study"]["tables"].values():
        assert {len(row) for row in table["rows"]} <= {len(table["columns"])}
    study["tables"].keep_pages(records, small.out, command="this", measured="today")
    kept = json.loads((small.out / "data" / "beyond.json").read_text())
    assert kept["tables"]["against"] == {
        "command": "this",
        "measured": "today",
        **pages["beyond"]["tables"]["against"],
    }
    assert (small.out / "study.svg").exists()
    record = json.loads((small.out / "runs" / "mcq-noisy__permuted-sft__seed0.json").read_text())
    assert record["arm"] == "permuted SFT"
    assert record["steps"]["1"] == record["protocols"]["coupled"]
    assert record["untrained"]["base averaged"]["Con"] == 100


def test_sweeps_and_kinds_of_gold_share_equal_runs(study):
    settings, arms = study["settings"], study["arms"]
    names = [job.name for job in settings.jobs(2)]
    assert len(names) == len(set(names))
    swept = {setting.name for group in settings.SWEEPS.values() for setting in group}
    assert {"judge-noisy", "mcq-noisy", "mcq-quarter"} <= swept
    assert "judge-noisy__distill__seed0" in names
    assert "judge-clean__distill__seed0" not in names  # it reads no gold
    second = settings.trained_in(setting_of(study, "second-mcq-clean"), "distill")
    assert second.name == "second-mcq-noisy"
    runs = {(job.setting.name, job.arm) for job in settings.jobs(1)}
    for setting in settings.SETTINGS:
        for arm in setting.arms:
            assert (settings.trained_in(setting, arm).name, arm) in runs
    assert set(arms.FINALISTS) <= set(arms.ARMS)


def test_a_run_is_another_one_if_its_setting_or_its_arm_is(study):
    job = study["settings"].Job(setting_of(study, "judge-noisy"), "inv", 0)
    same = study["settings"].Job(setting_of(study, "judge-noisy", title="another"), "inv", 0)
    other = study["settings"].Job(setting_of(study, "judge-noisy", lam=2.0), "inv", 0)
    assert job.fingerprint("b") == same.fingerprint("b") != other.fingerprint("b")
    before = job.fingerprint("b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(study["arms"].ARMS, "inv", study["arms"].Arm(reward="inv"))
        assert job.fingerprint("b") != before
