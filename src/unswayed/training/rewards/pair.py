"""Agreement of the i-th samples of every two presentations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import (
    FloatArray,
    check_presentations,
    choices_of,
    elsewhere,
    named,
)


def pair_reward(choices: ArrayLike, n: int) -> FloatArray:
    """2 * (how many of the other presentations' i-th samples name this sample's candidate) - 1.

    A share of the P - 1 others, so that values lie in [-1, 1]; -1 for an unparsed answer. For two
    presentations it is the paper's r_con (Eq. 8).
    """
    z = choices_of(choices, n)
    check_presentations("pair", z)
    hits = named(z, n)
    others = hits.sum(axis=-3, keepdims=True) - hits
    agreeing = np.where(hits, others, 0).sum(axis=-1)
    result: FloatArray = 2.0 * agreeing / (z.shape[-2] - 1) - 1.0
    return result


def agreement(p: FloatArray) -> FloatArray:
    """2 * (probability of a candidate in the other presentations, averaged) - 1, shape of p."""
    return 2.0 * elsewhere(p) - 1.0


PAIR = Reward(
    "Share of the other presentations that agree, sample by sample: -1 for none, +1 for all.",
    sampled=lambda choices, right: pair_reward(choices, right.shape[-1]),
    expected=lambda p, right: agreement(p),
)
