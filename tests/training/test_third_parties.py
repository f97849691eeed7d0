"""A reward, an objective and an engine of another package: one file and one line each."""

import json
from pathlib import Path

import pytest
from forks import ended

from example_package import describe, environment

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
    """A folder of installed packages that describes the example of an outside package."""
    folder = tmp_path_factory.mktemp("site")
    describe(folder)
    return folder


def unswayed(plugin, *arguments):
    (process,) = ended(["-m", "unswayed", *arguments], [environment(plugin)])
    return process


def train(plugin, objective, *options):
    changes = [part for change in SMALL for part in ("--set", change)]
    data = ("tiny-judge-train", "--limit", "40", "--recipe", "tiny-judge")
    done = unswayed(plugin, "train", objective, *data, *changes, *options)
    assert done.code == 0, done.err
    return done


def test_help_and_errors_name_them(plugin):
    shown = unswayed(plugin, "train", "--help").out
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
    assert '\nreward.consistency = "unanimous"\n' in (tmp_path / "README.md").read_text()
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
