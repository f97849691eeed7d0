"""Work between steps: log, warnings, held-out checks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import LogRecord
from typing import Any

from unswayed.base.errors import UsageError, first_line
from unswayed.training.alarms import Alarms, steps_before_alarm
from unswayed.training.plan import Plan
from unswayed.training.processes import any_process, everyone, is_main
from unswayed.training.protocol import AnswerError, Report
from unswayed.training.run_folder import RunFolder


class TrainingWarning(UserWarning):
    """Warning about a run that goes on."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and notes of transformers that are not the user's.

    Such as its note on resuming that a checkpoint lacks an output layer that is tied to the
    embeddings: whether a checkpoint is whole was checked before (`checkpoints.py`).
    """
    import logging as stock

    from transformers.utils import logging as untyped

    logging: Any = untyped
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    trainer = stock.getLogger("transformers.trainer")
    trainer.addFilter(_tells_the_user)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
            yield
    finally:
        trainer.removeFilter(_tells_the_user)
        if shown:
            logging.enable_progress_bar()


def _tells_the_user(record: LogRecord) -> bool:
    return not record.getMessage().startswith("There were missing keys in the checkpoint model")


@dataclass(eq=False)
class RunHooks:
    """Mixed into `transformers.TrainerCallback` by the engine; one per run."""

    plan: Plan  # what is trained
    folder: RunFolder  # of the run
    # measures the model on the held-out items; None if there are none
    check: Callable[[], Mapping[str, float]] | None
    # logs figures as the trainer logs its own: here, in TensorBoard and wherever else
    publish: Callable[[dict[str, float]], None]
    report: Report | None  # called with every log line on the main process
    # the held-out figures by step; empty where the check failed
    checked: dict[int, Mapping[str, float]] = field(default_factory=dict)
    alarms: Alarms = field(init=False)  # what has been said of steps in which nothing is learned

    def __post_init__(self) -> None:
        self.alarms = Alarms(steps_before_alarm(self.plan.recipe.optimiser.items_per_step))
        self.checked |= everyone(self.folder.held_out())[0]  # only one machine may have the log

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the held-out items, if the step before was not saved and checked then.

        Before the first step the untrained model, so that the end has something to be compared with,
        or a resumed one whose run ended between a checkpoint and its check.
        """
        self._measure_if_due(state)

    on_train_begin = on_step_begin

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the held-out items: what goes wrong there costs no step.

        The end is checked after the result is saved (`measure`).
        """
        if not control.should_training_stop:
            self._measure_if_due(state)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Append the metrics of a step or a check to the log file and report them.

        A loss or gradient that is no number any more ends the run, with a `UsageError` on all processes.
        """
        if logs is None or "train_loss" in logs:
            return  # the summary at the end is no step
        for name in ("loss", "grad_norm"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise _diverged(state, f"{name} is {logs[name]}")
        if not is_main():
            return
        metrics = {key: value for key, value in logs.items() if isinstance(value, int | float)}
        line = {**_place(state), **metrics}
        self.folder.append(line)
        if self.report is not None:
            self.report(line)
        if alarm := self.alarms.of(metrics):
            self._warn(state, f"step {state.global_step}: {alarm}")

    def measure(self, state: Any) -> None:
        """Check the held-out items, once a step. A check that fails costs its figures, no more."""
        if self.check is None or state.global_step in self.checked:
            return
        self.checked[state.global_step] = {}
        try:
            figures = dict(self.check())
        except Exception as error:  # on all processes alike, whatever it is
            kind = "" if isinstance(error, AnswerError) else f"{type(error).__name__}: "
            self._warn(
                state,
                f"the held-out check after step {state.global_step} failed, its figures are missing "
                f"and the training goes on: {kind}{first_line(error).rstrip('.')}. Where memory ran out, lower "
                "prompt.max_response_tokens or data.held_out, or set run.check_every = 0.",
            )
            return
        self.checked[state.global_step] = figures
        self.publish(figures)

    def _measure_if_due(self, state: Any) -> None:
        every = self.plan.recipe.run.check_every
        if every and state.global_step % every == 0:
            self.measure(state)

    def _warn(self, state: Any, text: str) -> None:
        if is_main():
            self.folder.append({**_place(state), "warning": text})
            warnings.warn(TrainingWarning(text), stacklevel=2)


def check_weights(trainer: Any) -> None:
    """Check that the trained weights are numbers: nobody has computed with those of the last step."""
    import torch
    from torch.distributed.tensor import DTensor

    trained = (weight.detach() for weight in trainer.model.parameters() if weight.requires_grad)
    own = (weight.to_local() if isinstance(weight, DTensor) else weight for weight in trained)
    if any_process(not all(bool(torch.isfinite(weight).all()) for weight in own)):
        raise _diverged(trainer.state, "a weight is not a finite number")


def _diverged(state: Any, what: str) -> UsageError:
    return UsageError(
        f"step {state.global_step} of {state.max_steps}: {what}, so there is no model to save. Lower "
        "optimiser.learning_rate or the weights in the recipe (target, reward, optimiser) and choose "
        "another --out; if it is the first step, check with unswayed audit whether the model answers at all."
    )


def _place(state: Any) -> dict[str, float]:
    return {"step": state.global_step, "steps": state.max_steps}
