"""The trl engine: one body for every trainer of transformers and trl. Train, follow, save, resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from unswayed.reward_settings import RewardSettings
from unswayed.runner.interrupts import catch_interrupt
from unswayed.training import checks
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.processes import everyone
from unswayed.training.progress import RunHooks, quiet
from unswayed.training.protocol import Report, Stop
from unswayed.training.recipe_parts import Recipe
from unswayed.training.run_folder import RunFolder
from unswayed.training.sampling import Split, split_step
from unswayed.training.table import OBJECTIVES
from unswayed.training.trl_answers import answers_of

__all__ = ["TRL", "TrlEngine"]


@dataclass(frozen=True, slots=True)
class TrlEngine:
    """Runs the trainer that an objective builds."""

    def check(self, recipe: Recipe, settings: RewardSettings | None) -> None:
        """Check that trl is installed, of a known version, with the hooks that are overridden."""
        checks.check_trl()

    def split(self, recipe: Recipe, n_presentations: int, world: int) -> Split:
        """Divide a step's responses into equal micro batches; see `protocol.Engine`."""
        return split_step(recipe, n_presentations, world)

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train as planned and save the result; see `protocol.Engine`."""
        from transformers import PrinterCallback, Trainer, TrainerCallback

        with catch_interrupt() as interrupt, quiet():
            trainer = OBJECTIVES.load(plan.objective).build(plan, folder.path)
            answer = partial(self.answer, trainer, plan, greedy=True)
            check = partial(measure_held_out, plan, answer) if plan.groups.held_out else None
            publish = partial(Trainer.log, trainer)  # trl's own would empty the step's figures
            kind: Any = type("RunCallback", (RunHooks, TrainerCallback), {})
            hooks = kind(plan, folder, interrupt, check, publish, report)
            trainer.add_callback(hooks)
            trainer.remove_callback(PrinterCallback)
            is_main = bool(trainer.is_world_process_zero())
            if is_main:
                folder.trim_log(resume or 0)
            checkpoint = None if resume is None else str(folder.checkpoint(resume))
            trainer.train(resume_from_checkpoint=checkpoint)
            if not interrupt.is_set():
                trainer.save_model(str(folder.path))
                hooks.measure(trainer.state)
            everyone(None)  # all read the log that one has written
        return Stop(trainer.state.global_step, interrupt.is_set(), is_main)

    def answer(
        self, training: Any, plan: Plan, prompts: Sequence[Sequence[int]], *, greedy: bool
    ) -> list[str]:
        """Answers of the trainer's model, by transformers or vLLM; see `protocol.Engine`."""
        return answers_of(training, plan, prompts, greedy=greedy)


TRL = TrlEngine()
