"""The arms that are told the gold label: the product's own PIF-style loss, and permuted SFT.

Examples, negatives, batches and loss are those of `unswayed train pif`; the loop, the items and
their order are the study's, so that these arms see what the rewarded ones see, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from settings import Job
from torch import nn
from world import Pool

from unswayed.model.items import blind
from unswayed.model.presentation import Ask, canonical
from unswayed.prompts import render
from unswayed.tiny.backend import WEIGHTS
from unswayed.training.chats import load_chat
from unswayed.training.groups import build_groups, prompt_settings
from unswayed.training.pif import PifHooks, collate, examples
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.recipe_parts import DataTable, PromptTable


def supervised_loss(
    core: nn.Module, pool: Pool, job: Job, changes: Mapping[str, str], device: torch.device
) -> Callable[[np.ndarray], torch.Tensor]:
    """The loss of a batch of items, by their numbers in the pool, in all their presentations."""
    recipe = with_changes(load_recipe("tiny-judge"), changes)
    prompt = PromptTable(template=str(WEIGHTS / "prompt_template.jinja"))
    groups = build_groups(pool.items, DataTable(orders=job.setting.orders), prompt)
    first = render(blind(pool.items[0]), Ask(canonical(pool.items[0].n)), prompt_settings(prompt))
    chat = load_chat(WEIGHTS, name="tiny/judge", enable_thinking=None, prompt=first)
    taught = examples(groups, recipe.pif, chat, seed=job.seed)
    hooks = PifHooks(weights=recipe.pif)
    per_item = groups.n_presentations

    def loss(batch: np.ndarray) -> torch.Tensor:
        rows = [taught[item * per_item + shown] for item in batch for shown in range(per_item)]
        inputs = collate(rows, pad=chat.tokenizer.pad_token_id)
        return hooks.compute_loss(core, {name: part.to(device) for name, part in inputs.items()})

    return loss
