"""The door to training: what it refuses at once, what it leaves, what it finds again."""

import json

import msgspec
import pytest
from small_models import colour_items, small_recipe, trained

from unswayed.backends import open_backend
from unswayed.errors import RunDirectoryError, UnknownNameError, UsageError
from unswayed.runner.interrupts import catch_interrupt
from unswayed.training.planning import plan_training
from unswayed.training.run_folder import RunFolder

LORA = {"lora": "{rank = 4, alpha = 8}"}


def test_a_finished_run_is_found_again_without_training(word_model, tmp_path):
    recipe = small_recipe(data_held_out="2", run_check_every="2")
    data = colour_items(8)
    first = trained("pa-grpo", data, model=str(word_model), recipe=recipe, out=tmp_path)
    weights = (tmp_path / "model.safetensors").stat().st_mtime_ns
    lines = []
    again = trained(
        "pa-grpo", data, model=str(word_model), recipe=recipe, out=tmp_path, report=lines.append
    )
    assert lines == []
    assert (again.steps, again.after, again.before) == (2, first.after, first.before)
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == weights


def test_a_finished_run_without_checkpoints_cannot_be_made_longer(word_model, tmp_path):
    data = colour_items(6)
    trained("grpo", data, model=str(word_model), recipe=small_recipe(), out=tmp_path)
    longer = small_recipe(optimiser_steps="5")
    with pytest.raises(RunDirectoryError, match="finished run of 2 steps and no checkpoint"):
        trained("grpo", data, model=str(word_model), recipe=longer, out=tmp_path)


@pytest.mark.parametrize("changes", [{}, LORA], ids=["full", "lora"])
def test_what_was_trained_opens_as_a_model_with_its_template(word_model, tmp_path, changes):
    recipe = small_recipe(optimiser_steps="1", **changes)
    result = trained("pa-grpo", colour_items(4), model=str(word_model), recipe=recipe, out=tmp_path)
    backend = open_backend(result.model_name)
    assert backend.own_prompt.template.endswith("prompt_template.jinja")
    assert ("+lora=" in backend.model) == bool(changes)


@pytest.mark.parametrize(("kind", "steps"), [("pa-grpo", 5), ("pif", 6)])
def test_epochs_give_the_steps_that_were_planned(word_model, tmp_path, kind, steps):
    # Seven items, two a step. Groups fill three steps an epoch, so one and a half are five steps;
    # PIF takes its 14 examples one by one, four a step, and ends an epoch with half a step.
    recipe = small_recipe()
    optimiser = msgspec.structs.replace(recipe.optimiser, steps=None, epochs=1.5)
    recipe = msgspec.structs.replace(recipe, optimiser=optimiser)
    arguments = {"model": str(word_model), "recipe": recipe}
    assert plan_training(kind, colour_items(7), **arguments).steps == steps
    assert trained(kind, colour_items(7), out=tmp_path, **arguments).steps == steps


def test_unknown_kinds_and_engines_are_refused(word_model):
    arguments = {"model": str(word_model), "recipe": small_recipe()}
    with pytest.raises(UnknownNameError, match="Did you mean 'pa-grpo'"):
        plan_training("pagrpo", colour_items(4), **arguments)
    with pytest.raises(UsageError, match="unknown engine 'verlo'"):
        plan_training("pa-grpo", colour_items(4), engine="verlo", **arguments)


def test_models_behind_an_api_or_with_an_adapter_are_refused(word_model):
    with pytest.raises(UsageError, match="only open weights can"):
        plan_training("grpo", colour_items(4), model="openai/gpt-4.1", recipe=small_recipe())
    with pytest.raises(UsageError, match="has an adapter already"):
        plan_training(
            "grpo", colour_items(4), model=f"hf/{word_model}+lora=x", recipe=small_recipe()
        )


def test_a_recipe_of_another_task_is_refused(word_model):
    with pytest.raises(UsageError, match=r"q0: recipe .* is for task pairwise, the item is mcq"):
        plan_training("grpo", colour_items(4, n=4), model=str(word_model), recipe=small_recipe())


def test_a_file_in_the_way_of_the_folder_is_reported(word_model, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RunDirectoryError, match="cannot write to"):
        trained(
            "grpo", colour_items(4), model=str(word_model), recipe=small_recipe(), out=blocked / "x"
        )


def test_the_plan_describes_itself_as_plain_values(word_model):
    plan = plan_training("pa-grpo", colour_items(6), model=str(word_model), recipe=small_recipe())
    described = json.loads(json.dumps(plan.described()))
    assert (described["steps"], described["presentations"]) == (2, 2)
    assert described["counts"]["kept"] == 6


# --- records and logs -------------------------------------------------------------------------


def record(**changes):
    recipe = {"optimiser.schedule": "constant", "optimiser.steps": 4, "reward.lam": 1.0}
    return {"kind": "grpo", "model": "m", "recipe": {**recipe, **changes}, "data": {}}


def test_only_how_long_a_constant_schedule_runs_may_change(tmp_path):
    RunFolder(tmp_path).check_same_run(record(), record(**{"optimiser.steps": 8}))
    with pytest.raises(RunDirectoryError, match=r"reward\.lam was 1\.0 and is 2\.0"):
        RunFolder(tmp_path).check_same_run(record(), record(**{"reward.lam": 2.0}))
    decaying = {"optimiser.schedule": "linear"}
    with pytest.raises(RunDirectoryError, match=r"optimiser\.steps was 4 and is 8"):
        RunFolder(tmp_path).check_same_run(
            record(**decaying), record(**decaying, **{"optimiser.steps": 8})
        )


def test_the_newest_checkpoint_is_the_one_with_the_most_steps(tmp_path):
    assert RunFolder(tmp_path).last_checkpoint() is None
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-11").write_text("no folder")
    assert RunFolder(tmp_path).last_checkpoint() == 10


def test_the_log_forgets_what_will_be_run_again_and_half_written_lines(tmp_path):
    lines = [{"step": 1}, {"step": 2, "held_out/accuracy": 0.5}, {"step": 3}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "train.jsonl").write_text(text + '{"step": 4, "lo')
    RunFolder(tmp_path).trim_log(2)
    kept = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert kept == lines[:2]
    assert RunFolder(tmp_path).held_out() == {2: {"held_out/accuracy": 0.5}}


def test_the_second_ctrl_c_interrupts_at_once():
    import signal

    before = signal.getsignal(signal.SIGINT)
    with catch_interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
