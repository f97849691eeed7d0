"""Runs that sample nothing: they resume, stop, share work and memory as every training does."""

import functools
import gc
import json
import os
import shutil
import signal
import sys
import time
import weakref
from pathlib import Path

import pytest
from commands import STEPS, Command, result_of, run_processes
from small_models import small_plan, small_run
from test_sharded import largest_difference, launch_environment, weights

from unswayed.base.errors import RunDirectoryError
from unswayed.training.one_token import OneToken
from unswayed.training.table import OBJECTIVES

SEVERAL = Path(__file__).with_name("several.py")
LORA = {"lora": "{rank = 4, alpha = 8}"}
KINDS = {
    "rl-exact": {"lora": "{rank = 4, alpha = 8, dropout = 0.1}"},
    "distill": {},
    "sft": LORA,
}
"""Objectives, with what is trained of the model in their tests."""
AUTO = {"target_gold_noise": "auto", "target_invariance": "0.5"}


# --- resume -----------------------------------------------------------------------------------

# seven items, one held out, are three steps an epoch: step 4 is the first of the second
WHOLE = {
    "data_held_out": "1",
    "optimiser_steps": "5",
    "run_save_every": "4",
    "run_check_every": "4",
    "run_micro_batch": "2",
    **AUTO,
}


@pytest.fixture(scope="module")
def whole_run(trained, tmp_path_factory):
    """The arguments of a run, and the folder of one that nothing disturbed."""

    @functools.cache
    def run(objective):
        arguments = {"objective": objective, "items": 7, **WHOLE, **KINDS[objective]}
        out = tmp_path_factory.mktemp(objective)
        trained(out, **arguments)
        return arguments, out

    return run


@pytest.mark.parametrize("objective", KINDS)
def test_run_resumes_bit_for_bit_in_its_second_epoch(whole_run, trained, tmp_path, objective):
    arguments, whole = whole_run(objective)
    for part in ("checkpoint-4", "base_answers"):
        shutil.copytree(whole / part, tmp_path / part)
    shutil.copy(whole / "train.jsonl", tmp_path)
    again = trained(tmp_path, **arguments)
    assert (again.resumed_from, again.steps) == (4, 5)
    assert result_of(whole) == result_of(tmp_path)
    begun = weights(whole / "checkpoint-4")
    assert largest_difference(begun, weights(whole)) > 0


def test_a_run_asks_the_base_again_only_for_what_is_not_recorded(word_model, tmp_path, monkeypatch):
    from unswayed.backends.huggingface import HuggingFaceBackend

    batches = []
    original = HuggingFaceBackend._run

    def counted(self, jobs, shared):
        batches.append(len(jobs))
        return original(self, jobs, shared)

    monkeypatch.setattr(HuggingFaceBackend, "_run", counted)
    given = {"objective": "rl-exact", "items": 7, "run_save_every": "1"}
    out, moved = tmp_path / "out", tmp_path / "moved"
    small_run(word_model, out, **given)
    assert sum(batches) == 14
    shutil.rmtree(out / "checkpoint-2")
    (out / "model.safetensors").unlink()
    shutil.copytree(word_model, moved)
    with pytest.warns(UserWarning, match="was finished"):
        again = small_run(moved, out, **given)
    assert again.resumed_from == 1
    assert sum(batches) == 14


def test_a_run_of_an_earlier_version_goes_on(trained, tmp_path):
    """Its record does not have the fields that came later."""
    trained(tmp_path, run_save_every="1")
    for file in tmp_path.glob("**/training.json"):
        record = json.loads(file.read_text())
        later = [key for key in record["recipe"] if key.startswith("target.")]
        assert later
        for key in (*later, "data.layouts"):
            del record["recipe"][key]
        file.write_text(json.dumps(record))
    assert trained(tmp_path, run_save_every="1", optimiser_steps="3").resumed_from == 2
    with pytest.raises(RunDirectoryError, match=r"target\.distill was 0\.5 and is 0\.1"):
        trained(tmp_path, optimiser_steps="4", target_distill="0.1")


