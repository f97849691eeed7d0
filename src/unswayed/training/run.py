"""The door to training: from a plan to a trained model in a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from unswayed.errors import RunDirectoryError
from unswayed.training.plan import Plan
from unswayed.training.protocol import Report
from unswayed.training.provenance import (
    RECORD,
    check_same_run,
    checkpoint_folder,
    last_checkpoint,
    read_record,
    write_record,
)
from unswayed.training.results import TrainingResult, finish, finished_result
from unswayed.training.table import ENGINES

__all__ = ["TrainingResult", "train"]

SMALL_BYTES: Final = 400_000_000
"""Weights below this are a small model (100 M parameters in float32)."""


def train(plan: Plan, out: str | Path, *, report: Report | None = None) -> TrainingResult:
    """Train a model so that its answer does not depend on order or labels.

    The same call resumes an interrupted run from its last checkpoint, bit for bit, and returns at
    once where the run has finished.

    Args:
        plan: From `plan_training`, which has found anything that can be wrong.
        out: Folder for the result; created.
        report: Called with every log line.

    Raises:
        RunDirectoryError: If `out` holds another run, or cannot be written.
    """
    folder = Path(out)
    done = finished_result(plan, folder)
    if done is not None:
        return done
    resume = _prepare_folder(plan, folder)
    _settle_threads(plan.folder)
    stop = ENGINES.load(plan.engine).run(plan, folder, resume, report)
    return finish(plan, folder, stop, resumed_from=resume)


def _settle_threads(folder: Path) -> None:
    """One torch thread for small models on a CPU, unless OMP_NUM_THREADS says otherwise.

    On a busy machine more threads made a step of the tiny judge 30 times slower.
    """
    import torch

    if "OMP_NUM_THREADS" in os.environ or torch.cuda.is_available():
        return
    if sum(file.stat().st_size for file in folder.glob("*.safetensors")) < SMALL_BYTES:
        torch.set_num_threads(1)


def _prepare_folder(plan: Plan, out: Path) -> int | None:
    """Create the folder, or find the step to resume from."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        resume = last_checkpoint(out)
        if resume is not None:
            check_same_run(read_record(checkpoint_folder(out, resume)), plan.record, out)
        elif (out / RECORD).exists():
            check_same_run(read_record(out), plan.record, out)
        write_record(plan.record, out)
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write to {out}: {error.strerror or error}. Choose another --out."
        ) from None
    return resume
