"""The trl engine: one body for every trainer of transformers and trl. Train, follow, save, resume."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unswayed.training import checks
from unswayed.training.checkpoints import checkpoint_defect
from unswayed.training.devices import check_device
from unswayed.training.fsdp2 import save_whole, settle_sharding
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.processes import Sharding, everyone, sharding_of
from unswayed.training.progress import RunHooks, check_weights, quiet
from unswayed.training.protocol import Objective, Report, Stop
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rollout_checks import check_parallel, check_rollout
from unswayed.training.run_folder import RunFolder
from unswayed.training.sampling import Split, split_step
from unswayed.training.stopping import NothingLeft, StopHooks, Stopped, stoppable
from unswayed.training.table import OBJECTIVES
from unswayed.training.trl_answers import answers_of


@dataclass(frozen=True, slots=True)
class TrlEngine:
    """Runs the trainer that an objective builds."""

    def check(self, recipe: Recipe, settings: RewardSettings | None, objective: Objective) -> None:
        """Check trl with the hooks that are overridden, loggers, GPUs and sampling."""
        checks.check_trl()
        checks.check_loggers(recipe.run.loggers)
        check_device(recipe, os.environ)
        if objective.sampled:
            check_rollout(recipe)

    def sharding(self, recipe: Recipe, environment: Mapping[str, str]) -> Sharding:
        """Return the sharding that accelerate announces; see `protocol.Engine`."""
        return sharding_of(environment)

    def checkpoint_defect(self, folder: Path, step: int) -> str | None:
        """Return the defect of a checkpoint of transformers; see `protocol.Engine`."""
        return checkpoint_defect(folder, step)

    def split(self, recipe: Recipe, n_presentations: int, world: int) -> Split:
        """Divide a step's responses into equal micro batches; see `protocol.Engine`."""
        check_parallel(recipe.rollout, world)
        return split_step(recipe, n_presentations, world)

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train as planned and save the result; see `protocol.Engine`."""
        from transformers import PrinterCallback, Trainer, TrainerCallback

        with quiet():
            trainer = OBJECTIVES.load(plan.objective).build(plan, folder.path)
            settle_sharding(trainer)
            trainer._get_output_dir = lambda trial: str(folder.aside)  # where it puts checkpoints
            answer = partial(answers_of, trainer, plan)
            check = partial(measure_held_out, plan, answer) if plan.groups.held_out else None
            publish = partial(Trainer.log, trainer)  # trl's own would empty the step's figures
            stopping, following = (
                type(f"Run{kind.__name__}", (kind, TrainerCallback), {})
                for kind in (StopHooks, RunHooks)
            )
            stop: Any = stopping(plan, folder, trainer, saved=resume or 0)
            trainer.add_callback(stop)
            hooks: Any = following(plan, folder, check, publish, report)
            trainer.add_callback(hooks)
            trainer.remove_callback(PrinterCallback)
            checkpoint = None if resume is None else str(folder.checkpoint(resume))
            with stoppable(stop):
                try:
                    train(trainer, checkpoint)
                    stop.over()
                except Stopped:
                    return Stop(stop.save(), interrupted=True)
            check_weights(trainer)
            save_whole(trainer, str(folder.path))
            hooks.measure(trainer.state)
            everyone(None)  # all read the log that one has written
        return Stop(trainer.state.global_step, interrupted=False)


def train(trainer: Any, checkpoint: str | None) -> None:
    """Train to the last step; a checkpoint of that step is only loaded."""
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    except NothingLeft:
        trainer.callback_handler.on_train_end(trainer.args, trainer.state, trainer.control)


TRL = TrlEngine()
