"""Right in every presentation at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import BoolArray, FloatArray
from unswayed.training.rewards.response import accuracy_reward


def joint_reward(choices: ArrayLike, right: ArrayLike) -> FloatArray:
    """+1 where the i-th samples of all presentations are right, else -1: the same for all of them.

    Source: J1 (arXiv 2505.10320): a verdict is paid for only if it is right in both orders.
    """
    hit = accuracy_reward(choices, right) > 0
    return np.where(np.broadcast_to(hit.all(axis=-2, keepdims=True), hit.shape), 1.0, -1.0)


def _expected(p: FloatArray, right: BoolArray) -> FloatArray:
    mask = right[..., None, :]
    sure = (p * mask).sum(axis=-1)  # probability of a right answer, shape (..., P)
    rest = np.stack(
        [np.delete(sure, own, axis=-1).prod(axis=-1) for own in range(p.shape[-2])], axis=-1
    )
    return 2.0 * np.where(mask, rest[..., None], 0.0) - 1.0


JOINT = Reward(
    "+1 if the answer is right in every presentation, otherwise -1 (J1, arXiv 2505.10320).",
    sampled=joint_reward,
    expected=_expected,
)
