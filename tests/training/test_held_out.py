"""What is followed on held-out items: as an audit would say it, at no risk to the training."""

import json
import warnings
from pathlib import Path

import msgspec
import pytest
from small_models import colour_items, small_recipe

from unswayed.base.errors import ItemError, UsageError
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task, encode_item, fingerprint
from unswayed.training import trl_engine
from unswayed.training.held_out import Figure, checked_items, figures, figures_of, look_filtered
from unswayed.training.progress import TrainingWarning
from unswayed.training.provenance import differing_fields
from unswayed.training.run import train
from unswayed.training.run_folder import RunFolder

LORA = {"lora": "{rank = 4, alpha = 8, dropout = 0.1}"}
HELD_OUT = {"data_held_out": "4", "optimiser_steps": "3"}
OFTEN = {**HELD_OUT, "run_check_every": "1"}


def lines_of(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def test_figures_of_held_out_items_are_those_of_an_audit() -> None:
    items = [
        Item(id=name, task=Task.PAIRWISE, prompt=name, candidates=("x", "y"), gold=0)
        for name in ("kept", "flipped", "unread")
    ]
    decisions = [
        Decision(
            item_id=item.id, order=order, labels=("A", "B"), label_set=("A", "B"), choice=choice
        )
        for item, choices in zip(items, ((0, 0), (0, 1), (None, None)), strict=True)
        for order, choice in zip(((0, 1), (1, 0)), choices, strict=True)
    ]
    values = figures(items, decisions)
    # right in 2, 1 and 0 of 2; an answer that could not be read agrees with nothing
    assert {name: value for name, value in values.items() if "/" not in name} == {
        "items": 3,
        "accuracy": pytest.approx(0.5),
        "consistency": pytest.approx(1 / 3),
        "unparsed": pytest.approx(1 / 3),
    }
    for name in ("accuracy", "consistency", "unparsed"):
        assert 0 <= values[f"{name}/low"] < values[name] < values[f"{name}/high"] <= 1
    accuracy, consistency, unparsed = figures_of({f"held_out/{k}": v for k, v in values.items()})
    assert accuracy == ("accuracy", 0.5, values["accuracy/low"], values["accuracy/high"])
    assert (consistency.name, unparsed.name) == ("consistency", "unparsed")


def test_a_figure_is_read_with_its_interval():
    assert str(Figure("accuracy", 0.5, 0.25, 0.75)) == "0.500 (0.250 to 0.750)"
    assert str(Figure("accuracy", 0.5, None, None)) == "0.500"


# --- an evaluation set ------------------------------------------------------------------------


def evaluation_file(folder, items):
    file = folder / "evaluation.jsonl"
    file.write_bytes(b"\n".join(map(encode_item, items)))
    return str(file)


def test_evaluation_set_is_followed_and_never_trained_on(planned, tmp_path):
    fresh = colour_items(3, n=2, seed=5)
    fresh = [msgspec.structs.replace(item, id=f"fresh {item.id}") for item in fresh]
    file = evaluation_file(tmp_path, fresh)
    runs = {}
    for name, changes in {"without": {}, "with": {"data_evaluation": file}}.items():
        plan = planned("sft", run_check_every="1", **changes)
        runs[name] = plan, train(plan, tmp_path / name)
    (plain, _), (plan, result) = runs["without"], runs["with"]
    assert [item.id for item in plan.groups.held_out] == [item.id for item in fresh]
    assert plan.groups.rows == plain.groups.rows
    (asked,) = checked_items(plan)
    assert asked in plan.groups.held_out
    assert (result.before["held_out/items"], result.after["held_out/items"]) == (1, 1)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in runs]
    assert weights[0] == weights[1]
    assert plan.record["data"]["evaluation"] == fingerprint(fresh)
    assert file not in json.dumps(plan.record)
    assert differing_fields(plan.record, plain.record) == {}
    card = (tmp_path / "with" / "README.md").read_text()
    assert f"an evaluation set with the fingerprint `{fingerprint(fresh)}`" in card


def test_evaluation_items_among_trained_ones_are_counted(planned, tmp_path):
    items = colour_items(6)
    again = msgspec.structs.replace(items[2], id="other", candidates=items[2].candidates[::-1])
    file = evaluation_file(tmp_path, [again, *colour_items(1, seed=9)])
    with pytest.raises(ItemError, match="1 of 2 items is also trained on, such as other"):
        planned("sft", items, data_evaluation=file)


