"""Running the trl engine: train, follow, save, resume."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from unswayed.training import checks
from unswayed.training.data import prompt_settings
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.progress import Step, catch_interrupt, quiet, run_callback, trim_log
from unswayed.training.results import TrainingResult, finish
from unswayed.training.trl_engine import build_trainer

__all__ = ["train_groups"]

CHECK_BATCH: Final = 32
"""Held-out prompts answered at once; without gradients more fit than in training."""


def train_groups(
    plan: Plan,
    out: Path,
    checkpoint: Path | None,
    *,
    report: Callable[[Step], None] | None = None,
) -> TrainingResult:
    """Train as planned; see `unswayed.training.run.train`.

    Args:
        plan: A checked plan of pa-grpo, grpo or rl.
        out: Folder of the run.
        checkpoint: Where to go on from; None for a fresh start.
        report: Called with every log line.
    """
    if plan.settings is None:
        raise ValueError(f"train {plan.kind} has no reward")  # run.train never comes here
    recipe = plan.recipe
    tokenizer = checks.load_tokenizer(str(plan.folder))
    with catch_interrupt() as interrupt, quiet():
        trainer = build_trainer(
            str(plan.folder), tokenizer, plan.groups, recipe, plan.settings, out
        )
        callback = run_callback(
            out=out,
            record=plan.record,
            interrupt=interrupt,
            stop_every=recipe.optimiser.inner_updates,
            check_every=recipe.run.check_every,
            check=_check(trainer, plan) if _can_check(trainer, plan) else None,
            report=report,
        )
        trainer.add_callback(callback)
        resumed_from = None
        if checkpoint is not None:
            resumed_from = int(checkpoint.name.removeprefix("checkpoint-"))
        if trainer.is_world_process_zero():
            trim_log(out, resumed_from or 0)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        if not interrupt.requested:
            trainer.save_model(str(out))
    return finish(
        plan,
        out,
        steps=trainer.state.global_step,
        interrupted=interrupt.requested,
        resumed_from=resumed_from,
        is_main=trainer.is_world_process_zero(),
    )


def _can_check(trainer: Any, plan: Plan) -> bool:
    """Weights sharded by FSDP would have to be gathered whole to answer held-out items."""
    return bool(plan.groups.held_out) and not trainer.is_fsdp_enabled


def _check(trainer: Any, plan: Plan) -> Callable[[], dict[str, float]]:
    return partial(
        measure_held_out,
        trainer,
        plan.groups,
        prompt_settings(plan.recipe.prompt),
        trainer.scorer.read,
        checks.chat_options(plan.recipe),
        batch=max(plan.recipe.run.micro_batch, CHECK_BATCH),
    )
