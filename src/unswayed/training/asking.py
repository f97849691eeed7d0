"""Asking a model before it is trained, into a directory of recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unswayed.backends import Backend
from unswayed.decisions import Decision
from unswayed.items import ItemSet
from unswayed.prompts import PromptSettings
from unswayed.runner import Caller, Progress, Question, RunCounts, RunSettings, stop_on_interrupt
from unswayed.store import CallStore


async def ask_recorded(
    items: ItemSet,
    questions: Sequence[Question],
    backend: Backend,
    directory: Path,
    prompts: PromptSettings,
    *,
    reask: bool = True,
) -> tuple[list[Decision], RunCounts]:
    """Ask what is not recorded yet; close the backend.

    Args:
        items: What the directory belongs to.
        questions: About these items.
        backend: Who is asked.
        directory: Of recorded calls, made if it is not there.
        prompts: How items are asked.
        reask: If True, ask once more for the label of a reply that could not be read.

    Returns:
        The answers, and what came of the calls.
    """
    with CallStore.open(directory) as store, stop_on_interrupt() as stop:
        store.bind(model=backend.model, items=items)
        caller = Caller(backend, store, RunSettings(prompts=prompts, reask=reask))
        try:
            counts = await caller.ask(questions, progress=Progress(len(questions)), stop=stop)
        finally:
            await backend.close()
        counts.interrupted = stop.is_set()  # also where all was answered by then: no more is begun
        return list(caller.read(questions)), counts
