"""The line of a training step: what it says, where it stays, how long it thinks is left."""

import io

import pytest

from unswayed.cli.steps import StepLines, describe

STEP = {
    "step": 12.0,
    "steps": 100.0,
    "loss": -0.0002,
    "reward": 1.25,
    "rewards/accuracy/mean": 0.5,
    "rewards/length/mean": -0.0001,
    "rewards/format/mean": 0.3,
    "rewards/consistency/mean": 0.45,
    "group/agreement": 0.72,
    "group/accuracy": 0.8,
    "group/unparsed": 0.05,
    "completions/clipped_ratio": 0.02,
    "group/zero_advantage": 0.125,
    "clip_ratio/region_mean": 0.01,
    "kl": 0.0123,
    "entropy": 0.456,
}
CHECK = {"step": 50, "steps": 100, "held_out/items": 32, "held_out/accuracy": 0.75}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def lines_of(records, times, stream=None):
    clock = iter(times)
    stream = io.StringIO() if stream is None else stream
    lines = StepLines(stream=stream, clock=lambda: next(clock))
    for record in records:
        lines(record)
    lines.close()
    return stream.getvalue()


def test_a_step_shows_reward_parts_shares_and_time_left():
    assert describe(STEP, step_s=30.0) == (
        "    12/100 · 44 min left · 30 s/step · reward 1.250 (accuracy 0.50, length 0.00, format "
        "0.30, consistency 0.45) · agree 72% · right 80% · unparsed 5% · cut off 2% · no advantage "
        "12% · clipped 1% · KL 0.0123 · entropy 0.456 · loss -0.0002"
    )


def test_what_an_objective_does_not_have_is_left_out():
    assert (
        describe({"step": 3, "steps": 3, "loss": 2.5}, step_s=1.5)
        == "     3/3 · 1.5 s/step · loss 2.5"
    )
    assert describe({"step": 1, "steps": 3, "loss": 2.5}, step_s=None) == "     1/3 · loss 2.5"


def test_a_check_shows_its_figures_with_intervals():
    check = {**CHECK, "held_out/accuracy/low": 0.5, "held_out/accuracy/high": 0.875}
    assert describe(check, step_s=None) == (
        "    50/100 · 32 held-out items: accuracy 0.750 (0.500 to 0.875)"
    )


def test_the_parts_of_a_loss_stand_before_it():
    line = {"step": 3, "steps": 3, "loss": 2.5, "cross_entropy": 0.61234, "variance": 0.01}
    assert describe(line, step_s=None) == (
        "     3/3 · cross-entropy 0.6123 · variance 0.01 · loss 2.5"
    )
    line = {"step": 3, "steps": 3, "loss": 2.5, "reward": 0.5, "distillation": 0.7}
    assert describe(line, step_s=None) == "     3/3 · reward 0.500 · distillation 0.7 · loss 2.5"


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_settings_found_before_training_are_printed_once(stream):
    settled = {"target/temperature": 0.7, "target/wrong_gold": 0.15}
    records = [{"step": s, "steps": 3, "loss": 2.5, **settled} for s in (1, 2, 3)]
    text = lines_of(records, [0, 1, 2], stream())
    told = "settled: the average's temperature 0.7, 15% of the gold taken for wrong\n"
    assert text.startswith(told)
    assert text.count("settled") == 1
    assert text.count("loss 2.5") == 3


@pytest.mark.parametrize("pause", [10, 1000])
def test_a_check_or_a_save_now_and_then_changes_no_time_left(pause):
    # ten seconds a step, and a long pause in one of them
    times = [10 * step + (pause if step > 4 else 0) for step in range(1, 10)]
    text = lines_of([{"step": s, "steps": 100, "loss": 1.0} for s in range(1, 10)], times)
    first, *others = text.splitlines()
    assert "left" not in first  # nothing to tell from yet
    assert "15 min left · 10 s/step" in others[-1]  # 91 steps


def test_steps_that_are_logged_together_share_their_time():
    text = lines_of([{"step": s, "steps": 100, "loss": 1.0} for s in (5, 10)], [50.0, 100.0])
    assert "15 min left · 10 s/step" in text  # 90 steps


def test_a_log_gets_a_line_for_every_record():
    text = lines_of([STEP, CHECK, {**STEP, "step": 13}], [0, 1])
    assert text.count("\n") == 3
    assert "\r" not in text


def test_a_terminal_keeps_the_checks_and_one_live_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = lines_of([STEP, CHECK, {**STEP, "step": 51}], [0, 1], Terminal())
    first, check, second = (part for part in text.replace("\n", "\r").split("\r") if part.strip())
    assert (len(first), len(second)) == (59, 59)
    assert check.startswith("    50/100 · 32 held-out items")
    assert len(check) >= 59  # nothing of the live line is left behind it
    assert text.count("\n") == 2  # after the check, and at the end
