"""A reward, an objective and an engine of another package: one file and one line each."""

import json
import os
import sys
from pathlib import Path

import pytest
from forks import ended

REWARD = '''
import numpy as np

from unswayed.reward_settings import Reward

def unanimous(choices, right):
    """+3 where all samples of the group name one candidate, else -3."""
    z = np.asarray(choices)
    flat = z.reshape(*z.shape[:-2], -1)
    same = (flat == flat[..., :1]).all(axis=-1) & (flat[..., 0] >= 0)
    return np.where(np.broadcast_to(same[..., None, None], z.shape), 3.0, -3.0)

UNANIMOUS = Reward("three times as much where all samples of the group agree", sampled=unanimous)
'''
OBJECTIVE = """
from dataclasses import dataclass, replace

import msgspec

from unswayed.training.pif import PIF
from unswayed.training.recipe_parts import Pif

@dataclass(frozen=True)
class SymbolOnly:
    card_text: str = "cross-entropy on the symbol alone"
    sampled: bool = False
    needs_gold: bool = True
    layouts: str = "coupled"
    uses: tuple[str, ...] = ()

    def settings(self, recipe, *, consistency, advantage):
        return None

    def check(self, recipe, groups, settings):
        PIF.check(recipe, groups, settings)

    def largest_pass(self, recipe, groups, chat):
        return PIF.largest_pass(recipe, groups, chat)

    def steps_per_epoch(self, recipe, groups):
        return PIF.steps_per_epoch(recipe, groups)

    def build(self, plan, out):
        symbol = Pif(negatives=0, content_weight=0.0, separator=" : ")
        return PIF.build(replace(plan, recipe=msgspec.structs.replace(plan.recipe, pif=symbol)), out)

SYMBOL_ONLY = SymbolOnly()
"""
ENGINE = """
import json

import torch
from safetensors.torch import save_file

from unswayed.errors import UsageError
from unswayed.training.held_out import measure_held_out
from unswayed.training.protocol import Stop
from unswayed.training.sampling import Split

class Counting:
    # Trains nothing: writes the length of each prompt as the model, and answers its first label.
    def check(self, recipe, settings, *, sampled):
        if not sampled:
            raise UsageError("the counting engine needs an objective that samples responses.")

    def split(self, recipe, n_presentations, world):
        responses = recipe.optimiser.items_per_step * n_presentations * recipe.rollout.samples
        if responses % 7:
            raise UsageError(f"the counting engine counts in sevens, not {responses}.")
        return Split(7, responses // 7)

    def run(self, plan, folder, resume, report):
        lengths = [len(plan.chat.ids(row.messages)) for row in plan.groups.rows]
        for step in (0, plan.steps):
            answers = lambda prompts: self.answer(lengths, plan, prompts, greedy=True)
            line = {"step": step, "steps": plan.steps, **measure_held_out(plan, answers)}
            folder.append(line)
            report(line)
        save_file({"lengths": torch.tensor(lengths)}, folder.path / "model.safetensors")
        (folder.path / "model.json").write_text(json.dumps([*plan.split, *lengths]))
        return Stop(plan.steps, interrupted=False)

    def answer(self, training, plan, prompts, *, greedy):
        return [plan.groups.symbols[0] for _ in prompts]

COUNTING = Counting()
"""
SMALL = (
    "data.held_out=4",
    "optimiser.steps=2",
    "optimiser.items_per_step=4",
    "run.save_every=0",
    "run.check_every=0",
    "run.loggers=[]",
)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """A folder of installed packages that holds one of a third party."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "others_reward.py").write_text(REWARD)
    (folder / "others_objective.py").write_text(OBJECTIVE)
    (folder / "others_engine.py").write_text(ENGINE)
    info = folder / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[unswayed.rewards]\nunanimous = others_reward:UNANIMOUS\n\n"
        "[unswayed.objectives]\nsymbol-only = others_objective:SYMBOL_ONLY\n\n"
        "[unswayed.engines]\ncounting = others_engine:COUNTING\n"
    )
    return folder


def unswayed(plugin, *arguments):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(plugin), *filter(None, sys.path)]),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
    }
    (process,) = ended(["-m", "unswayed", *arguments], [environment])
    return process


def train(plugin, objective, *options):
    changes = [part for change in SMALL for part in ("--set", change)]
    data = ("tiny-judge-train", "--limit", "40", "--recipe", "tiny-judge")
    done = unswayed(plugin, "train", objective, *data, *changes, *options)
    assert done.code == 0, done.err
    return done


def test_help_and_errors_name_them(plugin):
    shown = unswayed(plugin, "train", "--help").out
    assert "|unanimous>" in "".join(shown.split())
    assert "<distill|grpo|pa-grpo|pif|rl|rl-exact|sft|symbol-only>" in shown
    wrong = unswayed(
        plugin, "train", "rl", "tiny-judge-train", "--recipe", "tiny-judge", "--out", "unused",
        "--set", "reward.consistency=unanimos",
    )  # fmt: skip
    assert wrong.code == 2
    assert "Did you mean 'unanimous'?" in wrong.err


def test_lists_name_them(plugin):
    rewards = unswayed(plugin, "list", "rewards").out
    assert "three times as much where all samples of the group agree" in rewards
    objectives = unswayed(plugin, "list", "objectives").out
    assert "symbol-only  cross-entropy on the symbol alone" in objectives


def test_a_reward_is_taken_from_a_recipe_and_trained_with(plugin, tmp_path):
    train(plugin, "rl", "--set", "reward.consistency=unanimous", "--out", tmp_path)
    assert json.loads((tmp_path / "training.json").read_text())["reward"]["consistency"] == (
        "unanimous"
    )
    assert "| reward.consistency | unanimous |" in (tmp_path / "README.md").read_text()
    logged = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    means = [line["rewards/consistency/mean"] for line in logged if "loss" in line]
    assert len(means) == 2
    assert all(mean < -1 for mean in means)  # r_con never is below -1


def test_an_objective_trains_and_names_itself(plugin, tmp_path):
    done = train(plugin, "symbol-only", "--out", tmp_path)
    assert "symbol-only on 36 of 40 items" in done.err
    card = (tmp_path / "README.md").read_text()
    assert "- Method: cross-entropy on the symbol alone." in card
    assert (Path(tmp_path) / "model.safetensors").is_file()


def test_an_engine_runs_the_objectives_it_can(plugin, tmp_path):
    options = ("--engine", "counting", "--set", "optimiser.items_per_step=7")
    done = train(plugin, "pa-grpo", *options, "--out", tmp_path)
    model = json.loads((tmp_path / "model.json").read_text())
    assert model[:2] == [7, 7 * 2 * 8 // 7]  # how the engine divided the step
    assert len(model[2:]) == 2 * 36
    assert "4 held-out items: accuracy 0.500" in done.err
    # the first label everywhere is right once in two orders, and never consistent
    assert "held_out/accuracy        0.500 -> 0.500" in done.out
    assert "held_out/consistency     0.000 -> 0.000" in done.out
    card = (tmp_path / "README.md").read_text()
    assert "4 items that were not trained on, each in 2 presentations" in card


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("pa-grpo", "the counting engine counts in sevens, not 64."),
        ("pif", "the counting engine needs an objective that samples responses."),
    ],
)
def test_an_engine_refuses_what_it_cannot_run(plugin, tmp_path, objective, message):
    changes = [part for change in SMALL for part in ("--set", change)]
    data = ("tiny-judge-train", "--limit", "40", "--recipe", "tiny-judge", "--out", tmp_path)
    done = unswayed(plugin, "train", objective, *data, *changes, "--engine", "counting")
    assert done.code == 2
    assert message in done.err
    assert not list(tmp_path.iterdir())
