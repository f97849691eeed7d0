"""Describe how a local model would read label prompts, before it is loaded.

Tokenizer and configuration suffice: prompts become token ids, a model without weights gives the sizes,
and the passes are planned as they will be. Whether trees are read at all is settled by a trial when the
weights are there (`local_passes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from unswayed.backends import BackendSettings
from unswayed.backends.local_jobs import LocalPlan, PromptCounts
from unswayed.backends.local_models import build_outline, device_of, dtype_of, load_tokenizer
from unswayed.backends.local_passes import attends_to_all
from unswayed.backends.local_plans import WINDOW
from unswayed.backends.model_folders import ModelFolder
from unswayed.base.errors import first_line
from unswayed.model.calls import Query


def forecast(
    folder: ModelFolder, settings: BackendSettings, queries: Iterable[Query], *, name: str
) -> tuple[str, ...]:
    """Describe in sentences what would be read, how, and within which memory; weights are not opened."""
    device = device_of(settings)
    tokenizer = load_tokenizer(folder, settings, name=name)
    attention = settings.attn_implementation
    model = build_outline(
        folder.path,
        name=name,
        trust_remote_code=settings.trust_remote_code,
        dtype=dtype_of(folder, settings, device),
        **({} if attention is None else {"attn_implementation": attention}),
    )
    trees = attends_to_all(model)
    try:
        plan = LocalPlan.of(
            model, tokenizer, folder, settings, name=name, device=device, pads=True, trees=trees
        )
    except (RuntimeError, AssertionError) as error:  # torch's, where there is no such device
        reason = first_line(error).rstrip(".")
        return (f"{name}: how its prompts would be read cannot be told here: {device}: {reason}.",)
    reading = PromptCounts()
    n_written = n_refused = 0
    peak = 0.0
    pending = iter(queries)
    while window := list(itertools.islice(pending, WINDOW)):
        jobs, refused = plan.prepare(window)
        n_refused += len(refused)
        n_written += sum(not job.label_ids for job in jobs)
        for scored, batch in plan.scored(jobs):
            reading.add(scored, batch)
            peak = max(peak, batch.memory)
    said = []
    if forms := reading.forms:
        counts = ", ".join(
            f"{form} {forms[form]:,}" for form in ("plain", "prefix", "trie") if forms[form]
        )
        shared = len(forms) > 1 or not forms["plain"]
        trial = " Trees are tried when the model is loaded; where they differ, all go by rows."
        said.append(
            f"{name}: label prompts would be read as {counts}; {reading.read:,} of {reading.given:,} "
            f"tokens. Passes are predicted to take at most {peak / 1e9:.2g} of "
            f"{plan.costs.budget / 1e9:.2g} GB beside the weights.{trial if shared else ''}"
        )
    if n_written:
        said.append(f"{name}: {n_written:,} prompts are answered with text, by rows.")
    if n_refused:
        said.append(
            f"{name}: {n_refused:,} prompts are longer than the model or the memory allows."
        )
    return tuple(said)
