"""What training leaves behind: the folder's card, and the figures before and after."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unswayed.backends.model_folders import TEMPLATE_FILE
from unswayed.errors import RunDirectoryError
from unswayed.training.data import Counts
from unswayed.training.plan import Plan
from unswayed.training.progress import past_checks
from unswayed.training.protocol import Stop
from unswayed.training.provenance import (
    RECORD,
    check_same_run,
    last_checkpoint,
    model_card,
    read_record,
    write_record,
)
from unswayed.training.table import OBJECTIVES

__all__ = ["TrainingResult", "finish", "finished_result"]


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What training left behind.

    Attributes:
        out: Folder of the adapter or model, its card, the log and the checkpoints.
        model_name: Name under which the rest of the program opens it.
        steps: Optimiser steps done.
        interrupted: Stopped by Ctrl-C; the same command goes on from the checkpoint.
        resumed_from: Step of the checkpoint that was resumed; None for a fresh start.
        counts: What became of the items.
        before, after: Figures on the held-out items, empty if there are none.
    """

    out: Path
    model_name: str
    steps: int
    interrupted: bool
    resumed_from: int | None
    counts: Counts
    before: Mapping[str, float]
    after: Mapping[str, float]


def finish(plan: Plan, out: Path, stop: Stop, *, resumed_from: int | None) -> TrainingResult:
    """Write the card, copy the model's own template, and say what came out.

    An interrupted run gets no card: its folder holds a checkpoint, not a result.
    """
    result = _result(plan, out, stop, resumed_from)
    if stop.interrupted or not stop.is_main:
        return result
    template = plan.recipe.prompt.template
    if template is not None:  # what was trained is to be asked as it was trained
        shutil.copyfile(template, out / TEMPLATE_FILE)
    (out / "training_args.bin").unlink(missing_ok=True)  # a pickle; training.json says it all
    checks = {f"{key}, before": value for key, value in result.before.items()}
    checks |= {f"{key}, after": value for key, value in result.after.items()}
    card = model_card(
        plan.record,
        method=OBJECTIVES.load(plan.objective).card_text,
        steps=stop.steps,
        checks=checks,
        name=result.model_name,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    write_record({**plan.record, "finished": stop.steps}, out)
    return result


def finished_result(plan: Plan, out: Path) -> TrainingResult | None:
    """The result of this very run, if it has finished before; None if there is more to do.

    Raises:
        RunDirectoryError: If the folder holds another run, or a shorter one that left no
            checkpoint to go on from.
    """
    if not (out / RECORD).is_file():
        return None
    record = read_record(out)
    steps = record.get("finished")
    if steps is None:
        return None
    check_same_run(record, plan.record, out)
    if steps >= plan.steps:
        return _result(plan, out, Stop(steps, interrupted=False, is_main=True), steps)
    if last_checkpoint(out) is None:
        raise RunDirectoryError(
            f"{out} holds the finished run of {steps} steps and no checkpoint to go on from to "
            f"{plan.steps}. Choose another --out."
        )
    return None


def _result(plan: Plan, out: Path, stop: Stop, resumed_from: int | None) -> TrainingResult:
    adapter = plan.recipe.lora is not None
    checks = past_checks(out)
    return TrainingResult(
        out=out,
        model_name=f"hf/{plan.base}+lora={out}" if adapter else f"hf/{out}",
        steps=stop.steps,
        interrupted=stop.interrupted,
        resumed_from=resumed_from,
        counts=plan.groups.counts,
        before=dict(checks[min(checks)]) if len(checks) > 1 else {},
        after=dict(checks[max(checks)]) if checks else {},
    )
