"""What happens between steps: the log, held-out checks, records beside checkpoints, Ctrl-C."""

from __future__ import annotations

import json
import signal
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.training.plan import Plan
from unswayed.training.protocol import Report
from unswayed.training.provenance import checkpoint_folder, write_record

if TYPE_CHECKING:
    _Base: Any  # transformers.TrainerCallback, imported only where it is used
else:
    _Base = object

__all__ = [
    "LOG",
    "RunHooks",
    "catch_interrupt",
    "past_checks",
    "quiet",
    "run_callback",
    "trim_log",
]

LOG: Final = "train.jsonl"


@contextmanager
def catch_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, for a stop after the step; the second interrupts at once.

    Outside the main thread, where Python delivers no signals, this changes nothing.
    """
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: types.FrameType | None) -> None:
        if interrupt.is_set():
            raise KeyboardInterrupt
        interrupt.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and deprecation notes of transformers, which are not the user's."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
            yield
    finally:
        if shown:
            logging.enable_progress_bar()


def trim_log(out: Path, step: int) -> None:
    """Forget log lines after `step`: they belong to a part of a run that is run again."""
    lines = _log_lines(out)
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    if lines:
        (out / LOG).write_text("".join(kept), encoding="utf-8")


def past_checks(out: Path) -> dict[int, Mapping[str, float]]:
    """The held-out figures in a run's log, by step."""
    checks: dict[int, Mapping[str, float]] = {}
    for logged in map(json.loads, _log_lines(out)):
        figures = {key: value for key, value in logged.items() if key.startswith("held_out/")}
        if figures:
            checks[int(logged["step"])] = figures
    return checks


def _log_lines(out: Path) -> list[str]:
    path = out / LOG
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []


@dataclass(eq=False)
class RunHooks(_Base):  # type: ignore[misc]
    """Mixed into `transformers.TrainerCallback`; one per run.

    Attributes:
        plan: What is trained; its record is written beside every checkpoint.
        out: Folder of the run.
        interrupt: Set by Ctrl-C.
        check: Measures the model on the held-out items; None if there are none.
        report: Called with every log line on the main process.
        checked: The held-out figures by step.
    """

    plan: Plan
    out: Path
    interrupt: threading.Event
    check: Callable[[], Mapping[str, float]] | None
    report: Report | None
    checked: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure the untrained model, so that the end has something to be compared with."""
        self.checked |= past_checks(self.out)
        if self.plan.recipe.run.check_every and state.global_step == 0:
            self._measure(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop after Ctrl-C on all processes alike; check the held-out items."""
        if state.global_step % self.plan.stop_every == 0 and self._anyone_interrupted():
            control.should_save = True
            control.should_training_stop = True
        every = self.plan.recipe.run.check_every
        if every and state.global_step % every == 0:
            self._measure(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the held-out items once more, if the last step was not checked."""
        if not self.interrupt.is_set():
            self._measure(state)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Put the record beside the checkpoint, so that another run cannot take it for its own."""
        if state.is_world_process_zero:
            write_record(self.plan.record, checkpoint_folder(self.out, state.global_step))

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Append the metrics to the log file and report them."""
        if logs is not None and "loss" in logs:  # not the summary at the end
            self._write(state, {k: v for k, v in logs.items() if isinstance(v, int | float)})

    def _measure(self, state: Any) -> None:
        if self.check is None or state.global_step in self.checked:
            return
        figures = {f"held_out/{name}": value for name, value in self.check().items()}
        self.checked[state.global_step] = figures
        self._write(state, figures)

    def _write(self, state: Any, metrics: Mapping[str, float]) -> None:
        if not state.is_world_process_zero:
            return
        line = {"step": state.global_step, "steps": state.max_steps, **metrics}
        with (self.out / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self.report is not None:
            self.report(line)

    def _anyone_interrupted(self) -> bool:
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()):
            return self.interrupt.is_set()
        import torch

        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        asked = torch.tensor([int(self.interrupt.is_set())], device=device)
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        if asked.item():
            self.interrupt.set()
        return self.interrupt.is_set()


def run_callback(
    plan: Plan,
    out: Path,
    interrupt: threading.Event,
    check: Callable[[], Mapping[str, float]] | None,
    report: Report | None,
) -> RunHooks:
    """A `RunHooks` that transformers accepts as a callback."""
    from transformers import TrainerCallback

    kind: Any = type("RunCallback", (RunHooks, TrainerCallback), {})
    callback: RunHooks = kind(plan, out, interrupt, check, report)
    return callback
