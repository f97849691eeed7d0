"""What training leaves behind: the folder's card, and the figures before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unswayed.training.card import Origin, model_card, name_base
from unswayed.training.data import Counts
from unswayed.training.plan import Plan
from unswayed.training.protocol import Stop
from unswayed.training.run_folder import RunFolder
from unswayed.training.table import OBJECTIVES
from unswayed.training.teacher import golden


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What training left behind."""

    out: Path  # folder of the adapter or model, its card, the log and the checkpoints
    model_name: str  # name under which the rest of the program opens it
    steps: int  # optimiser steps done
    interrupted: bool  # stopped by a signal; the same command goes on from the checkpoint
    resumed_from: int | None  # step of the checkpoint that was resumed; None for a fresh start
    counts: Counts  # what became of the items
    # before, after: figures on the held-out items as they are logged (`held_out/accuracy` with its
    # interval `held_out/accuracy/low`, `held_out/accuracy/high`; `held_out/items`), empty if they
    # were not measured
    before: Mapping[str, float]
    after: Mapping[str, float]


def result_of(
    plan: Plan, folder: RunFolder, stop: Stop, *, resumed_from: int | None
) -> TrainingResult:
    """What lies in the folder of a run that has stopped."""
    out, checks = folder.path, folder.held_out()
    return TrainingResult(
        out=out,
        model_name=f"hf/{out}" if plan.recipe.lora is None else f"hf/{plan.base}+lora={out}",
        steps=stop.steps,
        interrupted=stop.interrupted,
        resumed_from=resumed_from,
        counts=plan.groups.counts,
        before=dict(checks.get(0, {})),
        after=dict(checks.get(stop.steps, {})),
    )


def finish(plan: Plan, folder: RunFolder, result: TrainingResult) -> None:
    """Write the card and how the model is to be asked, and mark the run as finished."""
    folder.check_weights()
    folder.discard_older(plan.recipe.run.keep)  # else done, unless the run was killed before that
    plan.prompt.write(folder.path)  # what was trained is to be asked as it was trained
    (folder.path / "training_args.bin").unlink(missing_ok=True)  # a pickle; the record says it all
    name_base(folder.path, plan.record)
    objective = OBJECTIVES.load(plan.objective)
    card = model_card(
        plan.record,
        method=objective.card_text,
        uses=objective.uses,
        origin=Origin(
            needs_gold=objective.needs_gold,
            golden=len(golden(plan.groups.items)),
            temperature=plan.recipe.target.temperature,
            labels_move=plan.groups.labels_move,
            settled=folder.settled(),
        ),
        steps=result.steps,
        before=result.before,
        after=result.after,
    )
    (folder.path / "README.md").write_text(card, encoding="utf-8")
    folder.write_record({**plan.record, "finished": result.steps})