@pytest.mark.parametrize(
    ("objective", "place"), [("rl-exact", "within a step"), ("distill", "between steps")]
)
def test_signal_between_or_within_steps_costs_no_bit(
    whole_run, trained, tmp_path, monkeypatch, objective, place
):
    passes = []
    original = OneToken.compute_loss

    def counted(self, *arguments, **named):
        passes.append(self.state.global_step)
        if place == "within a step" and passes.count(2) == 2 and len(passes) == passes.index(2) + 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, *arguments, **named)

    def tell(line):
        if place == "between steps" and line["step"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    arguments, whole = whole_run(objective)
    monkeypatch.setattr(OneToken, "compute_loss", counted)
    stopped = trained(tmp_path, report=tell, **arguments)
    assert (stopped.interrupted, stopped.steps) == (True, 2)
    again = trained(tmp_path, **arguments)
    assert (again.interrupted, again.resumed_from, again.steps) == (False, 2, 5)
    assert result_of(whole) == result_of(tmp_path)


# --- stops while the base is asked ------------------------------------------------------------

QUESTIONS = 20
"""Ten items in both orders."""

SLOW_ASKING = """
import os, time
from unswayed.backends import huggingface, local_jobs

local_jobs.CPU_TOKENS = 40  # batches of two
answer = huggingface.HuggingFaceBackend._run

def slow(self, jobs, shared):
    with open(os.environ["ASKED"], "a") as file:
        file.write(f"{len(jobs)}\\n")
    time.sleep(float(os.environ["ASKING_S"]))
    return answer(self, jobs, shared)

huggingface.HuggingFaceBackend._run = slow
"""


class Asking(Command):
    """A training command whose base is slow to answer, and writes down what it is asked."""

    def __init__(self, folder, model, objective):
        super().__init__(folder, model, objective, "inv")
        (folder / "site" / "sitecustomize.py").write_text(SLOW_ASKING)
        self.asked = folder / "asked"

    def batches(self):
        return list(map(int, self.asked.read_text().split())) if self.asked.exists() else []

    def environments(self, out, *, seconds=0.0, **how):
        own = {"ASKED": str(self.asked), "ASKING_S": str(seconds)}
        return [environment | own for environment in super().environments(out, **how)]


@pytest.fixture(scope="module")
def undisturbed(trained, tmp_path_factory):
    """The weights that a command comes to when nothing happens, of a run in this process."""

    @functools.cache
    def weights_of(objective):
        out = tmp_path_factory.mktemp(objective)
        trained(out, objective, 10, reward_consistency="inv", **STEPS)
        return weights(out)

    return weights_of


def wait_for_batches(command, count, children):
    until = time.monotonic() + 200
    while len(command.batches()) < count:
        assert all(child.poll() is None for child in children), children[0].communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("objective", "number", "most_lost"),
    [
        ("distill", signal.SIGINT, 0),  # the batch under way is kept
        ("rl-exact", signal.SIGKILL, 6),  # what the writer had not yet committed
    ],
)
def test_a_stop_while_the_base_is_asked_loses_no_answer(
    word_model, undisturbed, tmp_path, objective, number, most_lost
):
    command = Asking(tmp_path, word_model, objective)
    out = tmp_path / "out"
    with command.started(out, seconds=0.3) as (child,):
        wait_for_batches(command, 2, [child])
        child.send_signal(number)
        said = child.communicate(timeout=100)[1]
    first = sum(command.batches())
    assert child.returncode == (-number if number == signal.SIGKILL else 130), said
    assert "Traceback" not in said
    assert not list(out.glob("checkpoint-*"))
    assert first < QUESTIONS
    command.finished(out)
    assert 0 <= sum(command.batches()) - QUESTIONS <= most_lost
    # batches of other prompts may differ in the last bits of what they answer
    assert largest_difference(weights(out), undisturbed(objective)) < 1e-6


