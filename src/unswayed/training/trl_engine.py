"""The trl engine: one body for every trainer of transformers and trl. Train, follow, save, resume."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unswayed.runner.interrupts import catch_interrupt
from unswayed.training import checks
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.progress import RunHooks, quiet
from unswayed.training.protocol import Report, Stop
from unswayed.training.run_folder import RunFolder
from unswayed.training.sharding import save_whole, settle_sharding
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

        with catch_interrupt() as interrupt, quiet():
            trainer = OBJECTIVES.load(plan.objective).build(plan, folder.path)
            settle_sharding(trainer)
            # Weights sharded by FSDP would have to be gathered whole to answer held-out items.
            checked = bool(plan.groups.held_out) and not trainer.is_fsdp_enabled
            check = partial(measure_held_out, trainer, plan) if checked else None
            hooks: Any = type("RunCallback", (RunHooks, TrainerCallback), {})
            trainer.add_callback(hooks(plan, folder, interrupt, check, report))
            trainer.remove_callback(PrinterCallback)
            is_main = bool(trainer.is_world_process_zero())
            if is_main:
                folder.trim_log(resume or 0)
            checkpoint = None if resume is None else str(folder.checkpoint(resume))
            trainer.train(resume_from_checkpoint=checkpoint)
            if not interrupt.is_set():
                save_whole(trainer, str(folder.path))
        return Stop(trainer.state.global_step, interrupt.is_set(), is_main)


TRL = TrlEngine()
