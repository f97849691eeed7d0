"""The consistency reward of PA-GRPO, as its paper defines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import FloatArray, choices_of
from unswayed.training.rewards.mode import mode_reward
from unswayed.training.rewards.pair import agreement


def consistency_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con, as the paper defines it: +1 for agreement across presentations, else -1.

    Two presentations: the i-th samples of both are compared (Eq. 8). More: +1 for the samples that
    name the group's unique mode, counted over all P * N samples; if two candidates share the
    highest count nobody gets +1 (Eq. 9-10). An unparsed answer counts for no candidate, equals
    nothing, and gets -1.
    """
    z = choices_of(choices, n)
    if z.shape[-2] == 2:
        same = (z[..., :1, :] == z[..., 1:, :]) & (z[..., :1, :] >= 0)
        return np.where(np.broadcast_to(same, z.shape), 1.0, -1.0)
    return mode_reward(z, n)


CON = Reward(
    "r_con as the paper defines it: +1 for agreement across presentations, otherwise -1.",
    sampled=lambda choices, right: consistency_reward(choices, right.shape[-1]),
    expected=lambda p, right: agreement(p),
    pairs_only=True,
)
