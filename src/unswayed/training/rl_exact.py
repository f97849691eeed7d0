"""The expected reward of one-token answers, climbed without sampling, with a pull to the own average.

    maximise  J(reward, lam) - mu L_D - beta KL + entropy H

J is `expected.expected_reward`; L_D the cross-entropy to the model's own average over a balanced set
of presentations before training, mu `target.distill`. With reward `inv` the consistency term is minus
the variance over presentations, and nothing else. Only for prompts whose answer is the label: after
reasoning the expectation has no closed form, and `rl` samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.errors import UsageError
from unswayed.reward_settings import REWARDS, Advantage, RewardSettings
from unswayed.rewards import right_mask
from unswayed.training.base_answers import ask_base, balanced
from unswayed.training.chats import ChatTokens
from unswayed.training.data import Groups
from unswayed.training.expected import distillation_loss, expected_reward, regulariser
from unswayed.training.given_answers import split_groups
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
from unswayed.training.teacher import own_averages, own_temperature

if TYPE_CHECKING:
    import torch

    from unswayed.rewards import FloatArray

OWN_REWARD: Final = "inv"


@dataclass(frozen=True, slots=True)
class ExactObjective:
    """Policy gradients of one-token answers without sampling."""

    card_text: str = (
        "Exact expected reward of one-token answers with a pull to the model's own average (rl "
        "--exact; not PA-GRPO)"
    )
    sampled: bool = False
    needs_gold: bool = True
    layouts: Layouts = "coupled"
    uses: tuple[str, ...] = (
        "reward.consistency",
        "reward.lam",
        "reward.format_size",
        "reward.length_size",
        "optimiser.beta",
        "optimiser.entropy",
        "target.distill",
        "target.temperature",
    )

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings:
        """The recipe's numbers with the reward asked for, or else inv.

        Raises:
            UsageError: If an advantage is asked for, or the reward has no expectation.
        """
        if advantage is not None or recipe.reward.advantage is not None:
            raise UsageError(
                "rl --exact samples nothing, so there is no advantage. Leave --advantage and "
                "reward.advantage out, or sample: train rl without --exact."
            )
        name = consistency or recipe.reward.consistency or OWN_REWARD
        if REWARDS.load(name).expected is None:
            raise UsageError(
                f"reward {name!r} has no expectation that could be computed. Sample it: train rl "
                f"--reward {name}."
            )
        return dataclasses.replace(recipe.reward, consistency=name)

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check that answers are labels, and split a step into the processes.

        Raises:
            UsageError: If the prompt asks for more than a label, or a step cannot be split.
        """
        check_one_token(recipe, groups, objective="rl --exact")
        split_groups(recipe, groups)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Whole groups, of which one token of each prompt is looked at."""
        return Pass(split_groups(recipe, groups).micro * groups.n_presentations, 1, answered=1)

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass; items that do not fill the last step are left out."""
        return len(groups) // recipe.optimiser.items_per_step

    def build(self, plan: Plan, out: Path) -> Any:
        """A trainer of transformers with minus the expected reward as its loss."""
        recipe, settings = plan.recipe, plan.settings or plan.recipe.reward
        optimiser, weight = recipe.optimiser, recipe.target.distill
        examples, constants = _examples(plan, out)

        def loss(batch: Batch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
            gain = expected_reward(batch.log_p, batch.right, settings)
            held = regulariser(
                batch.log_p, batch.base, beta=optimiser.beta, entropy=optimiser.entropy
            )
            if batch.target is None:
                return held - gain, {"reward": gain}
            apart = distillation_loss(batch.log_p, batch.target)
            return weight * apart - gain + held, {"reward": gain, "distillation": apart}

        return one_token_trainer(
            plan,
            out,
            examples=examples,
            loss=loss,
            split=split_groups(recipe, plan.groups),
            constants=constants,
        )


RL_EXACT = ExactObjective()


def _examples(plan: Plan, out: Path) -> tuple[list[Example], dict[str, float]]:
    """Whole groups, with what the loss needs of the untrained model; and what was settled."""
    recipe, items, shown = plan.recipe, plan.groups.items, plan.groups.views
    pulls, holds = recipe.target.distill > 0, recipe.optimiser.beta > 0
    asked = {
        n: tuple(dict.fromkeys((*(balanced(n) if pulls else ()), *(views if holds else ()))))
        for n, views in shown.items()
    }
    before = ask_base(plan, out, views=asked) if pulls or holds else {}
    targets: Sequence[FloatArray | None] = [None] * len(items)
    constants: dict[str, float] = {}
    if pulls:
        teachers = {item.id: before[item.id][: len(balanced(item.n))] for item in items}
        temperature = recipe.target.temperature or own_temperature(items, teachers)
        targets = own_averages(items, teachers, temperature=temperature)
        constants = {"temperature": temperature}
    at = {n: [asked[n].index(view) for view in views] for n, views in shown.items() if holds}
    examples = [
        Example(
            prompts=prompts,
            right=right_mask(item.gold_candidates(), item.n),
            base=before[item.id][at[item.n]] if holds else None,
            target=target,
        )
        for item, prompts, target in zip(items, prompts_of(plan), targets, strict=True)
    ]
    return examples, constants
