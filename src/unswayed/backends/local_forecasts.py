"""How the label prompts of a local model would be read, said before it is loaded.

Tokenizer and configuration suffice: prompts become token ids, a model without weights gives the sizes,
and the passes are planned as they will be. Whether trees are read at all is settled by a trial when the
weights are there (`local_passes`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from unswayed.backends import BackendSettings
from unswayed.backends.local_chats import ChatWriter, LabelTokens
from unswayed.backends.local_costs import Costs, free_memory
from unswayed.backends.local_jobs import prepare
from unswayed.backends.local_models import device_of, dtype_of, load_tokenizer
from unswayed.backends.local_passes import attends_to_all
from unswayed.backends.local_plans import WINDOW, Form, cap_of_rows, plan
from unswayed.backends.model_folders import ModelFolder
from unswayed.calls import Query
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def forecast(
    folder: ModelFolder, settings: BackendSettings, queries: Iterable[Query], *, name: str
) -> tuple[str, ...]:
    """What would be read, how, and within which memory, in sentences.

    Args:
        folder: Tokenizer and config.json; weights are not opened.
        settings: Device, dtype, attention, memory.
        queries: What is to be asked.
        name: Full name of the model.

    Raises:
        UsageError: If the tokenizer or the configuration cannot be read, or cannot write a prompt.
    """
    device = device_of(settings)
    try:
        budget = free_memory(device, settings.memory_gb)
    except (RuntimeError, AssertionError) as error:  # torch's, where there is no such device
        reason = str(error).partition("\n")[0].rstrip(".")
        return (f"{name}: how its prompts would be read cannot be told here: {device}: {reason}.",)
    tokenizer = load_tokenizer(folder, settings, name=name)
    model = _outline(folder, settings, name=name)
    costs = Costs.of(model, budget=budget, device=device)
    trees = attends_to_all(model)
    writer = ChatWriter(tokenizer, model=name, enable_thinking=folder.prompt.enable_thinking)
    labels = LabelTokens(writer)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    longest = longest if isinstance(longest, int) else None
    forms: Counter[Form] = Counter()
    given = read = written = refused = 0
    peak = 0.0
    pending = iter(queries)
    while window := list(itertools.islice(pending, WINDOW)):
        jobs, over = prepare(window, writer, labels, longest=longest, model=name)
        fitting = [job for job in jobs if costs.fits(job.room, scored=1, caches=not job.label_ids)]
        refused += len(over) + len(jobs) - len(fitting)
        scored = [job for job in fitting if job.label_ids]
        written += len(fitting) - len(scored)
        prompts = [job.tokens for job in scored]
        for batch in plan(
            prompts,
            [job.query.item.id for job in scored],
            costs=costs,
            cap=settings.batch_tokens,
            cap_apart=cap_of_rows(settings.batch_tokens, device.type),
            pads=True,
            trees=trees,
        ):
            forms[batch.form] += len(batch.rows)
            read += batch.tokens
            given += sum(len(prompts[row]) for row in batch.rows)
            peak = max(peak, batch.memory(prompts, costs))
    said = []
    if forms:
        counts = ", ".join(
            f"{form} {forms[form]:,}" for form in ("plain", "prefix", "trie") if forms[form]
        )
        shared = len(forms) > 1 or not forms["plain"]
        trial = " Trees are tried when the model is loaded; where they differ, all go by rows."
        said.append(
            f"{name}: label prompts would be read as {counts}; {read:,} of {given:,} tokens. "
            f"Passes are predicted to take at most {peak / 1e9:.2g} of {costs.budget / 1e9:.2g} GB "
            f"beside the weights.{trial if shared else ''}"
        )
    if written:
        said.append(f"{name}: {written:,} prompts are answered with text, by rows.")
    if refused:
        said.append(f"{name}: {refused:,} prompts are longer than the model or the memory allows.")
    return tuple(said)


def _outline(folder: ModelFolder, settings: BackendSettings, *, name: str) -> PreTrainedModel:
    """The model of a configuration, without weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

    attention = settings.attn_implementation
    trusted = settings.trust_remote_code
    try:
        config = AutoConfig.from_pretrained(folder.path, trust_remote_code=trusted)
        with torch.device("meta"):
            outline = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                config,
                dtype=dtype_of(folder, settings, device_of(settings)),
                trust_remote_code=trusted,
                **({} if attention is None else {"attn_implementation": attention}),
            )
    except UsageError:
        raise
    except Exception as error:  # configurations raise nothing narrower about a damaged file
        raise UsageError(f"{name}: {folder.path} cannot be read: {error}") from error
    if not isinstance(outline, PreTrainedModel):
        raise UsageError(f"{folder.path}: {type(outline).__name__} is not a transformers model.")
    return outline
