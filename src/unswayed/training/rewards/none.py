"""No consistency reward."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import FloatArray, choices_of


def no_reward(choices: ArrayLike, n: int) -> FloatArray:
    """No consistency reward: 0 for every sample."""
    return np.zeros(choices_of(choices).shape)


NONE = Reward(
    "No consistency reward: 0 for every sample.",
    sampled=lambda choices, right: no_reward(choices, right.shape[-1]),
    expected=lambda p, right: np.zeros(p.shape),
    unparsed=0.0,
)
