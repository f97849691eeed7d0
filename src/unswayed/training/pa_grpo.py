"""Policy gradients on permutation groups: PA-GRPO, GRPO, and any other reward with any advantage.

`pa-grpo` and `grpo` are the papers' combinations and cannot be changed by a recipe or an option;
`rl` takes any. The trainer is trl's, with the hooks of `trl_hooks.py` in front of it; responses are
sampled by transformers or by vLLM, on one CPU core, on one GPU, and on many through
`accelerate launch` (FSDP, DeepSpeed).

Source: PA-GRPO (arXiv 2603.21016), section 3.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.base.errors import UsageError
from unswayed.training.chats import ChatTokens
from unswayed.training.devices import on_cpu
from unswayed.training.groups import Groups
from unswayed.training.memory import Pass
from unswayed.training.plan import Plan
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.protocol import Objective
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import Advantage, RewardSettings
from unswayed.training.rewards import weights
from unswayed.training.scoring import GroupScorer
from unswayed.training.shared_prompts import SharedPrompts
from unswayed.training.trainer_arguments import load_arguments, lora_config, trainer_arguments
from unswayed.training.trl_hooks import GroupHooks

if TYPE_CHECKING:
    from trl.trainer.grpo_config import GRPOConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObjective(Objective):
    """A policy gradient on permutation groups."""

    card_text: str  # what the model card says it is
    # consistency, advantage: its own reward and advantage
    consistency: str
    advantage: Advantage
    # the registered name, if the two are the paper's and cannot be changed
    preset: str | None = None
    sampled: bool = True

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings:
        """Return the recipe's numbers with the reward and advantage asked for, or else its own."""
        asked = consistency or recipe.reward.consistency, advantage or recipe.reward.advantage
        own = self.consistency, self.advantage
        for part, wanted, fixed in zip(("reward", "advantage"), asked, own, strict=True):
            if self.preset is not None and wanted not in (None, fixed):
                raise UsageError(
                    f"{self.preset} is the paper's preset with {part} {fixed!r}; {wanted!r} is "
                    f"another method. Use: train rl --reward {asked[0] or own[0]} "
                    f"--advantage {asked[1] or own[1]}."
                )
        if self.preset is not None and recipe.reward.response is not None:
            raise UsageError(
                f"{self.preset} is the paper's preset and has no reward.response. Use: train rl --reward "
                f"{own[0]} --advantage {own[1]}."
            )
        return dataclasses.replace(
            recipe.reward, consistency=asked[0] or own[0], advantage=asked[1] or own[1]
        )

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check the loss of a preset, and score made-up responses to the first item."""
        loss = recipe.optimiser.loss
        if self.preset is not None and loss != "grpo":
            raise UsageError(
                f"optimiser.loss {loss!r} is not the paper's, whose objective is a mean over "
                f"responses (grpo). {self.preset} is the paper's preset. Use: train rl --reward "
                f"{self.consistency} --advantage {self.advantage}."
            )
        scorer = GroupScorer.of(groups, settings or recipe.reward, recipe)
        rows = [row for row in range(groups.n_presentations) for _ in range(recipe.rollout.samples)]
        texts = [*[groups.symbols[0]] * (len(rows) - 1), ""]  # the last names no candidate
        scorer.rewards(scorer.features(rows, texts))

    def loss(self, recipe: Recipe, settings: RewardSettings | None) -> PolicyLoss:
        """Return the recipe's policy gradient with the advantage of the reward."""
        return PolicyLoss.of(recipe, (settings or recipe.reward).advantage)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Return a micro batch of responses."""
        return Pass(recipe.run.micro_batch, groups.max_tokens)

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass; groups that do not fill the last step are left out."""
        return len(groups) // recipe.optimiser.items_per_step * recipe.optimiser.inner_updates

    def build(self, plan: Plan, out: Path) -> Any:
        """trl's trainer with the hooks of permutation groups."""
        recipe, settings = plan.recipe, plan.settings or plan.recipe.reward
        config, share = grpo_config(plan, out), recipe.run.share_prompts
        config.model_init_kwargs = load_arguments(recipe)
        return trainer_class()(
            model=str(plan.folder),
            args=config,
            train_dataset=group_dataset(plan.groups, plan.chat),
            processing_class=plan.chat.tokenizer,
            peft_config=lora_config(recipe),
            scorer=GroupScorer.of(plan.groups, settings, recipe),
            share_prompts=on_cpu(recipe) if share == "auto" else share,
            chat=plan.chat,
        )


