"""Permuted supervised fine-tuning: the gold label in every presentation.

    L = - mean over presentations of sum_k g(k) log p(k)  +  w T/(T-1) Var

g is gold; with `target.gold_noise = "auto"` what gold makes of the model's own average before training,
given the share of wrong gold under which the gold is likeliest. w is `target.invariance`, Var the
variance of the candidates' probabilities over the T presentations. No entropy bonus, no KL term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.reward_settings import Advantage, RewardSettings
from unswayed.rewards import right_mask
from unswayed.training.base_answers import ask_base
from unswayed.training.chats import ChatTokens
from unswayed.training.data import Groups
from unswayed.training.expected import distillation_loss, variance_over_presentations
from unswayed.training.given_answers import refuse_reward, split_groups
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
from unswayed.training.teacher import gold_noise, own_averages, plain_gold, weighed_gold

if TYPE_CHECKING:
    import torch

    from unswayed.rewards import FloatArray


@dataclass(frozen=True, slots=True)
class SftObjective:
    """Cross-entropy to gold in every presentation."""

    card_text: str = "Permuted supervised fine-tuning: the gold label in every presentation"
    sampled: bool = False
    needs_gold: bool = True
    layouts: Layouts = "coupled"
    uses: tuple[str, ...] = ("target.invariance", "target.gold_noise", "target.temperature")

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings | None:
        """None: nothing is rewarded.

        Raises:
            UsageError: If a reward or an advantage is asked for.
        """
        refuse_reward("sft", consistency, advantage)
        return None

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check that answers are labels, and split a step into the processes.

        Raises:
            UsageError: If the prompt asks for more than a label, or a step cannot be split.
        """
        check_one_token(recipe, groups, objective="sft")
        split_groups(recipe, groups)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Whole groups, whose variance is one number; one token of each prompt is looked at."""
        return Pass(split_groups(recipe, groups).micro * groups.n_presentations, 1, answered=1)

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass; items that do not fill the last step are left out."""
        return len(groups) // recipe.optimiser.items_per_step

    def build(self, plan: Plan, out: Path) -> Any:
        """A trainer of transformers with the cross-entropy to gold as its loss."""
        items, weight = plan.groups.items, plan.recipe.target.invariance
        targets, constants = _targets(plan, out)
        examples = [
            Example(
                prompts=prompts, right=right_mask(item.gold_candidates(), item.n), target=target
            )
            for item, prompts, target in zip(items, prompts_of(plan), targets, strict=True)
        ]

        def loss(batch: Batch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
            assert batch.target is not None
            apart = distillation_loss(batch.log_p, batch.target)
            varies = variance_over_presentations(batch.log_p)
            return apart + weight * varies, {"cross_entropy": apart, "variance": varies}

        return one_token_trainer(
            plan,
            out,
            examples=examples,
            loss=loss,
            split=split_groups(plan.recipe, plan.groups),
            constants=constants,
        )


SFT = SftObjective()


def _targets(plan: Plan, out: Path) -> tuple[list[FloatArray], dict[str, float]]:
    """What each item is trained towards, and what was settled for it."""
    items, target = plan.groups.items, plan.recipe.target
    if target.gold_noise == "none":
        return plain_gold(items), {}
    before = ask_base(plan, out)
    noise = gold_noise(items, before, temperature=target.temperature)
    averages = own_averages(items, before, temperature=noise.tau)
    return weighed_gold(items, averages, epsilon=noise.epsilon), {
        "temperature": noise.tau,
        "wrong_gold": noise.epsilon,
    }