def test_evaluation_set_needs_items_and_no_held_out_ones(planned, tmp_path):
    with pytest.raises(UsageError, match=r"does not work with data\.held_out 2"):
        small_recipe(data_evaluation="other.jsonl", data_held_out="2")
    fixed = [msgspec.structs.replace(item, permutable=False) for item in colour_items(2, seed=9)]
    with pytest.raises(ItemError, match=r"no item of data\.evaluation is usable: 0 may"):
        planned("sft", data_evaluation=evaluation_file(tmp_path, fixed))


# --- what a check may cost --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "changes", "count"),
    [
        # 2 items x P 2 x N 4 = 16 responses a step; a quarter of ten steps' are 40, 20 items x 2
        ("pa-grpo", {"run_check_every": "10", "optimiser_steps": "40"}, 20),
        ("pa-grpo", {"run_check_every": "0", "optimiser_steps": "5"}, 10),
        ("pa-grpo", {"run_check_every": "100"}, 31),  # all there are: 30, and one asked twice
        ("pa-grpo", {"run_check_every": "1", "rollout_samples": "2"}, 1),
        # 2 items x P 2 examples a step
        ("pif", {"run_check_every": "10"}, 5),
    ],
)
def test_a_check_asks_a_quarter_of_the_trained_responses(planned, objective, changes, count):
    plan = planned(objective, 40, data_held_out="30", **changes)
    items = checked_items(plan)
    assert len(items) == count
    held_out = list(plan.groups.held_out)
    assert list(items) == [item for item in held_out if item in items]  # in their order


def test_the_items_of_a_check_are_drawn_by_id(planned):
    how = {"data_held_out": "30", "run_check_every": "10", "optimiser_steps": "40"}
    data = colour_items(40)
    drawn = (checked_items(planned("pa-grpo", items, **how)) for items in (data, data[::-1]))
    first, again = ({item.id for item in items} for items in drawn)
    assert first == again


# --- what a check may not change --------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "changes"), [("pa-grpo", LORA), ("pif", {})], ids=["lora pa-grpo", "full pif"]
)
def test_checking_changes_no_bit_of_what_is_learned(trained, tmp_path, objective, changes):
    name = "adapter_model.safetensors" if changes else "model.safetensors"
    saved = {}
    for every in ("0", "1"):
        out = tmp_path / every
        often = {"run_check_every": every, "prompt_max_response_tokens": "3"}
        trained(out, objective, 14, **HELD_OUT, **often, run_save_every="2", **changes)
        saved[every] = (out / name).read_bytes()
        steps = [line["step"] for line in lines_of(out) if "held_out/accuracy" in line]
        assert steps == ([3] if every == "0" else [0, 1, 2, 3])
    assert saved["0"] == saved["1"]


# --- what a check may not cost ----------------------------------------------------------------


def checking(monkeypatch, behaviour):
    """Let something happen in every check, before the model is asked."""
    original = trl_engine.answers_of

    def answers_of(trainer, plan, prompts):
        behaviour(trainer)
        return original(trainer, plan, prompts)

    monkeypatch.setattr(trl_engine, "answers_of", answers_of)


def test_a_step_is_saved_before_it_is_checked(trained, tmp_path, monkeypatch):
    seen = []

    def look(trainer):
        names = (path.name for path in tmp_path.glob("checkpoint-*"))
        checkpoint = max((int(name.removeprefix("checkpoint-")) for name in names), default=None)
        seen.append(
            (trainer.state.global_step, checkpoint, (tmp_path / "model.safetensors").exists())
        )
        if checkpoint is not None:  # complete: it can be resumed from
            assert (tmp_path / f"checkpoint-{checkpoint}" / "training.json").is_file()
            assert (tmp_path / f"checkpoint-{checkpoint}" / "model.safetensors").is_file()

    checking(monkeypatch, look)
    trained(tmp_path, "pa-grpo", 14, **OFTEN, run_save_every="2")
    assert seen == [(0, None, False), (1, None, False), (2, 2, False), (3, 3, True)]


def test_a_failed_check_costs_its_figures_and_nothing_else(trained, tmp_path, monkeypatch):
    changes = {**OFTEN, "run_save_every": "1", "run_gradient_checkpointing": "true"}
    trained(tmp_path / "whole", "pa-grpo", 14, **changes)
    was_checkpointing = []

    def poor(trainer):
        def pad(*_, **__):
            if trainer.state.global_step == 1:
                raise RuntimeError("CUDA out of memory. Tried to allocate\nmore")
            return padded(*_, **__)

        padded = type(trainer.processing_class).pad.__get__(trainer.processing_class)
        trainer.processing_class.pad = pad
        was_checkpointing.append((trainer.model.training, trainer.model.is_gradient_checkpointing))

    checking(monkeypatch, poor)
    with pytest.warns(TrainingWarning, match="after step 1 failed") as warned:
        result = trained(tmp_path / "cut", "pa-grpo", 14, **changes)
    (text,) = {str(entry.message) for entry in warned if entry.category is TrainingWarning}
    assert "RuntimeError: CUDA out of memory. Tried to allocate." in text
    assert [line["warning"] for line in lines_of(tmp_path / "cut") if "warning" in line] == [text]
    checked = [line["step"] for line in lines_of(tmp_path / "cut") if "held_out/items" in line]
    assert checked == [0, 2, 3]
    assert was_checkpointing[1:] == [(True, True)] * 3  # also after the failure
    assert result.steps == 3
    weights = [(tmp_path / d / "model.safetensors").read_bytes() for d in ("whole", "cut")]
    assert weights[0] == weights[1]


