"""Answers of a model in training: the same from one process, from two, and from vLLM."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from commands import run_processes
from small_models import small_plan
from test_sharded import launch_environment, run

from unswayed.backends.local_texts import end_ids
from unswayed.training.held_out import measure_held_out
from unswayed.training.protocol import AnswerError
from unswayed.training.table import OBJECTIVES
from unswayed.training.trl_answers import answers_of, batches, share

SETTINGS = {"data_held_out": "5", "prompt_max_response_tokens": "6", "run_micro_batch": "4"}


@pytest.fixture(scope="module")
def wavering_model(word_model, tmp_path_factory):
    """The word model without its pull towards the labels: its answers depend on the prompt."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp("wavering") / "model"
    shutil.copytree(word_model, folder)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][:, 0] = 0.0
    weights["model.embed_tokens.weight"][:, 0] = 0.0
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def running(model, out, **changes):
    plan = small_plan(model, "pa-grpo", 12, **{**SETTINGS, **changes})
    return OBJECTIVES.load("pa-grpo").build(plan, Path(out)), plan


def asked(trainer, plan):
    """The prompts of a held-out check, and the answers."""
    seen = []

    def answer(prompts):
        seen.extend((prompts, answers_of(trainer, plan, prompts)))
        return seen[1]

    measure_held_out(plan, answer)
    return seen


# --- how the work is divided ------------------------------------------------------------------


def test_every_process_gets_as_many_prompts_of_like_length():
    lengths = [9, 1, 5, 3, 7]
    assert share(lengths, 0, 1) == [1, 3, 2, 4, 0]
    assert [share(lengths, process, 2) for process in range(2)] == [[1, 2, 0], [3, 4, 0]]
    assert [share([4], process, 3) for process in range(3)] == [[0], [0], [0]]


def test_batches_hold_as_many_tokens_as_are_allowed_when_padded():
    # 3 rows of 4 + 2 are 18 tokens; a fourth of 9 + 2 would make all four as wide: 44
    assert batches([2, 3, 4, 9, 9], 2, 22) == [range(3), range(3, 5)]
    assert batches([30, 2], 2, 22) == [range(1), range(1, 2)]  # too long for any batch
    assert batches([], 2, 22) == []


def test_answers_do_not_depend_on_how_they_are_batched(wavering_model, tmp_path, monkeypatch):
    trainer, plan = running(wavering_model, tmp_path)
    _, together = asked(trainer, plan)
    monkeypatch.setattr("unswayed.training.trl_answers.TOKENS", 30)
    _, alone = asked(trainer, plan)
    assert alone == together
    assert len(set(together)) > 2


def test_answers_and_rollouts_stop_at_the_same_tokens(wavering_model, tmp_path):
    folder = shutil.copytree(wavering_model, tmp_path / "model")
    file = folder / "generation_config.json"
    own = json.loads(file.read_text())
    other = own["eos_token_id"] + 1
    file.write_text(json.dumps({**own, "eos_token_id": [other]}))
    trainer, plan = running(folder, tmp_path)
    configured = []
    generate = trainer.model.generate

    def listening(**given):
        configured.append(set(given["generation_config"].eos_token_id))
        return generate(**given)

    trainer.model.generate = listening
    asked(trainer, plan)
    assert configured[0] == {other, own["eos_token_id"]}
    assert configured[0] == set(trainer.eos_token_ids)
    assert configured[0] == end_ids(trainer.model, trainer.processing_class)


# --- several processes ------------------------------------------------------------------------


@pytest.mark.parametrize("launch", ["ddp", "fsdp2"])
def test_two_processes_share_the_work_and_answer_like_one(wavering_model, tmp_path, launch):
    changes = {"rollout_samples": "8", "run_check_every": "1", "optimiser_steps": "1"}
    _, expected = asked(*running(wavering_model, tmp_path / "one", **changes))
    # One prompt a batch: the processes' answers end at different times.
    settings = {**SETTINGS, **changes, "items": 12, "tokens": 1}
    ranks = run(wavering_model, tmp_path / "two", 2, settings, launch_environment(launch))
    assert ranks[0]["answered"] == ranks[1]["answered"]
    assert len(ranks[0]["answered"]) == 2  # before and after one step
    assert ranks[0]["answered"][0] == expected
    assert len(set(expected)) > 2
    assert ranks[0]["after"] == ranks[1]["after"]
    assert ranks[0]["after"]["held_out/items"] == 4


def test_a_check_that_fails_on_one_process_stops_none(word_model, tmp_path):
    settings = {**SETTINGS, "items": 12, "run_check_every": "1", "fails": True}
    ranks = run(word_model, tmp_path, 2, settings)
    assert [(rank["steps"], rank["after"]) for rank in ranks] == [(2, {}), (2, {})]
    logged = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    warned = [line["warning"] for line in logged if "warning" in line]
    assert len(warned) == 3
    assert all("process 1: RuntimeError: out of memory." in text for text in warned)
    assert ["out of memory" in rank["said"] for rank in ranks] == [True, False]  # said once
    assert not any(key.startswith("held_out/") for line in logged for key in line)


