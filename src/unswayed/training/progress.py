"""What happens between steps: the log and held-out checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unswayed.training.plan import Plan
from unswayed.training.protocol import Report
from unswayed.training.run_folder import RunFolder

if TYPE_CHECKING:
    _Base: Any  # transformers.TrainerCallback, imported only where it is used
else:
    _Base = object

__all__ = ["RunHooks", "quiet"]


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


@dataclass(eq=False)
class RunHooks(_Base):  # type: ignore[misc]
    """Mixed into `transformers.TrainerCallback` by the engine; one per run.

    Attributes:
        plan: What is trained.
        folder: Of the run.
        check: Measures the model on the held-out items; None if there are none.
        report: Called with every log line on the main process.
        checked: The held-out figures by step.
    """

    plan: Plan
    folder: RunFolder
    check: Callable[[], Mapping[str, float]] | None
    report: Report | None
    checked: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure the untrained model, so that the end has something to be compared with."""
        self.checked |= self.folder.held_out()
        if self.plan.recipe.run.check_every and state.global_step == 0:
            self._measure(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the held-out items."""
        every = self.plan.recipe.run.check_every
        if every and state.global_step % every == 0:
            self._measure(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the held-out items once more, if the last step was not checked."""
        self._measure(state)

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
        self.folder.append(line)
        if self.report is not None:
            self.report(line)
