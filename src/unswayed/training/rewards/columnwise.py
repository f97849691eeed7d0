"""The consistency reward of the released code of PA-GRPO."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import BoolArray, FloatArray, choices_of, named


def columnwise_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con of the authors' released code: the i-th samples of all presentations vote.

    +1 for the samples that name the candidate which more than half of the P presentations name in
    their i-th sample, else -1, shape (..., P, N). For two presentations it equals `consistency_reward`.
    """
    z = choices_of(choices, n)
    hits = named(z, n)
    majority = 2 * hits.sum(axis=-3, keepdims=True) > z.shape[-2]
    return np.where((hits & majority).any(axis=-1), 1.0, -1.0)


def _expected(p: FloatArray, right: BoolArray) -> FloatArray:
    """Return the expected reward from the distribution of how many other presentations name a candidate."""
    presentations = p.shape[-2]
    needed = presentations // 2  # others, so that with the own sample more than half agree
    result = np.empty(p.shape)
    for own in range(presentations):
        counts = np.zeros((*p.shape[:-2], p.shape[-1], presentations))
        counts[..., 0] = 1.0
        for other in range(presentations):
            if other != own:
                hit = p[..., other, :, None]
                counts[..., 1:] = counts[..., 1:] * (1 - hit) + counts[..., :-1] * hit
                counts[..., :1] *= 1 - hit
        result[..., own, :] = 2.0 * counts[..., needed:].sum(axis=-1) - 1.0
    return result


COLUMNWISE = Reward(
    "r_con of the authors' released code: the i-th samples of all presentations vote.",
    sampled=lambda choices, right: columnwise_reward(choices, right.shape[-1]),
    expected=_expected,
)
