"""The door to training: what it refuses at once, what it leaves, what it finds again."""

import io
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from small_models import colour_items, small_command, small_plan, small_recipe

from unswayed.base.errors import RunDirectoryError, UnknownNameError, UsageError
from unswayed.cli import main
from unswayed.training import rollout_checks
from unswayed.training.planning import plan_training
from unswayed.training.provenance import differing_fields
from unswayed.training.run import train
from unswayed.training.run_folder import RunFolder
from unswayed.training.table import ENGINES

LORA = {"lora": "{rank = 4, alpha = 8}"}


def test_a_finished_run_is_found_again_without_training(trained, tmp_path):
    given = {"items": 8, "data_held_out": "2", "run_check_every": "2"}
    first = trained(tmp_path, **given)
    weights = (tmp_path / "model.safetensors").stat().st_mtime_ns
    lines = []
    again = trained(tmp_path, report=lines.append, **given)
    assert lines == []
    assert (again.steps, again.after, again.before) == (2, first.after, first.before)
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == weights


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("odd")])
def test_a_full_disk_is_reported_without_a_traceback(planned, tmp_path, monkeypatch, error):
    def fails(*given):
        raise error

    plan = planned()
    monkeypatch.setattr(type(ENGINES.load(plan.engine)), "run", fails)
    with pytest.raises(RunDirectoryError if isinstance(error, OSError) else type(error)) as refused:
        train(plan, tmp_path)
    assert ("the disk is full" in str(refused.value)) == isinstance(error, OSError)


def test_a_finished_run_without_checkpoints_cannot_grow(trained, tmp_path):
    trained(tmp_path, "grpo")
    with pytest.raises(RunDirectoryError, match="finished run of 2 steps and no checkpoint"):
        trained(tmp_path, "grpo", optimiser_steps="5")


@pytest.mark.parametrize(("kind", "steps"), [("pa-grpo", 5), ("pif", 6)])
def test_epochs_give_the_steps_that_were_planned(planned, tmp_path, kind, steps):
    # Seven items, two a step. Groups fill three steps an epoch, so one and a half are five steps;
    # PIF takes its 14 examples one by one, four a step, and ends an epoch with half a step.
    recipe = small_recipe()
    optimiser = msgspec.structs.replace(recipe.optimiser, steps=None, epochs=1.5)
    recipe = msgspec.structs.replace(recipe, optimiser=optimiser)
    plan = planned(kind, 7, recipe=recipe)
    assert (plan.steps, train(plan, tmp_path).steps) == (steps, steps)


def test_unknown_kinds_and_engines_are_refused(planned, word_model):
    with pytest.raises(UnknownNameError, match="Did you mean 'pa-grpo'"):
        planned("pagrpo")
    arguments = {"model": str(word_model), "recipe": small_recipe()}
    with pytest.raises(UsageError, match="unknown engine 'verlo'"):
        plan_training("pa-grpo", colour_items(4), engine="verlo", **arguments)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai/gpt-4.1", "only open weights can"),
        ("hf/MODEL+lora=x", "already has an adapter"),
        ("hf/MODEL+bits=4", "has rounded weights"),
    ],
)
def test_models_behind_an_api_or_with_an_adapter_are_refused(word_model, model, said):
    with pytest.raises(UsageError, match=said):
        small_plan(model.replace("MODEL", str(word_model)), "grpo")


def test_a_recipe_of_another_task_is_refused(planned):
    with pytest.raises(UsageError, match=r"q0: recipe .* is for task pairwise, the item is mcq"):
        planned("grpo", colour_items(4, n=4))


def test_a_file_in_the_way_of_the_folder_is_reported(trained, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RunDirectoryError, match="cannot write to"):
        trained(blocked / "x", "grpo")


def test_the_plan_describes_itself_as_plain_values(planned):
    described = json.loads(json.dumps(planned().described()))
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


def differing(model, first, second, *, items=8):
    """The fields that keep one plan from going on with the run of another."""
    plans = (
        small_plan(**{"model": model, "objective": "grpo", "items": items, **changes})
        for changes in (first, second)
    )
    return set(differing_fields(*(plan.record for plan in plans)))


SERVER = {"rollout_engine": '"vllm-server"', "rollout_server_url": '"http://127.0.0.1:1"'}


