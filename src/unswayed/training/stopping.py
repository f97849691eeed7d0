"""Stopping at once: a signal throws the step away that is being made, and saves the last whole one.

Between two optimiser steps weights, optimiser and schedule stay as they are, however long sampling
takes. So the other state of a step (random numbers, tokens seen) is kept where it begins, and a
checkpoint of that moment can be written at any time before the next update: a resumed run then
equals one that was never stopped. During the update, and while log and checkpoint are written, a
stop waits for the end of the step; with several updates to a batch of responses, for the last.

How the step is left depends on who else takes part in it:

- One process: the signal's handler raises out of it.
- Several with shares of the weights: all agree between two backward passes, and save together.
- Several with whole weights each: a process that waits in a collective for one that has left would
  wait for ever, and runs no handler of Python. So a thread hears the signal, and another writes the
  checkpoint and ends the process, while the main threads go on with a step that nobody will see.

In the last case, the main threads never update the weights. Before each update all processes meet
at a gate; one that is stopping refuses it, and then none passes, so all are at the step after which
somebody refused. A process that waits at the gate cannot be asked: its thread reads from the
processes' key-value store that the gate is refused, and takes the step before it, too.

The first process writes the checkpoint, every process its own random numbers, and when all are
written it takes its name. A process that got no signal of its own reads that others stop.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from unswayed.calls.interrupts import INTERRUPTED, SIGNALS, catch_interrupt, signal_stream
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
    written: Any  # on a GPU, the event after which the weights are those of the step

    @classmethod
    def of(cls, trainer: Any, random: dict[str, Any]) -> Boundary:
        """Return the moment that a trainer is at, with the random numbers that the next step begins with."""
        import torch

        on_gpu = torch.cuda.is_available()
        return cls(
            step=trainer.state.global_step,
            random=random,
            tokens=trainer.state.num_input_tokens_seen,
            flos=trainer.current_flos,
            written=torch.cuda.current_stream().record_event() if on_gpu else None,
        )


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


POLL_S: Final = 0.05
HEARD_S: Final = 0.5
"""How often a process without a signal looks whether another one has got it."""
SAME_SIGNAL_S: Final = 1.0
"""A terminal and a launcher both pass one Ctrl-C on."""
OTHERS_S: Final = 25.0  # for the others' parts; launchers kill after 30 s


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
    joint: JointStop | None = None  # where several processes have whole weights each
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
        if self.joint is None:
            self.settled = False
        else:
            self.joint.pass_gate()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that the weights have changed; before the next step random numbers may be drawn."""
        if state.global_step % self.plan.stop_every == 0:
            self._random = random_states()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Give the checkpoint its name once every process has written its part."""
        if process_count() > 1:
            self.trainer.accelerator.wait_for_everyone()
        self.name_checkpoint(state.global_step)
        self._settle(state)  # a check of held-out items may follow, and may be left

    def name_checkpoint(self, step: int) -> None:
        """Put the record beside a checkpoint that was written, and make it the newest one."""
        if is_main():
            self.folder.keep_checkpoint(step, self.plan.record, self.plan.recipe.run.keep)
        self.saved = step

    def over(self) -> None:
        """No step is left; what follows is not interrupted."""
        if self.joint is None:
            self.settled = False
        else:
            self.joint.close()

    def interrupted(self) -> None:
        """Leave the step from within a signal's handler, if that is safe."""
        self.tell()
        if self.settled and not self._shares_weights:
            raise Stopped

    def tell(self) -> None:
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
        _say(f"\n{text}; Ctrl-C again leaves at once.")

    def save(self) -> int:
        """Write the checkpoint of the last boundary, if there is none; returns its step.

        Of several processes with shares of the weights every one takes part.
        """
        boundary = self.boundary
        if boundary is not None and boundary.step != self.saved:
            self.write(boundary)
            if process_count() > 1:
                self.trainer.accelerator.wait_for_everyone()
            self.name_checkpoint(boundary.step)
        return self.saved

    def write(self, boundary: Boundary) -> None:
        """Write this process's part of a checkpoint, aside; only shares of weights are gathered."""
        import torch

        trainer, several = self.trainer, process_count()
        if is_main() or self._shares_weights:
            trainer.state.num_input_tokens_seen = boundary.tokens
            trainer.current_flos = boundary.flos
            if self.joint is not None:
                trainer.store_flos = lambda: None  # it would wait for the other processes
            trainer._save_checkpoint(trainer.model_wrapped, trial=None)
        aside = self.folder.aside / self.folder.checkpoint(boundary.step).name
        aside.mkdir(parents=True, exist_ok=True)
        torch.save(boundary.random, aside / rng_file(trainer.args.process_index, several))

    def _settle(self, state: Any) -> None:
        if state.global_step % self.plan.stop_every == 0:
            boundary = self.boundary
            if boundary is None or boundary.step != state.global_step:
                boundary = Boundary.of(self.trainer, self._random)
            if self.joint is None:
                self.boundary, self.settled = boundary, True
            else:
                self.joint.settle(boundary)
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        """Stop where the handler could not, or what it raised was lost."""
        if self.joint is None and self.settled:
            asked = self.interrupt.is_set()
            if any_process(asked) if self._shares_weights else asked:
                raise Stopped

    @property
    def _shares_weights(self) -> bool:
        return bool(self.trainer.is_fsdp_enabled or self.trainer.is_deepspeed_enabled)


