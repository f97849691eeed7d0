"""Agreement with all samples of the other presentations."""

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
from unswayed.training.rewards.pair import agreement


def probability_weighted_reward(choices: ArrayLike, n: int) -> FloatArray:
    """2 * (share of the other presentations' samples that name this sample's candidate) - 1.

    The expectation of `pair_reward` over which samples are paired: the same objective with less
    noise. -1 for an unparsed answer.
    """
    z = choices_of(choices, n)
    check_presentations("probability-weighted", z)
    hits = named(z, n)
    shares = elsewhere(hits.mean(axis=-2))[..., None, :]
    result: FloatArray = 2.0 * np.where(hits, shares, 0.0).sum(axis=-1) - 1.0
    return result


PROBABILITY_WEIGHTED = Reward(
    "Share of the samples of all other presentations that agree: `pair` with less noise.",
    sampled=lambda choices, right: probability_weighted_reward(choices, right.shape[-1]),
    expected=lambda p, right: agreement(p),
)
