"""The objectives of answers that are one label: nothing is sampled, and the loss is a formula.

    sft       mean over presentations of  - sum_k g(k) log p(k)  +  w T/(T-1) Var
    distill   mean over (item, presentation) of  - sum_k m(k) log p(k)
    rl-exact  - J(reward, lam) + mu L_D + beta KL - entropy H

g is gold; with `target.gold_noise = "auto"` what gold makes of the model's own average before training,
given the share of wrong gold under which the gold is likeliest. w is `target.invariance`, Var the
variance of the candidates' probabilities over the T presentations.

m = softmax(mean over a balanced set of log p_before / temperature) is the average of the untrained
model, asked once: whatever is added to a position's or a label's logit cancels in it. `distill` needs no
gold, and its examples are single presentations in random order: no group has to be in one batch.

J is `expected.expected_reward`, L_D the cross-entropy to m, mu `target.distill`. With reward `inv` the
consistency term is minus the variance over presentations, and nothing else. After reasoning no
expectation has a closed form, and `rl` samples.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from unswayed.base.errors import UsageError
from unswayed.model.parsing import LABEL
from unswayed.model.tasks import task_of
from unswayed.training.base_answers import ask_base, balanced
from unswayed.training.chats import ChatTokens
from unswayed.training.expected import (
    distillation_loss,
    expected_reward,
    regulariser,
    variance_over_presentations,
)
from unswayed.training.given_answers import given_answers_trainer, split_given
from unswayed.training.groups import Groups
from unswayed.training.memory import Pass
from unswayed.training.one_token import Example, LabelBatch, Loss, OneToken, collate, prompts_of
from unswayed.training.plan import Plan
from unswayed.training.processes import process_count
from unswayed.training.protocol import Objective
from unswayed.training.recipe_parts import Layouts, Recipe
from unswayed.training.reward_settings import REWARDS, Advantage, RewardSettings
from unswayed.training.rewards import right_mask
from unswayed.training.sampling import Split
from unswayed.training.targets import (
    estimated_noise,
    own_average,
    own_temperature,
    plain_gold,
    weighed_gold,
)

if TYPE_CHECKING:
    import torch

    from unswayed.training.rewards import FloatArray

OWN_REWARD: Final = "inv"


class Lesson(NamedTuple):
    """Lesson of an objective on answers of one label."""

    examples: Sequence[Example]  # all of them with equally many presentations
    loss: Loss  # what is minimised
    # what was settled before training, such as a `temperature`; stands in every line of the log,
    # with `run_folder.SETTLED` before its name
    constants: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLabels(Objective):
    """An objective whose answers are one label."""

    command: str  # what follows `train`
    card_text: str
    lesson: Callable[[Plan, Path], Lesson]  # what is learned; it may ask the untrained model
    uses: tuple[str, ...]
    asks: Callable[[Recipe], bool]  # whether `lesson` asks the untrained model
    needs_gold: bool = True
    layouts: Layouts = "coupled"
    grouped: bool = True  # whether the presentations of an item stay in one micro batch
    rewarded: bool = False  # whether the recipe's reward is part of the loss

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings | None:
        """Return the recipe's numbers with the reward asked for, or else inv; None where nothing is rewarded."""
        if not self.rewarded:
            return None
        if advantage is not None or recipe.reward.advantage is not None:
            raise UsageError(
                "rl --exact samples nothing and has no advantages. Remove --advantage and "
                "reward.advantage, or sample: train rl without --exact."
            )
        name = consistency or recipe.reward.consistency or OWN_REWARD
        return dataclasses.replace(recipe.reward, consistency=name)

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check that answers are labels, and split a step into the processes."""
        if not groups.answer_only or task_of(recipe.task).reply is not LABEL:
            raise UsageError(
                f"train {self.command} needs prompts whose answer is the label alone, such as direct: "
                "after reasoning a label's probability is not known before it is written. Give it "
                "--set prompt.style=direct; or, with gold, sample: train rl --reward inv."
            )
        if settings is not None and settings.consistency:
            uniform = np.full((groups.n_presentations, 2), 0.5)
            REWARDS.load(settings.consistency).expectation(uniform, np.array([True, False]))
        self._split(recipe, groups)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Return a micro batch of prompts, of which one token is looked at."""
        prompts = groups.n_presentations if self.grouped else 1
        sequences = self._split(recipe, groups).micro * prompts
        return Pass(sequences, 1, answered=1, asks=self.asks(recipe))

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass; items that do not fill the last step are left out."""
        return len(groups) // recipe.optimiser.items_per_step

    def build(self, plan: Plan, out: Path) -> Any:
        """Return a trainer of transformers with the loss."""
        split = self._split(plan.recipe, plan.groups)
        return given_answers_trainer(
            plan,
            out,
            hooks=OneToken,
            collate=functools.partial(collate, pad=plan.chat.tokenizer.pad_token_id),
            split=split,
            per_step=split.micro * split.passes * process_count(),
            shuffle=plan.recipe.data.shuffle,
            **self.lesson(plan, out)._asdict(),
        )

    def _split(self, recipe: Recipe, groups: Groups) -> Split:
        items, size = recipe.optimiser.items_per_step, groups.n_presentations
        examples, sequences = (items, size) if self.grouped else (items * size, 1)
        return split_given(recipe, examples, sequences=sequences)


def _to_gold(plan: Plan, out: Path) -> Lesson:
    items, target = plan.groups.items, plan.recipe.target
    targets, constants = plain_gold(items), {}
    if target.gold_noise != "none":
        before = ask_base(plan, out)
        noise = estimated_noise(items, before, temperature=target.temperature)
        averages = [own_average(before[item.id], temperature=noise.temperature) for item in items]
        targets = weighed_gold(items, averages, epsilon=noise.wrong_gold)
        constants = {"temperature": noise.temperature, "wrong_gold": noise.wrong_gold}

    def loss(batch: LabelBatch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
        assert batch.target is not None
        apart = distillation_loss(batch.log_p, batch.target)
        varies = variance_over_presentations(batch.log_p)
        return apart + target.invariance * varies, {"cross_entropy": apart, "variance": varies}

    return Lesson(_whole_groups(plan, targets), loss, constants)


def _to_average(plan: Plan, out: Path) -> Lesson:
    items, before = plan.groups.items, ask_base(plan, out)
    temperature = plan.recipe.target.temperature or own_temperature(items, before)
    averages = [own_average(before[item.id], temperature=temperature) for item in items]

    def loss(batch: LabelBatch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
        assert batch.target is not None
        return distillation_loss(batch.log_p, batch.target), {}

    examples = [
        Example([prompt], np.zeros(item.n, dtype=np.bool_), target=average)
        for item, prompts, average in zip(items, prompts_of(plan), averages, strict=True)
        for prompt in prompts
    ]
    return Lesson(examples, loss, {"temperature": temperature})


def _rewarded(plan: Plan, out: Path) -> Lesson:
    """Whole groups, with what the loss needs of the untrained model."""
    recipe, items, shown = plan.recipe, plan.groups.items, plan.groups.views
    settings, optimiser = plan.settings or recipe.reward, recipe.optimiser
    weight = recipe.target.distill
    pulls, holds = weight > 0, optimiser.beta > 0
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
        targets = [own_average(teachers[item.id], temperature=temperature) for item in items]
        constants = {"temperature": temperature}

    def loss(batch: LabelBatch) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
        gain = expected_reward(batch.log_p, batch.right, settings)
        held = regulariser(batch.log_p, batch.base, beta=optimiser.beta, entropy=optimiser.entropy)
        if batch.target is None:
            return held - gain, {"reward": gain}
        apart = distillation_loss(batch.log_p, batch.target)
        return weight * apart - gain + held, {"reward": gain, "distillation": apart}

    at = {n: [asked[n].index(view) for view in views] for n, views in shown.items() if holds}
    base = {item.id: before[item.id][at[item.n]] for item in items if holds}
    return Lesson(_whole_groups(plan, targets, base), loss, constants)


def _whole_groups(
    plan: Plan, targets: Sequence[FloatArray | None], base: Mapping[str, FloatArray] | None = None
) -> list[Example]:
    """Return each item in all its presentations, with its target and the answers before training by id."""
    return [
        Example(
            prompts, right_mask(item.gold_candidates(), item.n), (base or {}).get(item.id), target
        )
        for item, prompts, target in zip(plan.groups.items, prompts_of(plan), targets, strict=True)
    ]


SFT = OwnLabels(
    command="sft",
    card_text="Permuted supervised fine-tuning: the gold label in every presentation",
    lesson=_to_gold,
    asks=lambda recipe: recipe.target.gold_noise != "none",
    uses=("target.invariance", "target.gold_noise", "target.temperature"),
)

DISTILL = OwnLabels(
    command="distill",
    card_text="Label-free self-distillation to the model's own average over presentations",
    lesson=_to_average,
    asks=lambda recipe: True,
    uses=("target.temperature",),
    needs_gold=False,
    layouts="all",
    grouped=False,
)

RL_EXACT = OwnLabels(
    command="rl --exact",
    card_text="Exact expected reward of one-token answers with a pull to the model's own average (rl "
    "--exact; not PA-GRPO)",
    lesson=_rewarded,
    asks=lambda recipe: recipe.target.distill > 0 or recipe.optimiser.beta > 0,
    uses=("target.distill", "target.temperature"),
    rewarded=True,
)
