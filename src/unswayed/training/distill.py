"""Self-distillation: one call learns to say what the model's own average over presentations says.

    L = - mean over (item, presentation) of  sum_k m(k) log p(k)
    m = softmax(mean over a balanced set of log p_before / temperature)

The average is that of the untrained model, asked once; it needs no gold. Whatever is added to a
position's or a label's logit cancels in it. Examples are single presentations in random order: no
group has to be in one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.reward_settings import Advantage, RewardSettings
from unswayed.training.base_answers import ask_base
from unswayed.training.chats import ChatTokens
from unswayed.training.data import Groups
from unswayed.training.expected import distillation_loss
from unswayed.training.given_answers import refuse_reward, split_given
from unswayed.training.memory import Pass
from unswayed.training.one_token import (
    Batch,
    Example,
    check_one_token,
    one_token_trainer,
    prompts_of,
)
from unswayed.training.plan import Plan
from unswayed.training.recipe_parts import Layouts, Recipe
from unswayed.training.sampling import Split
from unswayed.training.teacher import own_averages, own_temperature

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class DistillObjective:
    """Cross-entropy to the model's own average over presentations."""

    card_text: str = "Label-free self-distillation to the model's own average over presentations"
    sampled: bool = False
    needs_gold: bool = False
    layouts: Layouts = "all"
    uses: tuple[str, ...] = ("target.temperature",)

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings | None:
        """None: nothing is rewarded.

        Raises:
            UsageError: If a reward or an advantage is asked for.
        """
        refuse_reward("distill", consistency, advantage)
        return None

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check that answers are labels, and split a step into the processes.

        Raises:
            UsageError: If the prompt asks for more than a label, or a step cannot be split.
        """
        check_one_token(recipe, groups, objective="distill")
        _split(recipe, groups)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """A micro batch of prompts, of which one token is looked at."""
        return Pass(_split(recipe, groups).micro, 1, answered=1)

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass; items that do not fill the last step are left out."""
        return len(groups) // recipe.optimiser.items_per_step

    def build(self, plan: Plan, out: Path) -> Any:
        """A trainer of transformers with the cross-entropy to the average as its loss."""
        recipe, items = plan.recipe, plan.groups.items
        before = ask_base(plan, out)
        temperature = recipe.target.temperature or own_temperature(items, before)
        averages = own_averages(items, before, temperature=temperature)
        examples = [
            Example(prompts=[prompt], right=np.zeros(item.n, dtype=np.bool_), target=average)
            for item, prompts, average in zip(items, prompts_of(plan), averages, strict=True)
            for prompt in prompts
        ]
        return one_token_trainer(
            plan,
            out,
            examples=examples,
            loss=_loss,
            split=_split(recipe, plan.groups),
            constants={"temperature": temperature},
        )


DISTILL = DistillObjective()


def _split(recipe: Recipe, groups: Groups) -> Split:
    examples = recipe.optimiser.items_per_step * groups.n_presentations
    return split_given(recipe, examples, sequences=1)


def _loss(batch: Batch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
    assert batch.target is not None
    return distillation_loss(batch.log_p, batch.target), {}