@pytest.mark.parametrize("to_all", [False, True], ids=["one", "all"])
def test_processes_that_wait_for_the_first_one_stop_with_it(
    word_model, undisturbed, tmp_path, to_all
):
    command = Asking(tmp_path, word_model, "rl-exact")
    out = tmp_path / "out"
    with command.started(out, seconds=0.1, processes=2) as children:
        wait_for_batches(command, 2, children)
        for child in children if to_all else children[:1]:  # a terminal tells all of them
            child.send_signal(signal.SIGINT)
        said = [child.communicate(timeout=100)[1] for child in children]
    assert [child.returncode for child in children] == [130, 130], said
    assert "Traceback" not in "".join(said)
    command.finished(out, processes=2)
    assert sum(command.batches()) == QUESTIONS
    assert largest_difference(weights(out), undisturbed("rl-exact")) < 1e-5


LONG_WORK = """
import sys, time
from datetime import timedelta
from small_models import small_recipe
from unswayed.training import processes

processes.TIMEOUT = timedelta(seconds=4)
with processes.joined(small_recipe()):
    print(processes.on_main(lambda: time.sleep(5) or "done", patient=True))
"""


def test_the_others_wait_for_long_work_of_the_first_process(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(LONG_WORK)
    path = os.pathsep.join([str(SEVERAL.parent), *filter(None, sys.path)])
    said = run_processes(script, launch={"PYTHONPATH": path})
    assert [out.strip() for out, _ in said] == ["done", "done"]


# --- several processes ------------------------------------------------------------------------


def logged(out):
    lines = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    return [{key: line[key] for key in line if key not in ("epoch", "grad_norm")} for line in lines]


@pytest.mark.parametrize(
    ("objective", "launch", "changes"),
    [
        ("rl-exact", None, {}),
        ("sft", "fsdp2", {**LORA, **AUTO}),
    ],
    ids=["whole rl-exact", "sharded lora sft"],
)
def test_two_processes_learn_what_one_learns(
    word_model, trained, tmp_path, objective, launch, changes
):
    settings = {
        "optimiser_steps": "4",
        "optimiser_learning_rate": "1e-4",
        "run_micro_batch": "2",
        **changes,
    }
    trained(tmp_path / "one", objective, 7, **settings)
    environment = launch_environment(launch) if launch else None
    told = json.dumps({"items": 7, "objective": objective, **settings})
    run_processes(SEVERAL, word_model, tmp_path / "two", told, launch=environment)
    one, two = tmp_path / "one", tmp_path / "two"
    assert largest_difference(weights(one), weights(two)) < 1e-5
    if "lora" not in changes:
        assert largest_difference(weights(word_model), weights(two)) > 2e-4
    for alone, both in zip(logged(one), logged(two), strict=True):
        assert both == pytest.approx(alone, abs=1e-5)  # the parts of the loss too


# --- memory -----------------------------------------------------------------------------------


def test_the_base_is_gone_before_the_trainer_loads_its_own(word_model, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    read, alive, loaded = AutoModelForCausalLM.from_pretrained, [], []

    def counted(*arguments, **named):
        loaded.append(sum(model() is not None for model in alive))
        model = read(*arguments, **named)
        alive.append(weakref.ref(model))
        return model

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", counted)
    gc.collect()
    gc.disable()  # nor only by chance
    try:
        OBJECTIVES.load("rl-exact").build(small_plan(word_model, "rl-exact"), tmp_path)
    finally:
        gc.enable()
    assert loaded == [0, 0]  # the base, then the trainer's


@pytest.mark.parametrize(
    ("objective", "lora"),
    [("rl-exact", {}), ("distill", LORA)],
)
def test_checkpointing_changes_nothing_and_bfloat16_little(trained, tmp_path, objective, lora):
    losses = {}
    for name, changes in {
        "plain": {},
        "checkpointed": {"run_gradient_checkpointing": "true"},
        "bfloat16": {"run_precision": "bfloat16", "run_gradient_checkpointing": "true"},
    }.items():
        lines = []
        trained(tmp_path / name, objective, report=lines.append, **AUTO, **lora, **changes)
        losses[name] = [line["loss"] for line in lines]
        assert all(line["grad_norm"] > 0 for line in lines)
    assert losses["checkpointed"] == pytest.approx(losses["plain"], abs=1e-6)
    assert losses["bfloat16"] == pytest.approx(losses["plain"], abs=0.05)
    assert losses["bfloat16"] != losses["plain"]
