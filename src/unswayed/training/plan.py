"""A training run that has been checked, before any weights are loaded: what `--dry-run` shows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unswayed.backends.model_folders import OPEN
from unswayed.backends.own_prompts import OwnPrompt
from unswayed.training.chats import ChatTokens
from unswayed.training.groups import Groups
from unswayed.training.memory import Demand, described
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.provenance import Record
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.sampling import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Model, data, objective and length of a training run."""

    # objective, engine: registered names
    objective: str
    engine: str
    # recipe, settings: every number; settings is None for an objective without a reward
    recipe: Recipe
    settings: RewardSettings | None
    loss: PolicyLoss | None  # the policy gradient; None for an objective of another kind
    sampled: bool  # whether responses are sampled
    base: str  # the model as it was asked for, without `hf/`
    folder: Path  # where its files lie
    prompt: OwnPrompt  # how the result is to be asked: as it is asked here
    chat: ChatTokens  # how the model reads a chat
    groups: Groups  # the data
    demand: Demand  # what it asks of a process and its GPU
    record: Record  # what is written beside every checkpoint
    split: Split  # how a step's responses are divided; zeros where nothing is sampled
    # steps_per_epoch, steps: optimiser steps
    steps_per_epoch: int
    steps: int
    warnings: tuple[str, ...]  # what to know about the prompts, in sentences

    @property
    def example(self) -> str:
        """The first rendered chat, as the model reads it."""
        ids = self.chat.ids(self.groups.rows[0].messages)
        return str(self.chat.tokenizer.decode(ids))

    @property
    def responses_per_step(self) -> int:
        """Sampled responses per step, over all processes; 0 where nothing is sampled."""
        if not self.sampled:
            return 0
        groups = self.recipe.optimiser.items_per_step
        return groups * self.groups.n_presentations * self.recipe.rollout.samples

    @property
    def stop_every(self) -> int:
        """Steps after which a stop can be resumed exactly: those of one batch of responses."""
        return self.recipe.optimiser.inner_updates if self.sampled else 1

    def described(self) -> dict[str, Any]:
        """Return the plan as plain values, for `--dry-run`."""
        return {
            **self.record,
            "model": self.record["model"].removesuffix(OPEN),
            "layouts": list(self.groups.moving),
            "steps_per_epoch": self.steps_per_epoch,
            "steps": self.steps,
            "responses_per_step": self.responses_per_step,
            "memory": described(self.demand),
            "counts": dataclasses.asdict(self.groups.counts),
            "example": self.example,
            "warnings": list(self.warnings),
        }
