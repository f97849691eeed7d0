"""A training whose numbers run away ends with a word, and leaves no model that answers nothing."""

import json

import pytest
from safetensors.torch import load_file, save_file
from small_models import save_word_model, small_run

from unswayed.base.errors import BackendError, UsageError

ALONE = {"optimiser_beta": "0", "target_distill": "0"}


def refused(objective, model, out, **changes):
    with pytest.raises(UsageError) as refusal:
        small_run(model, out, objective, **changes)
    assert not list(out.glob("*.safetensors"))
    assert not list(out.glob("checkpoint-*"))
    assert "finished" not in json.loads((out / "training.json").read_text())
    log = out / "train.jsonl"
    assert not log.exists() or "NaN" not in log.read_text()
    return str(refusal.value)


@pytest.mark.parametrize("objective", ["rl-exact", "distill", "sft", "pa-grpo", "pif"])
def test_weights_that_run_away_are_not_saved(word_model, tmp_path, objective):
    changes = {"optimiser_learning_rate": "1e30", "optimiser_steps": "3", "run_save_every": "2"}
    said = refused(objective, word_model, tmp_path / "out", **changes)
    assert "of 3: " in said
    assert "optimiser.learning_rate" in said


def test_weights_that_run_away_in_the_last_step_are_not_saved(word_model, tmp_path):
    numbers = {"optimiser_learning_rate": "1e30", "optimiser_weight_decay": "1e9"}
    said = refused("sft", word_model, tmp_path / "out", optimiser_steps="1", **numbers)
    assert said.startswith("step 1 of 1: a weight")


@pytest.fixture
def broken_model(tmp_path):
    model = save_word_model(tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"][3] = float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    return model


def test_a_base_of_nan_is_reported_at_the_first_step(broken_model, tmp_path):
    said = refused("rl-exact", broken_model, tmp_path / "out", **ALONE)
    assert said.startswith("step 1 of 2: loss is nan")


def test_a_base_of_nan_is_reported_before_training(broken_model, tmp_path):
    with pytest.raises(BackendError, match=r"12 calls failed.*such as q.*weights are damaged"):
        small_run(broken_model, tmp_path / "out", "distill")