@pytest.mark.parametrize(
    "change",
    [
        {"rollout_gpu_memory": "0.5"},
        {"rollout_tensor_parallel": "2"},
        {"run_keep": "7", "run_save_every": "3", "run_log_every": "2", "run_check_every": "1"},
        {"name": "another"},
        {"items": colour_items(8), "data_held_out": "0"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_nothing_that_is_learned_may_change(word_model, change):
    assert differing(word_model, {}, change) == set()


@pytest.mark.parametrize(
    ("objective", "field", "value"),
    [
        ("rl-exact", "target_distill", "0.25"),
        ("rl-exact", "reward_consistency", "pair"),
        ("distill", "target_temperature", "0.25"),
        ("distill", "data_layouts", "coupled"),
        ("sft", "target_gold_noise", "auto"),
        ("sft", "target_invariance", "0.25"),
    ],
)
def test_another_target_is_another_run(word_model, objective, field, value):
    other = differing(word_model, {"objective": objective}, {"objective": objective, field: value})
    assert any(name.endswith(field.replace("_", ".", 1)) for name in other)


def test_a_model_may_lie_elsewhere(word_model, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(word_model, copy)
    monkeypatch.chdir(word_model.parent)
    for spelled in (copy, f"{copy}/", f"./{word_model.name}", f"hf/{copy}"):
        assert differing(word_model, {}, {"model": str(spelled)}) == set()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert differing(word_model, {}, {"model": "~/copy"}) == set()
    (copy / "generation_config.json").write_text("{}")
    assert differing(word_model, {}, {"model": str(copy)}) == {"model"}


def test_a_server_may_move_and_an_engine_may_not_change(word_model, monkeypatch):
    monkeypatch.setattr(rollout_checks, "check_vllm", lambda _engine: None)  # none is installed
    moved = {**SERVER, "rollout_server_url": '"http://127.0.0.1:2"'}
    assert differing(word_model, SERVER, moved) == set()
    assert differing(word_model, {}, SERVER) == {"recipe.rollout.engine"}


def test_held_out_items_may_change_where_the_trained_ones_do_not(planned, word_model, tmp_path):
    changes = {"data_held_out": "2"}
    first, second = planned("grpo", 8), planned("grpo", 8, **changes)
    held_out = {item.id for item in second.groups.held_out}
    rest = [item for item in colour_items(8) if item.id not in held_out]
    assert differing(word_model, changes, {"items": rest}) == set()
    assert differing(word_model, changes, {"items": rest[::-1]}) >= {"data.fingerprint"}
    assert differing(word_model, {}, changes) == {"data.fingerprint", "recipe.data.held_out"}
    with pytest.raises(RunDirectoryError, match="come from the training items"):
        RunFolder(tmp_path).check_same_run(first.record, second.record)


def test_a_record_without_a_fingerprint_of_items_still_counts(planned):
    plan = planned("grpo", 8, data_held_out="2")
    data = {key: value for key, value in plan.record["data"].items() if key != "trained"}
    assert differing_fields({**plan.record, "data": data}, plan.record) == {}
    other = {**data, "fingerprint": "sha256:other"}
    assert set(differing_fields({**plan.record, "data": other}, plan.record)) == {
        "data.fingerprint"
    }


def test_the_log_forgets_repeated_and_half_written_lines(tmp_path):
    lines = [{"step": 1}, {"step": 2, "held_out/accuracy": 0.5}, {"step": 3}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    torn = '{"step": 2, "lo{"step": 2}\n'  # half a line, and what another process wrote after it
    strange = '{"step": null}\n{"step": "2"}\n' + "[" * 100_000 + "\n"
    (tmp_path / "train.jsonl").write_text(text + torn + strange + '{"step": 4, "lo')
    assert RunFolder(tmp_path).held_out() == {2: {"held_out/accuracy": 0.5}}
    RunFolder(tmp_path).trim_log(2)
    kept = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert kept == lines[:2]
    assert RunFolder(tmp_path).held_out() == {2: {"held_out/accuracy": 0.5}}


@pytest.mark.parametrize(
    "text", ["[]", "5", "[" * 100_000, '{"data": 5}', '{"recipe": [1]}', '{"reward": "x"}']
)
def test_a_damaged_record_is_refused(planned, tmp_path, text):
    plan = planned()
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=r"[Cc]hoose another --out"):
        RunFolder(tmp_path).prepare(plan.record, plan.steps)


def test_a_record_that_finished_at_no_number_has_not_finished(planned, tmp_path):
    plan = planned()
    RunFolder(tmp_path).write_record({**plan.record, "finished": "2"})
    assert RunFolder(tmp_path).prepare(plan.record, plan.steps).finished is None


@pytest.mark.parametrize("name", ["checkpoint-²", "checkpoint-007", "checkpoint-٤"])
def test_folder_without_step_in_name_is_not_a_checkpoint(planned, tmp_path, name):
    plan = planned()
    (tmp_path / name).mkdir()
    assert RunFolder(tmp_path).prepare(plan.record, plan.steps) == (None, None, ())


def test_a_folder_in_use_is_refused_and_freed_at_the_end(trained, tmp_path):
    with (
        RunFolder(tmp_path / "run").held(),
        pytest.raises(RunDirectoryError, match="another process is training"),
    ):
        trained(tmp_path / "run")
    assert trained(tmp_path / "run").steps == 2


def test_a_dry_run_sees_that_the_folder_holds_another_run(trained, word_model, tmp_path, capsys):
    trained(tmp_path, "grpo")
    command = small_command(tmp_path, word_model, "grpo", reward_lam="0.5")
    assert main([*command, "--dry-run", "--out", str(tmp_path / "new")]) == 0
    assert main([*command, "--dry-run", "--out", str(tmp_path)]) == 2
    assert "holds another run" in capsys.readouterr().err


def test_dry_run_reads_only_headers_of_weights(word_model, tmp_path, capsys, monkeypatch):
    command = [*small_command(tmp_path, word_model, "sft"), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    ends = []

    class Watched(io.FileIO):
        def close(self):
            if not self.closed:
                ends.append(self.tell())
            super().close()

    def watched(path, *how, opened=Path.open, **options):
        is_weights = path.suffix == ".safetensors"
        return Watched(path) if is_weights else opened(path, *how, **options)

    monkeypatch.setattr(Path, "open", watched)
    capsys.readouterr()
    assert main([*command, "--dry-run"]) == 0
    assert f"the weights of {word_model} were not compared" in capsys.readouterr().err
    with (word_model / "model.safetensors").open("rb") as weights:
        header = 8 + int.from_bytes(weights.read(8), "little")
    assert set(ends[:-1]) == {header}
