"""Asking a model before it is trained, into a directory of recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unswayed.backends import Backend
from unswayed.calls import Caller, Progress, Question, RunCounts, RunSettings, stop_on_interrupt
from unswayed.model.decisions import Decision
from unswayed.model.items import ItemSet
from unswayed.prompts import PromptSettings
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
    """Ask what is not recorded in the directory yet; close the backend.

    With `reask` a reply that could not be read is asked for its label once more.
    """
    with CallStore.open(directory) as store, stop_on_interrupt(backend) as stop:
        store.bind(model=backend.model, items=items)
        caller = Caller(backend, store, RunSettings(prompts=prompts, reask=reask))
        try:
            counts = await caller.ask(questions, progress=Progress(len(questions)), stop=stop)
        finally:
            await backend.close()
        counts.interrupted = stop.is_set()  # also where all was answered by then: no more is begun
        return list(caller.read(questions)), counts
