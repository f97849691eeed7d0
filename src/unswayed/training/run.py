"""The door to training: one function from items and a recipe to a trained model in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from unswayed.errors import RunDirectoryError
from unswayed.items import Item
from unswayed.rewards import Advantage, Consistency
from unswayed.training.plan import Plan, plan_training
from unswayed.training.progress import Step
from unswayed.training.provenance import (
    RECORD,
    check_same_run,
    last_checkpoint,
    read_record,
    write_record,
)
from unswayed.training.recipe import Kind, Recipe
from unswayed.training.results import TrainingResult, finished_result

__all__ = ["TrainingResult", "plan_training", "train"]

SMALL_BYTES: Final = 400_000_000
"""Weights below this are a small model (100 M parameters in float32)."""


def train(
    kind: Kind,
    items: Sequence[Item],
    *,
    model: str,
    recipe: Recipe | str | Path,
    out: str | Path,
    consistency: Consistency | None = None,
    advantage: Advantage | None = None,
    engine: str = "trl",
    report: Callable[[Step], None] | None = None,
) -> TrainingResult:
    """Train a model so that its answer does not depend on order or labels.

    The same call resumes an interrupted run from its last checkpoint, bit for bit, and returns at
    once where the run has finished.

    Args:
        kind: pa-grpo, grpo, rl or pif.
        items: Pairwise or multiple-choice items with gold.
        model: Path or hub id of the model, with or without `hf/`.
        recipe: A recipe, the name of a shipped one, or the path of a TOML file.
        out: Folder for the result; created.
        consistency: `--reward` of `rl`.
        advantage: `--advantage` of `rl`.
        engine: trl.
        report: Called with every log line.

    Raises:
        UsageError, ItemError, TemplateError: Anything that can be wrong is found before the
            weights are loaded.
        RunDirectoryError: If `out` holds another run, or cannot be written.
    """
    plan = plan_training(
        kind,
        items,
        model=model,
        recipe=recipe,
        consistency=consistency,
        advantage=advantage,
        engine=engine,
    )
    folder = Path(out)
    done = finished_result(plan, folder)
    if done is not None:
        return done
    checkpoint = _prepare_folder(plan, folder)
    _settle_threads(plan.folder)
    if kind == "pif":
        from unswayed.training.pif import train_pif

        return train_pif(plan, folder, checkpoint, report=report)
    from unswayed.training.trl_run import train_groups

    return train_groups(plan, folder, checkpoint, report=report)


def _settle_threads(folder: Path) -> None:
    """One torch thread for small models on a CPU, unless OMP_NUM_THREADS says otherwise.

    On a busy machine more threads made a step of the tiny judge 30 times slower.
    """
    import torch

    if "OMP_NUM_THREADS" in os.environ or torch.cuda.is_available():
        return
    if sum(file.stat().st_size for file in folder.glob("*.safetensors")) < SMALL_BYTES:
        torch.set_num_threads(1)


def _prepare_folder(plan: Plan, out: Path) -> Path | None:
    """Create the folder, or find the checkpoint to resume from."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        checkpoint = last_checkpoint(out)
        if checkpoint is not None:
            check_same_run(read_record(checkpoint), plan.record, out)
        elif (out / RECORD).exists():
            check_same_run(read_record(out), plan.record, out)
        write_record(plan.record, out)
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write to {out}: {error.strerror or error}. Choose another --out."
        ) from None
    return checkpoint
