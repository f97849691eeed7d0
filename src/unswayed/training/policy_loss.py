"""A policy gradient as numbers, from which an engine configures its own loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import Advantage

Aggregate = Literal["response", "dapo", "bnpo", "dr_grpo"]
"""Weights of tokens: the mean over a response and then over responses; or trl's, where long responses weigh more."""

RESPONSE: Final = "grpo"
"""Name in recipes, and trl's, of the mean over responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoss:
    """A clipped policy gradient with a KL term and an entropy bonus."""

    advantage: Advantage  # samples that a sample is compared with
    # how far the ratio of probabilities may fall below 1 and rise above it
    clip: tuple[float, float]
    # weight of the KL term to the untrained model, by k3: r - log r - 1 for a token, r = untrained / trained
    kl: float
    entropy: float  # weight of the entropy bonus; trl's is a mean over the tokens of a micro batch
    aggregate: Aggregate  # how tokens are weighed
    iterations: int  # optimiser steps per batch of responses

    @classmethod
    def of(cls, recipe: Recipe, advantage: Advantage | None) -> PolicyLoss:
        """Return the loss of a recipe; `advantage` is that of the reward."""
        optimiser = recipe.optimiser
        return cls(
            advantage=advantage or "group",
            clip=(optimiser.clip, optimiser.clip),
            kl=optimiser.beta,
            entropy=optimiser.entropy,
            aggregate="response" if optimiser.loss == RESPONSE else optimiser.loss,
            iterations=optimiser.inner_updates,
        )

    def trl_arguments(self) -> dict[str, Any]:
        """Return the loss as arguments of trl's `GRPOConfig`, which estimates the KL by k3."""
        return {
            "loss_type": RESPONSE if self.aggregate == "response" else self.aggregate,
            "beta": self.kl,
            "epsilon": self.clip[0],
            "epsilon_high": self.clip[1],
            "entropy_coef": self.entropy,
            "num_iterations": self.iterations,
        }