PA_GRPO = GroupObjective(
    card_text="PA-GRPO (arXiv 2603.21016)", consistency="con", advantage="group", preset="pa-grpo"
)
GRPO = GroupObjective(
    card_text="GRPO, the baseline of arXiv 2603.21016",
    consistency="none",
    advantage="prompt",
    preset="grpo",
)
RL = GroupObjective(
    card_text="GRPO with a chosen reward and advantage (none with group: EIS-GRPO, "
    "arXiv 2505.13346; joint: J1's reward, arXiv 2505.10320)",
    consistency="con",
    advantage="group",
)


@functools.cache
def trainer_class() -> Any:
    """trl's GRPO trainer with the hooks of permutation groups and shared prompts in front of it."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    return type("PermutationGroupTrainer", (GroupHooks, SharedPrompts, GRPOTrainer), {})


def grpo_config(plan: Plan, out: Path) -> GRPOConfig:
    """trl's configuration for a plan; everything that trl would decide otherwise is set."""
    from trl.trainer.grpo_config import GRPOConfig

    recipe, groups, settings = plan.recipe, plan.groups, plan.settings or plan.recipe.reward
    rollout = recipe.rollout
    assert plan.loss is not None  # of a policy gradient
    micro, passes = plan.split
    return GRPOConfig(
        **trainer_arguments(recipe, out, micro=micro, passes=passes, steps=plan.steps),
        # the batch: one batch of responses per optimiser step (or per inner_updates steps)
        steps_per_generation=passes,
        num_generations=rollout.samples,
        shuffle_dataset=recipe.data.shuffle,
        # the objective: trl's defaults are beta 0, "dapo", corrections
        **plan.loss.trl_arguments(),
        scale_rewards="group",
        multi_objective_aggregation="sum_then_normalize",
        reward_weights=list(weights(settings).values()),
        use_bias_correction_kl=False,
        **_correction_arguments(recipe),
        mask_truncated_completions=False,
        # sampling
        temperature=rollout.temperature,
        max_completion_length=groups.max_tokens,
        **_vllm_arguments(recipe, groups),
        log_completions=False,
    )


def group_dataset(groups: Groups, chat: ChatTokens) -> Any:
    """Return the rows as a `datasets.Dataset`: rendered chat and row number."""
    from datasets import Dataset

    texts = chat.texts([row.messages for row in groups.rows])
    return Dataset.from_dict({"prompt": texts, "row": list(range(len(texts)))})


def _vllm_arguments(recipe: Recipe, groups: Groups) -> dict[str, Any]:
    rollout = recipe.rollout
    if rollout.engine == "transformers":
        return {"use_vllm": False}
    common = {"use_vllm": True, "vllm_mode": rollout.engine.removeprefix("vllm-")}
    if rollout.engine == "vllm-server":
        return {
            **common,
            "vllm_server_base_url": rollout.server_url,
            "vllm_server_timeout": rollout.server_timeout,
        }
    longest = groups.counts.longest_prompt or recipe.data.max_prompt_tokens
    return {
        **common,
        "vllm_gpu_memory_utilization": rollout.gpu_memory,
        "vllm_tensor_parallel_size": rollout.tensor_parallel,
        "vllm_max_model_length": longest + groups.max_tokens,
        "vllm_enable_sleep_mode": rollout.sleep,
    }


def _correction_arguments(recipe: Recipe) -> dict[str, Any]:
    correction = recipe.rollout.correction
    if correction == "none":
        return {"vllm_importance_sampling_correction": False}
    return {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": correction,
        "vllm_importance_sampling_clip_max": recipe.rollout.correction_cap,
    }
