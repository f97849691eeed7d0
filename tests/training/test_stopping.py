"""A signal stops a step of any length, saves the last whole one, and changes nothing that is learned."""

import functools
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from commands import Command, result_of

from unswayed.training import stopping
from unswayed.training.scoring import GroupScorer

GRACE_S = 30
"""What torchrun gives a process between SIGTERM and SIGKILL."""


# --- one process --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped_and_resumed(trained, tmp_path_factory):
    """Stop a run, let it go on to the result of an undisturbed one, and return the step it stopped at."""

    @functools.cache
    def result_of_whole(**changes):
        out = tmp_path_factory.mktemp("whole")
        trained(out, **changes)
        return result_of(out)

    def check(out, press=None, disturb=None, **changes):
        changes = {"optimiser_steps": "4", **changes}
        expected = result_of_whole(**changes)
        if disturb:
            disturb()
        stopped = trained(out, report=press, **changes)
        assert stopped.interrupted
        finished = trained(out, **changes)
        assert (finished.interrupted, finished.resumed_from) == (False, stopped.steps or None)
        assert result_of(out) == expected
        return stopped.steps

    return check


def at_step(step, number=signal.SIGINT):
    """Sends the signal when a step's log line is reported."""

    def press(line):
        if line["step"] == step:
            os.kill(os.getpid(), number)

    return press


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["SIGINT", "SIGHUP"])
def test_a_signal_while_a_step_is_logged_lets_it_end(stopped_and_resumed, tmp_path, number, capfd):
    assert stopped_and_resumed(tmp_path, press=at_step(2, number)) == 2
    assert "stopping when the step" in capfd.readouterr().err


@pytest.mark.parametrize(("pressed", "saved"), [(1, 2), (2, 2), (3, 4)])
def test_between_updates_of_one_batch_the_last_is_waited_for(
    stopped_and_resumed, tmp_path, pressed, saved
):
    changes = {"optimiser_inner_updates": "2", "lora": "{rank = 4, alpha = 8}"}
    changes["optimiser_steps"] = "6"
    assert stopped_and_resumed(tmp_path, press=at_step(pressed), **changes) == saved


@pytest.mark.parametrize(
    ("step", "saved", "swallowed"), [(1, 0, True), (4, 3, False), (4, 3, True)]
)
def test_a_step_that_is_being_sampled_is_thrown_away(
    stopped_and_resumed, tmp_path, monkeypatch, capfd, step, saved, swallowed
):
    # step 4 is the first of the second epoch
    rewards, calls = GroupScorer.rewards, []

    def pressed(self, gathered):
        calls.append(gathered)
        if len(calls) == 1 + step:  # once for the plan
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                for _ in range(100):
                    time.sleep(0.001)
            except BaseException:
                if not swallowed:
                    raise
        return rewards(self, gathered)

    def disturb():
        monkeypatch.setattr(GroupScorer, "rewards", pressed)

    assert stopped_and_resumed(tmp_path, disturb=disturb) == saved
    said = capfd.readouterr().err
    assert "stopping" in said
    assert (f"saving step {saved}" in said) == bool(saved)


def test_a_second_ctrl_c_leaves_a_half_written_checkpoint(trained, tmp_path, monkeypatch):
    import torch

    save, pressed = torch.save, []

    def press(*arguments, **options):
        save(*arguments, **options)
        if not pressed:
            pressed.append(os.kill(os.getpid(), signal.SIGINT))

    def then_again(line):
        if line["step"] == 2:
            monkeypatch.setattr(torch, "save", press)
            os.kill(os.getpid(), signal.SIGINT)

    changes = {"optimiser_steps": "3", "run_save_every": "1"}
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, report=then_again, **changes)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]
    assert trained(tmp_path, **changes).resumed_from == 1
    assert not (tmp_path / ".writing").exists()


def test_outside_the_main_thread_training_runs_without_signals(trained, tmp_path):
    with ThreadPoolExecutor() as threads:
        assert threads.submit(trained, tmp_path, "grpo").result().steps == 2


# --- the command, as one process and as two -------------------------------------------------------


@pytest.fixture(scope="module")
def command(tmp_path_factory, word_model):
    return Command(tmp_path_factory.mktemp("command"), word_model)


@pytest.fixture(scope="module")
def undisturbed(command):
    """The result of so many processes when nothing happens."""

    def result(processes):
        out = command.folder / f"whole-{processes}"
        command.finished(out, processes=processes)
        return result_of(out)

    return functools.cache(result)


def test_sigterm_in_a_long_step_saves_within_the_grace(command, undisturbed):
    out = command.folder / "cut"
    with command.started(out, slow_at=2) as (child,):
        begun = time.monotonic()
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=GRACE_S)[1]
        took = time.monotonic() - begun
    assert child.returncode == 130, said
    assert took < GRACE_S
    assert "stopping: saving step 2" in said
    assert "interrupted after step 2 of 4; run the same command again to resume" in said
    assert "Traceback" not in said
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-2"]
    command.finished(out)
    assert result_of(out) == undisturbed(1)


@pytest.mark.parametrize("slow_rank", [0, 1])
def test_ctrl_c_to_one_of_two_processes_stops_both(command, undisturbed, slow_rank):
    # the second is told, and one waits in a collective; terminal and launcher both pass a Ctrl-C on
    out = command.folder / f"one-of-two-{slow_rank}"
    with command.started(out, processes=2, slow_at=1, slow_rank=slow_rank, slow_s=2) as children:
        for _ in range(2):
            children[1].send_signal(signal.SIGINT)
            time.sleep(0.2)
        said = [child.communicate(timeout=GRACE_S)[1] for child in children]
    assert [child.returncode for child in children] == [130, 130], said
    assert "interrupted after step 1 of 4; run the same command again to resume" in said[0]
    assert not any("Traceback" in text for text in said)
    record = json.loads((out / "checkpoint-1" / "training.json").read_text())
    assert record["processes"] == 2
    command.finished(out, processes=2)
    assert result_of(out) == undisturbed(2)


@pytest.mark.parametrize(("processes", "waits"), [(1, []), (2, [1.0])])
def test_repeat_of_one_ctrl_c_does_not_wait_behind_a_collective(monkeypatch, processes, waits):
    slept = []
    monkeypatch.setattr(stopping, "process_count", lambda: processes)
    monkeypatch.setattr(stopping.time, "sleep", slept.append)
    hooks = object.__new__(stopping.StopHooks)
    hooks.boundary, hooks.settled = None, False
    hooks.interrupted()
    assert slept == waits
