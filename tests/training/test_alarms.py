"""An alarm is raised once, after some steps in a row, and not for a batch that is empty by chance."""

import pytest
from small_models import save_word_model, small_run

from unswayed.training import scoring
from unswayed.training.alarms import ALARMS, RECENT, Alarms, steps_before_alarm
from unswayed.training.progress import TrainingWarning
from unswayed.training.responses import Reading

UNPARSED, EQUAL, FLAT = (alarm.text.format(recent=RECENT) for alarm in ALARMS)


def raised(lines):
    alarms = Alarms()
    return [alarms.of(line) for line in lines]


def steps(unparsed, equal):
    return [
        {"group/unparsed": u, "group/zero_advantage": z}
        for u, z in zip(unparsed, equal, strict=True)
    ]


def test_equal_rewards_are_told_once():
    assert raised(steps([0.5] * 12, [1.0] * 12)) == [None] * (RECENT - 1) + [EQUAL] + [None] * 7


def test_unread_answers_are_reported_without_conclusions():
    assert raised(steps([1.0] * 12, [1.0] * 12)) == [None] * (RECENT - 1) + [UNPARSED] + [None] * 7


def test_one_step_that_teaches_begins_the_count_anew():
    row = ([1.0] * (RECENT - 1) + [0.97]) * 3
    assert raised(steps(row, row)) == [None] * 15


def test_both_are_told_if_both_happen():
    unparsed = [1.0] * RECENT + [0.0] * RECENT
    texts = raised(steps(unparsed, [1.0] * (2 * RECENT)))
    assert [text for text in texts if text] == [UNPARSED, EQUAL]


def test_checks_and_objectives_without_groups_raise_nothing():
    assert raised([{"loss": 1.0}, {"held_out/unparsed": 1.0}] * 10) == [None] * 20


@pytest.mark.parametrize("between", [{"held_out/accuracy": 0.5}, {"loss": 0.0}])
def test_lines_without_responses_do_not_restart_the_count(between):
    lines = [line for step in steps([1.0] * 12, [1.0] * 12) for line in (step, between)]
    assert [text for text in raised(lines) if text] == [UNPARSED]
    assert raised(lines)[2 * (RECENT - 1)] == UNPARSED


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"run_check_every": "1", "data_held_out": "2"}, RECENT),
        ({"optimiser_inner_updates": "2"}, 2 * RECENT - 1),
    ],
    ids=["checked", "updated twice"],
)
def test_run_that_cannot_learn_reports_it_once(trained, tmp_path, monkeypatch, changes, step):
    nothing = Reading(label=None, well_formed=False, reasoning_chars=0)
    monkeypatch.setattr(scoring, "reader", lambda *_, **__: lambda text, symbols: nothing)
    changes = {"optimiser_steps": str(step + 1), "optimiser_items_per_step": "8", **changes}
    with pytest.warns(TrainingWarning) as warned:
        trained(tmp_path, "pa-grpo", 10, **changes)
    told = [str(entry.message) for entry in warned if entry.category is TrainingWarning]
    assert told == [f"step {step}: {UNPARSED}"]
    assert (tmp_path / "train.jsonl").read_text().count('"warning"') == 1


@pytest.mark.parametrize(("items", "steps"), [(1, 40), (3, 14), (8, 5), (64, 5)])
def test_few_groups_a_step_need_more_steps_before_an_alarm(items, steps):
    alarms = Alarms(steps_before_alarm(items))
    said = [alarms.of({"group/zero_advantage": 1.0}) for _ in range(steps + 3)]
    assert [at for at, text in enumerate(said, start=1) if text] == [steps]
    assert f"last {steps} logged" in said[steps - 1]


def test_a_zero_gradient_is_told_unless_explained():
    assert raised([{"loss": 1.0, "grad_norm": 0.0}] * 7) == [None] * (RECENT - 1) + [
        FLAT,
        None,
        None,
    ]
    assert not any(raised([{"grad_norm": 0.0}, {"grad_norm": 1e-9}] * 9))
    lines = [{**step, "grad_norm": 0.0} for step in steps([0.5] * 12, [1.0] * 12)]
    assert [text for text in raised(lines) if text] == [EQUAL]


def test_a_model_that_names_no_label_is_told_to_learn_nothing(tmp_path):
    model = save_word_model(tmp_path / "model", pull=-1e4)
    alone = {"optimiser_beta": "0", "optimiser_entropy": "0", "target_distill": "0"}
    steps = {"optimiser_steps": str(RECENT), "optimiser_items_per_step": "8"}
    with pytest.warns(TrainingWarning, match=f"step {RECENT}: no weight had a gradient"):
        small_run(model, tmp_path / "out", "rl-exact", 8, **steps, **alone)