def test_a_failed_last_check_leaves_a_finished_run(trained, tmp_path, monkeypatch):
    def fail(trainer):
        if trainer.state.global_step == 3:
            raise MemoryError

    checking(monkeypatch, fail)
    with pytest.warns(TrainingWarning, match="after step 3 failed"):
        result = trained(tmp_path, "pa-grpo", 14, **OFTEN)
    assert (result.steps, result.after) == (3, {})  # not those of the step before
    assert result.before["held_out/items"] == 2
    assert json.loads((tmp_path / "training.json").read_text())["finished"] == 3
    assert "## Held-out items" not in (tmp_path / "README.md").read_text()


def test_ctrl_c_in_check_does_not_fail_the_check(trained, tmp_path, monkeypatch):
    def press(trainer):
        raise KeyboardInterrupt

    checking(monkeypatch, press)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, "pa-grpo", 14, **OFTEN)


def test_a_run_ended_before_a_check_makes_it_later(trained, tmp_path, monkeypatch):
    def die(trainer):
        if trainer.state.global_step == 2:
            raise KeyboardInterrupt

    changes = {**HELD_OUT, "run_save_every": "2", "run_check_every": "2"}
    with monkeypatch.context() as patch:
        checking(patch, die)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, "pa-grpo", 14, **changes)
    result = trained(tmp_path, "pa-grpo", 14, **changes)
    assert result.resumed_from == 2
    lines = lines_of(tmp_path)
    assert [line["step"] for line in lines if "held_out/items" in line] == [0, 2, 3]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3]
    assert (result.before["held_out/items"], result.after["held_out/items"]) == (4, 4)


def test_a_run_ended_after_its_last_check_reports_once(trained, tmp_path, monkeypatch):
    def die(folder):
        raise KeyboardInterrupt

    changes = {"data_held_out": "4", "run_save_every": "1", "run_check_every": "2"}
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "check_weights", die)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, "pa-grpo", 14, **changes)
    lines = lines_of(tmp_path)
    result = trained(tmp_path, "pa-grpo", 14, **changes)
    assert (result.resumed_from, result.after["held_out/items"]) == (2, 4)
    assert [line["step"] for line in lines if "held_out/items" in line] == [0, 2]
    assert lines_of(tmp_path) == lines


def test_figures_are_in_tensorboard_too(trained, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    changes = {**HELD_OUT, "run_check_every": "2", "run_loggers": '["tensorboard"]'}
    trained(tmp_path, "pa-grpo", 14, **changes)
    (folder,) = {path.parent for path in Path(tmp_path).rglob("events.out*")}
    events = EventAccumulator(str(folder))
    events.Reload()
    logged = {line["step"]: line for line in lines_of(tmp_path) if "held_out/items" in line}
    for name in ("accuracy", "consistency", "unparsed"):
        drawn = events.Scalars(f"train/held_out/{name}")
        assert {event.step: event.value for event in drawn} == {
            step: pytest.approx(line[f"held_out/{name}"]) for step, line in logged.items()
        }
    assert sorted(logged) == [0, 2, 3]


def test_checks_keep_the_figures_of_steps_logged_together(trained, tmp_path):
    lines = {}
    for every in ("0", "1"):
        out = tmp_path / every
        trained(out, "pa-grpo", 14, **HELD_OUT, run_log_every="3", run_check_every=every)
        (lines[every],) = [line for line in lines_of(out) if "loss" in line]
    for key in ("reward", "group/unparsed", "kl", "entropy"):
        assert lines["0"][key] == lines["1"][key]


def test_healthy_run_raises_no_alarm(trained, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        trained(tmp_path, "pa-grpo", 14, **OFTEN)


@pytest.mark.parametrize(("value", "filtered"), [(0.0, True), (0.1, False)])
def test_items_of_which_none_was_consistent_look_filtered(value, filtered):
    figures = [Figure("accuracy", 0.5, None, None), Figure("consistency", value, None, None)]
    assert look_filtered(figures) is filtered
    assert not look_filtered(figures[:1])