class JointStop:
    """The gate before each update, and the threads that stop at it."""

    def __init__(self, training: StopHooks) -> None:
        import torch.distributed as dist
        from torch.distributed import distributed_c10d

        untyped: Any = distributed_c10d
        self.training = training
        self.store = untyped.PrefixStore("unswayed-stop", untyped._get_default_store())
        self.rank, self.processes = dist.get_rank(), dist.get_world_size()
        self.taken = self.at_gate = False
        self.since: float | None = None
        self._lock = threading.Lock()
        self.over = threading.Event()  # set when there is no more to hear

    def settle(self, boundary: Boundary) -> None:
        """Note that the weights are those of a boundary until the next gate is passed."""
        with self._lock:
            self.training.boundary, self.training.settled = boundary, True

    def pass_gate(self) -> None:
        """Go on to an update if every process does; where one refuses, this does not return."""
        with self._lock:
            refused = self.taken
            self.at_gate = self.training.settled and not refused
            self.training.settled = refused
        if any_process(refused):
            self.park()
        with self._lock:
            self.at_gate = False

    def close(self) -> None:
        """No step is left: a stop that has been taken is waited for, another comes too late."""
        with self._lock:
            self.training.settled = False
            taken = self.taken
        if taken:
            self.park()

    def park(self) -> None:
        """Wait for the process to end."""
        while True:
            time.sleep(HEARD_S)

    def listen(self, next_signal: Callable[[float], int | None]) -> None:
        """Hear signals and other processes until it is over; the body of a thread."""
        while not self.over.is_set():
            number = next_signal(HEARD_S)
            if self.since is None:
                if number is not None or self._said("stop"):
                    self.since = time.monotonic()
                    self.store.set("stop", "")
                    self.training.tell()
                    threading.Thread(target=self._stop, daemon=True).start()
            elif number == signal.SIGINT and time.monotonic() - self.since > SAME_SIGNAL_S:
                os._exit(INTERRUPTED)

    def _stop(self) -> None:
        code = 1
        try:
            boundary = self._take()
            if boundary is not None and boundary.step != self.training.saved:
                self._write(boundary)
            self.store.set(f"written/{self.rank}", "")
            self._finish(boundary)
            code = INTERRUPTED
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _take(self) -> Boundary | None:
        """Return the boundary that all processes stop at; from here on none passes the gate after it."""
        while True:
            with self._lock:
                boundary, waits = self.training.boundary, self.at_gate
                self.taken = boundary is None or self.training.settled
            if boundary is None:
                return None
            if self.taken or (waits and self._said(f"refused/{boundary.step}")):
                self.store.set(f"refused/{boundary.step}", "")
                return boundary
            time.sleep(POLL_S)

    def _write(self, boundary: Boundary) -> None:
        """Write on a stream of its own: the main thread's may wait for a process that has left."""
        import torch

        if not torch.cuda.is_available():
            self.training.write(boundary)
            return
        torch.cuda.set_device(self.training.trainer.args.device)
        untyped: Any = torch.cuda
        stream = untyped.Stream()
        stream.wait_event(boundary.written)
        with torch.cuda.stream(stream):
            self.training.write(boundary)
            stream.synchronize()

    def _finish(self, boundary: Boundary | None) -> None:
        """Let the first process wait for the others' parts, and the others for the checkpoint's name."""
        if self.rank:
            self._wait(["named"])
            return
        missing = self._wait([f"written/{rank}" for rank in range(self.processes)])
        if missing:
            raise TimeoutError(f"not written in time: {', '.join(missing)}")
        if boundary is not None and boundary.step != self.training.saved:
            self.training.name_checkpoint(boundary.step)
        _say(self.training.plan.interrupted_after(self.training.saved))
        self.store.set("named", "")

    def _wait(self, keys: list[str]) -> list[str]:
        """Wait until the store has the keys; returns those that it has not in time."""
        until = time.monotonic() + OTHERS_S
        while (missing := [key for key in keys if not self._said(key)]) and (
            time.monotonic() < until
        ):
            time.sleep(POLL_S)
        return missing

    def _said(self, key: str) -> bool:
        """Return True if the store has a key; if the process that keeps it has left, everything is said."""
        try:
            return bool(self.store.check([key]))
        except RuntimeError:
            return key == "named"


@contextmanager
def stoppable(hooks: StopHooks) -> Iterator[None]:
    """Signals stop the training in the block.

    The first Ctrl-C or SIGTERM raises `Stopped`, or, where several processes have whole weights
    each, saves and ends the process with exit code 130. The second Ctrl-C leaves at once.
    """
    if process_count() == 1 or hooks._shares_weights:
        with catch_interrupt(
            first=hooks.interrupted, signals=SIGNALS, insistent=(signal.SIGINT,)
        ) as hooks.interrupt:
            yield
        return
    hooks.joint = joint = JointStop(hooks)
    with signal_stream() as next_signal:
        listener = threading.Thread(target=joint.listen, args=(next_signal,), daemon=True)
        listener.start()
        try:
            yield
        except BaseException:
            if joint.since is not None:  # another process has left while this one waited for it
                joint.park()
            raise
        finally:
            joint.over.set()
            listener.join()


def _say(text: str) -> None:
    """Print a line of the first process on stderr, also from within a signal's handler."""
    if is_main():
        os.write(2, f"{text}\n".encode())
