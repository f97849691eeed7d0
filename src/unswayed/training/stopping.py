"""Stopping at once: a signal throws the step away that is being made, and saves the last whole one.

Between two optimiser steps weights, optimiser and schedule stay as they are, however long sampling
takes. So the other state of a step (random numbers, tokens seen) is kept where it begins, and a
checkpoint of that moment can be written at any time before the next update: a resumed run then
equals one that was never stopped. During the update, and while log and checkpoint are written, a
stop waits for the end of the step; with several updates to a batch of responses, for the last.

In a single process, the signal's handler raises out of the step. Several processes agree between
two backward passes and save together, so a stop waits for the end of sampling.
"""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from unswayed.calls.interrupts import SIGNALS, catch_interrupt
from unswayed.training.checkpoints import rng_file
from unswayed.training.plan import Plan
from unswayed.training.processes import any_process, is_main, process_count
from unswayed.training.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class Boundary:
    """The moment between two steps that a run can be resumed at."""

    step: int  # optimiser steps done
    random: dict[str, Any]  # state of this process's random numbers, as transformers keeps it
    # tokens, flos: what transformers counts as it goes
    tokens: float
    flos: float


def random_states() -> dict[str, Any]:
    """Return this process's random numbers, in the form in which transformers keeps them."""
    import numpy as np
    import torch

    states = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # the state that others draw from
        "cpu": torch.random.get_rng_state(),
    }
    if torch.cuda.is_available():
        cuda = torch.cuda.random
        states["cuda"] = cuda.get_rng_state_all() if process_count() > 1 else cuda.get_rng_state()
    return states


SAME_SIGNAL_S: Final = 1.0
"""A terminal and a launcher both pass one Ctrl-C on."""


class Stopped(BaseException):
    """Raised out of a step that is thrown away; nothing that handles errors may take it for one."""


class NothingLeft(BaseException):
    """Raised where training would begin, if the checkpoint is of the last step already."""


@dataclass(eq=False)
class StopHooks:
    """Mixed into `transformers.TrainerCallback` by the engine; one per run, in front of the others."""

    plan: Plan
    folder: RunFolder  # of the run
    trainer: Any  # of transformers, which writes checkpoints
    saved: int  # step of the newest checkpoint; 0 where there is none, and nothing to save
    interrupt: threading.Event = field(default_factory=threading.Event)  # set by a signal
    boundary: Boundary | None = None  # the last moment to resume at; None before training begins
    settled: bool = False  # whether the weights are those of `boundary`
    since: float = math.inf  # when the first signal came
    _random: dict[str, Any] = field(default_factory=dict)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Allow a stop from here on."""
        self._settle(state)
        if state.global_step >= state.max_steps:
            raise NothingLeft

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that the step before is whole: logged, saved, checked."""
        self._settle(state)

    on_epoch_end = on_train_end = on_step_begin

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Another backward pass has been made."""
        self._stop_if_asked()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that the weights are about to change."""
        self._stop_if_asked()
        self.settled = False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that the weights have changed; before the next step random numbers may be drawn."""
        if state.global_step % self.plan.stop_every == 0:
            self._random = random_states()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Give the checkpoint its name once every process has written its part."""
        self._name_checkpoint(state.global_step)
        self._settle(state)  # a check of held-out items may follow, and may be left

    def _name_checkpoint(self, step: int) -> None:
        """Put the record beside a checkpoint that all have written, and make it the newest one."""
        self.trainer.accelerator.wait_for_everyone()
        if is_main():
            self.folder.keep_checkpoint(step, self.plan.record, self.plan.recipe.run.keep)
        self.saved = step

    def over(self) -> None:
        """No step is left; what follows is not interrupted."""
        self.settled = False

    def interrupted(self) -> None:
        """Leave the step from within a signal's handler, if that is safe."""
        self.since = time.monotonic()
        self._tell()
        if (
            process_count() > 1
        ):  # a repeat would wait behind a collective, and look like a second Ctrl-C
            time.sleep(SAME_SIGNAL_S)
        if self.settled and process_count() == 1:
            raise Stopped

    def interrupted_again(self) -> None:
        """Leave at once, unless several processes got one Ctrl-C twice."""
        if process_count() == 1 or time.monotonic() - self.since > SAME_SIGNAL_S:
            raise KeyboardInterrupt

    def _tell(self) -> None:
        """Say at once that a signal has come."""
        boundary = self.boundary
        if boundary is None:
            text = "stopping before the first step"
        elif not self.settled:
            text = f"stopping when the step after {boundary.step} is done"
        elif boundary.step == self.saved:
            text = f"stopping at step {self.saved}, which is saved" if self.saved else "stopping"
        else:
            text = f"stopping: saving step {boundary.step}"
        if is_main():
            os.write(2, f"\n{text}; Ctrl-C again leaves at once.\n".encode())

    def save(self) -> int:
        """Write the checkpoint of the last boundary, if there is none; returns its step.

        All processes take part.
        """
        boundary = self.boundary
        if boundary is not None and boundary.step != self.saved:
            self._write(boundary)
            self._name_checkpoint(boundary.step)
        return self.saved

    def _write(self, boundary: Boundary) -> None:
        """Write this process's part of a checkpoint, aside."""
        import torch

        trainer = self.trainer
        trainer.state.num_input_tokens_seen = boundary.tokens
        trainer.current_flos = boundary.flos
        trainer._save_checkpoint(trainer.model_wrapped, trial=None)
        aside = self.folder.aside / self.folder.checkpoint(boundary.step).name
        torch.save(boundary.random, aside / rng_file(trainer.args.process_index, process_count()))

    def _settle(self, state: Any) -> None:
        if state.global_step % self.plan.stop_every == 0:
            if self.boundary is None or self.boundary.step != state.global_step:
                self.boundary = Boundary(
                    step=state.global_step,
                    random=self._random,
                    tokens=state.num_input_tokens_seen,
                    flos=self.trainer.current_flos,
                )
            self.settled = True
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        """Stop where the handler could not, or what it raised was lost."""
        if self.settled and any_process(self.interrupt.is_set()):
            raise Stopped


@contextmanager
def stoppable(hooks: StopHooks) -> Iterator[None]:
    """Signals stop the training in the block: the first raises `Stopped`, a second Ctrl-C leaves at once."""
    with catch_interrupt(
        first=hooks.interrupted,
        again=hooks.interrupted_again,
        signals=SIGNALS,
        insistent=(signal.SIGINT,),
    ) as hooks.interrupt:
        yield