def test_two_processes_of_the_command_talk_once(tmp_path):
    changes = (
        "optimiser.steps=2", "optimiser.items_per_step=2", "rollout.samples=4", "data.held_out=4",
        "run.micro_batch=8", "run.check_every=1", "run.loggers=[]",
    )  # fmt: skip
    options = [part for change in changes for part in ("--set", change)]
    command = ["-m", "unswayed", "train", "pa-grpo", "tiny-judge-train", "--limit", 12]
    printed = run_processes(*command, "--recipe", "tiny-judge", "--out", tmp_path, *options)
    (shown, told), (also_shown, also_told) = printed
    assert shown.count("held_out/accuracy ") == 1
    assert shown.count("next: unswayed audit") == 1
    assert told.count("pa-grpo on 8 of 12 items") == 1
    assert told.count("2/2 · ") == 2  # the step and its check
    assert told.count("held-out checks use 2 of 4 items") == 1
    assert also_shown == ""
    assert "held" not in also_told
    assert "reward" not in also_told


# --- vLLM -------------------------------------------------------------------------------------


class FakeVllm:
    """What trl's trainer has where responses come from vLLM; it answers B and the end token."""

    def __init__(self, mode, answer):
        self.mode, self.answer, self.syncs, self.calls = mode, answer, 0, []
        self.temperature, self.top_p, self.top_k, self.min_p = 1.0, 0.9, 20, None
        self.repetition_penalty = 1.1
        self.vllm_client = SimpleNamespace(generate=self.generate_by_server)

    def settings(self):
        names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
        return {name: vars(self)[name] for name in names}

    def sync_weights(self):
        self.syncs += 1

    def generate(self, prompts, images, num_generations, profiler=None):
        assert (images, num_generations) == (None, 1)
        self.calls.append((prompts, self.settings()))
        return prompts, [self.answer for _ in prompts], None, None

    def generate_by_server(self, prompts, n, max_tokens, **sampling):
        assert (n, max_tokens) == (1, 6)
        self.calls.append((prompts, sampling))
        return {"completion_ids": [self.answer for _ in prompts]}


@pytest.fixture
def by_vllm(word_model, tmp_path):
    """A trainer whose rollouts come from vLLM, in words: the engine itself is not installed."""

    def made(mode):
        trainer, plan = running(word_model, tmp_path)
        rollout = msgspec.structs.replace(plan.recipe.rollout, engine=f"vllm-{mode}")
        plan = replace(plan, recipe=msgspec.structs.replace(plan.recipe, rollout=rollout))
        tokenizer = trainer.processing_class
        answer = [tokenizer.convert_tokens_to_ids("B"), tokenizer.eos_token_id]
        trainer.vllm_generation, trainer._last_loaded_step = FakeVllm(mode, answer), -1
        return trainer, plan

    return made


@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_vllm_is_asked_greedily_with_the_weights_of_the_step(by_vllm, mode):
    trainer, plan = by_vllm(mode)
    vllm = trainer.vllm_generation
    usual = vllm.settings()
    prompts, answers = asked(trainer, plan)
    assert answers == ["B"] * 8
    ((sent, sampling),) = vllm.calls
    assert sorted(sent) == sorted(prompts)
    assert sampling == {
        "temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0,
    }  # fmt: skip
    assert vllm.settings() == usual  # rollouts go on as before
    asked(trainer, plan)
    assert (vllm.syncs, trainer._last_loaded_step) == (1, 0)  # the rollouts need not load them
    trainer.state.global_step = 1
    asked(trainer, plan)
    assert vllm.syncs == 2


def test_what_vllm_raises_is_told_and_its_settings_are_put_back(by_vllm):
    trainer, plan = by_vllm("colocate")
    vllm, usual = trainer.vllm_generation, trainer.vllm_generation.settings()

    def fails(**_):
        raise ValueError("no cache blocks left\n...")

    vllm.generate = fails
    with pytest.raises(AnswerError, match=r"^ValueError: no cache blocks left$"):
        asked(trainer, plan)
    assert vllm.settings() == usual


def test_answers_draw_no_random_numbers(wavering_model, tmp_path):
    import torch

    trainer, plan = running(wavering_model, tmp_path)
    prompts = [plan.chat.ids(plan.groups.rows[0].messages)] * 12
    state = torch.get_rng_state()
    assert len(set(answers_of(trainer, plan, prompts))) == 1
    assert torch.equal(torch.get_rng_state(), state)
