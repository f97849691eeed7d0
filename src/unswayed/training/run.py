"""The door to training: from a plan to a trained model in a folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.base.errors import RunDirectoryError
from unswayed.training.card import Origin, model_card, name_base
from unswayed.training.groups import Counts
from unswayed.training.plan import Plan
from unswayed.training.processes import is_main, joined, on_main
from unswayed.training.protocol import Report, Stop
from unswayed.training.run_folder import RunFolder, Start
from unswayed.training.table import ENGINES, OBJECTIVES
from unswayed.training.targets import golden


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """Result of a training run."""

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
    """Read the result from the folder of a run that has stopped."""
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
    name_base(folder.path, plan.record, plan.folder)
    objective = OBJECTIVES.load(plan.objective)
    card = model_card(
        plan.record,
        method=objective.card_text,
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


SMALL_BYTES: Final = 400_000_000
"""Weights below this are a small model (100 M parameters in float32)."""


class ResumeWarning(UserWarning):
    """Something of an earlier part of the run cannot be used."""


def train(
    plan: Plan,
    out: str | Path,
    *,
    report: Report | None = None,
    begin: Callable[[int], None] | None = None,
) -> TrainingResult:
    """Train a model so that its answer does not depend on order or labels.

    The same call resumes an interrupted or killed run from its newest whole checkpoint, and returns
    at once where the run has finished. Where transformers samples the responses the result is bit
    for bit that of an uninterrupted run; vLLM does not promise the same samples twice.

    Under a launcher every process calls this with the same arguments. SIGTERM or Ctrl-C then ends
    the processes with exit code 130 once the last completed step is saved.

    Args:
        plan: From `plan_training`, which has found anything that can be wrong.
        out: Folder for the result; created. All processes have to see it.
        report: Called with every log line.
        begin: Called on the first process with the step that the run goes on from, 0 for a new one.

    Raises:
        RunDirectoryError: If `out` holds another run, is trained into, or cannot be written.
    """
    engine = ENGINES.load(plan.engine)
    folder = RunFolder(Path(out), engine.checkpoint_defect)

    def settle(held: ExitStack) -> Start:
        held.enter_context(folder.held())
        return folder.prepare(plan.record, plan.steps)

    with joined(plan.recipe), ExitStack() as held:
        start = on_main(lambda: settle(held))
        for sentence in start.warnings if is_main() else ():
            warnings.warn(sentence, ResumeWarning, stacklevel=2)
        if start.finished is not None and start.finished >= plan.steps:
            stop = Stop(start.finished, interrupted=False)
            return result_of(plan, folder, stop, resumed_from=start.finished)
        if begin is not None and is_main():
            begin(start.resume or 0)
        _settle_threads(plan.folder)
        with _told_of_a_full_disk(folder.path):
            stop = engine.run(plan, folder, start.resume, report)
        result = result_of(plan, folder, stop, resumed_from=start.resume)
        if not stop.interrupted:  # else the folder holds a checkpoint, not a result
            on_main(lambda: finish(plan, folder, result))
        return result


@contextmanager
def _told_of_a_full_disk(folder: Path) -> Iterator[None]:
    """Say so where safetensors and torch report a full disk in errors of their own."""
    try:
        yield
    except Exception as error:
        if "No space left" not in str(error):
            raise
        raise RunDirectoryError(
            f"{folder}: the disk is full. Earlier checkpoints are intact. Free some space "
            "and run the same command again to resume from the latest one."
        ) from None


def _settle_threads(folder: Path) -> None:
    """One torch thread for small models on a CPU, unless OMP_NUM_THREADS says otherwise.

    On a busy machine more threads made a step of the tiny judge 30 times slower.
    """
    import torch

    if "OMP_NUM_THREADS" in os.environ or torch.cuda.is_available():
        return
    if sum(file.stat().st_size for file in folder.glob("*.safetensors")) < SMALL_BYTES:
        torch.set_num_threads(1)
