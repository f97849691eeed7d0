"""Stopping several processes that have whole weights each: at one step, without their main threads.

A process that waits in a collective for one that has left would wait for ever, and runs no handler
of Python. So a thread hears the signal, and another writes the checkpoint and ends the process,
while the main threads go on with a step that nobody will see. They never update the weights:

- Before each update all processes meet at a gate. One that is stopping refuses it, and then none
  passes. So all of them are at the same step: the one after which somebody refused.
- A process that waits at the gate cannot be asked. Its thread reads from the processes' key-value
  store that the gate is refused, and takes the step before it, too.

The first process writes the checkpoint, every process its own random numbers, and when all are
written it takes its name. A process that got no signal of its own reads that others stop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, Protocol

from unswayed.runner.interrupts import INTERRUPTED
from unswayed.training.boundary import Boundary
from unswayed.training.processes import any_process

POLL_S: Final = 0.05
HEARD_S: Final = 0.5
"""How often a process without a signal looks whether another one has got it."""
SAME_SIGNAL_S: Final = 1.0
"""A terminal and a launcher both pass one Ctrl-C on."""
OTHERS_S: Final = 25.0
"""How long the first process waits for the others' parts; launchers kill after 30 s."""


class Stoppable(Protocol):
    """What is stopped: the training of one process.

    Attributes:
        trainer: Of transformers.
        boundary: The last moment that the run can be resumed at; None before training begins.
        settled: Whether the weights are those of `boundary`.
        saved: Step of the newest checkpoint.
    """

    trainer: Any
    boundary: Boundary | None
    settled: bool
    saved: int

    def write(self, boundary: Boundary) -> None:
        """Write this process's part of a checkpoint."""
        ...

    def name_checkpoint(self, step: int) -> None:
        """Make a checkpoint that was written the newest one."""
        ...

    def tell(self) -> None:
        """Say that a signal has come."""
        ...

    def tell_stopped(self) -> None:
        """Say where the run stopped."""
        ...


class JointStop:
    """The gate before each update, and the threads that stop at it.

    Args:
        training: Of this process; `boundary` and `settled` are read and set under a lock.
    """

    def __init__(self, training: Stoppable) -> None:
        import torch.distributed as dist
        from torch.distributed import distributed_c10d

        untyped: Any = distributed_c10d
        self.training = training
        self.store = untyped.PrefixStore("unswayed-stop", untyped._get_default_store())
        self.rank, self.processes = dist.get_rank(), dist.get_world_size()
        self.taken = self.at_gate = False
        self.since: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def settle(self, boundary: Boundary) -> None:
        """The weights are those of a boundary until the next gate is passed."""
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
        """Hear signals and other processes until `leave`; the body of a thread."""
        while not self._over.is_set():
            number = next_signal(HEARD_S)
            if self.since is None:
                if number is not None or self._said("stop"):
                    self.since = time.monotonic()
                    self.store.set("stop", "")
                    self.training.tell()
                    threading.Thread(target=self._stop, daemon=True).start()
            elif number == signal.SIGINT and time.monotonic() - self.since > SAME_SIGNAL_S:
                os._exit(INTERRUPTED)

    def leave(self) -> None:
        """Hear no more."""
        self._over.set()

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
        """The boundary that all processes stop at; from here on none passes the gate after it."""
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
        """The first process waits for the others' parts, the others for the checkpoint's name."""
        if self.rank:
            self._wait(["named"])
            return
        missing = self._wait([f"written/{rank}" for rank in range(self.processes)])
        if missing:
            raise TimeoutError(f"not written in time: {', '.join(missing)}")
        if boundary is not None and boundary.step != self.training.saved:
            self.training.name_checkpoint(boundary.step)
        self.training.tell_stopped()
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
        """Whether the store has a key; if the process that keeps it has left, everything is said."""
        try:
            return bool(self.store.check([key]))
        except RuntimeError:
            return key == "named"
