"""Agreement with the one candidate that a group names most often: the paper for more than two presentations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.model.decisions import UNPARSED
from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import FloatArray, choices_of, named


def mode_reward(choices: ArrayLike, n: int) -> FloatArray:
    """+1 for the samples that name the group's unique mode over all P * N samples, else -1.

    If two candidates share the highest count nobody gets +1, nor does an unparsed answer.

    Source: PA-GRPO (arXiv 2603.21016), Eq. 9-10, here for two presentations as well.
    """
    z = choices_of(choices, n)
    counts = named(z, n).sum(axis=(-3, -2))
    highest = counts.max(axis=-1, keepdims=True)
    unique = (counts == highest).sum(axis=-1) == 1
    mode = np.where(unique, counts.argmax(axis=-1), UNPARSED - 1)  # a tie equals no choice
    return np.where((z == mode[..., None, None]) & (z >= 0), 1.0, -1.0)


MODE = Reward(
    "+1 for the candidate that the group names most often in all its samples, otherwise -1.",
    sampled=lambda choices, right: mode_reward(choices, right.shape[-1]),
)
