"""The trl engine: one body for every trainer of transformers and trl. Train, follow, save, resume."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unswayed.training import checks
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.progress import RunHooks, quiet
from unswayed.training.protocol import Report, Stop
from unswayed.training.run_folder import RunFolder
from unswayed.training.stopping import NothingLeft, StopHooks, Stopped, stoppable
from unswayed.training.table import OBJECTIVES

__all__ = ["TRL", "TrlEngine"]


@dataclass(frozen=True, slots=True)
class TrlEngine:
    """Runs the trainer that an objective builds."""

    def check(self) -> None:
        """Check that trl is installed, of a known version, with the hooks that are overridden."""
        checks.check_trl()

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train as planned and save the result; see `protocol.Engine`."""
        from transformers import PrinterCallback, TrainerCallback

        with quiet():
            trainer = OBJECTIVES.load(plan.objective).build(plan, folder.path)
            trainer._get_output_dir = lambda trial: str(folder.aside)  # where it puts checkpoints
            # Weights sharded by FSDP would have to be gathered whole to answer held-out items.
            checked = bool(plan.groups.held_out) and not trainer.is_fsdp_enabled
            check = partial(measure_held_out, trainer, plan) if checked else None
            stopping, following = (
                type(f"Run{hooks.__name__}", (hooks, TrainerCallback), {})
                for hooks in (StopHooks, RunHooks)
            )
            stop: Any = stopping(plan, folder, trainer, saved=resume or 0)
            trainer.add_callback(stop)
            trainer.add_callback(following(plan, folder, check, report))
            trainer.remove_callback(PrinterCallback)
            checkpoint = None if resume is None else str(folder.checkpoint(resume))
            with stoppable(stop):
                try:
                    train(trainer, checkpoint)
                    stop.over()
                except Stopped:
                    return Stop(stop.save(), interrupted=True)
            trainer.save_model(str(folder.path))
        return Stop(trainer.state.global_step, interrupted=False)


def train(trainer: Any, checkpoint: str | None) -> None:
    """Train to the last step; a checkpoint of that step is only loaded."""
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    except NothingLeft:
        trainer.callback_handler.on_train_end(trainer.args, trainer.state, trainer.control)


TRL = TrlEngine()
