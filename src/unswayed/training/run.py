"""The door to training: from a plan to a trained model in a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from unswayed.errors import RunDirectoryError
from unswayed.training.plan import Plan
from unswayed.training.protocol import Report, Stop
from unswayed.training.results import TrainingResult, finish, result_of
from unswayed.training.run_folder import RunFolder
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
    folder = RunFolder(Path(out))
    finished = folder.finished_steps(plan.record)
    if finished is not None and finished >= plan.steps:
        stop = Stop(finished, interrupted=False, is_main=True)
        return result_of(plan, folder, stop, resumed_from=finished)
    if finished is not None and folder.last_checkpoint() is None:
        raise RunDirectoryError(
            f"{out} holds the finished run of {finished} steps and no checkpoint to go on from to "
            f"{plan.steps}. Choose another --out."
        )
    resume = folder.prepare(plan.record)
    _settle_threads(plan.folder)
    stop = ENGINES.load(plan.engine).run(plan, folder, resume, report)
    result = result_of(plan, folder, stop, resumed_from=resume)
    if stop.is_main and not stop.interrupted:  # else the folder holds a checkpoint, not a result
        finish(plan, folder, result)
    return result


def _settle_threads(folder: Path) -> None:
    """One torch thread for small models on a CPU, unless OMP_NUM_THREADS says otherwise.

    On a busy machine more threads made a step of the tiny judge 30 times slower.
    """
    import torch

    if "OMP_NUM_THREADS" in os.environ or torch.cuda.is_available():
        return
    if sum(file.stat().st_size for file in folder.glob("*.safetensors")) < SMALL_BYTES:
        torch.set_num_threads(1)
