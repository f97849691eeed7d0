"""Answers of the model before training: its labels' probabilities, asked once and recorded.

They are the teacher of a distillation, the reference of a KL term, and what advice looks at. The calls
are recorded beside the run, so a run that goes on, or is done again, asks nothing twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.model_folders import locate
from unswayed.base.errors import BackendError
from unswayed.base.sync import run_sync
from unswayed.calls import Question
from unswayed.model.decisions import DecisionTable
from unswayed.model.items import ItemSet, blind
from unswayed.model.presentation import Ask, Presentation, presentations
from unswayed.store import CallStore
from unswayed.training.asking import ask_recorded
from unswayed.training.devices import computed_in, on_cpu
from unswayed.training.groups import prompt_settings
from unswayed.training.plan import Plan
from unswayed.training.processes import on_main
from unswayed.training.rewards import FloatArray

ANSWERS: Final = "base_answers"
"""Directory of the recorded calls within a run's folder."""

TINY: Final = float(np.finfo(np.float64).tiny)


def balanced(n: int) -> tuple[Presentation, ...]:
    """Return a small set that shows every candidate once in each place: both orders, or the rotations."""
    return presentations("cyclic", n)


def ask_base(
    plan: Plan, out: Path, *, views: Mapping[int, Sequence[Presentation]] | None = None
) -> dict[str, FloatArray]:
    """Log-probabilities of the candidates' labels among all tokens, from the untrained model.

    By item id, shape (presentations, n), candidates in the item's own order; the presentations are
    `views` by number of candidates, or `balanced`. Of several processes the first asks, for all, and
    records the calls in the run's folder `out`; a `KeyboardInterrupt` in all of them loses no answer.
    """
    asked = views or {n: balanced(n) for n in plan.groups.views}
    answers = on_main(lambda: _answers(plan, asked, out / ANSWERS), patient=True)
    if answers is None:
        raise KeyboardInterrupt
    return answers


def _answers(
    plan: Plan, views: Mapping[int, Sequence[Presentation]], directory: Path
) -> dict[str, FloatArray] | None:
    """Return the answers by item id; None if a signal stopped the work."""
    recipe, items = plan.recipe, plan.groups.items
    folder = dataclasses.replace(locate(plan.base), prompt=plan.prompt)
    with CallStore.open(directory) as store:  # same files answer the same, wherever they lie
        begun = str(store.noted("model") or "").removeprefix("hf/")
    if begun.rpartition("@")[2] == folder.name.rpartition("@")[2]:
        folder = dataclasses.replace(folder, name=begun)
    cpu = on_cpu(recipe)
    device = "cpu" if cpu else None
    settings = BackendSettings(device=device, dtype=computed_in(recipe, on_gpu=not cpu))
    backend = HuggingFaceBackend(folder, settings)
    questions = [Question(blind(item), Ask(view)) for item in items for view in views[item.n]]
    prompts = prompt_settings(recipe.prompt)
    decisions, counts = run_sync(
        ask_recorded(ItemSet.of(items, name="training"), questions, backend, directory, prompts)
    )
    if counts.interrupted:
        return None
    if counts.exit_code:
        example = f", such as {counts.last_failure.rstrip('.')}" if counts.last_failure else ""
        reason = counts.fatal or f"{counts.failed:,} calls failed or were not made{example}"
        raise BackendError(
            f"hf/{plan.base} did not answer everything that is asked before training: "
            f"{reason}. Run the same command again to ask the rest."
        )
    answers: dict[str, FloatArray] = {}
    for n in sorted({item.n for item in items}):
        own = [item for item in items if item.n == n]
        table = DecisionTable.of(own, decisions).select([Ask(view) for view in views[n]])
        probs, mass = table.probs, table.label_mass
        if probs is None or mass is None or not np.isfinite(probs).all():
            raise BackendError(
                "a recorded answer of the untrained model has no probabilities of labels. Remove the "
                f"run's folder {ANSWERS}, then run the same command again."
            )
        log_p = np.log(np.maximum(probs * mass[..., None], TINY))
        answers |= {item.id: row for item, row in zip(own, log_p, strict=True)}
    return answers
