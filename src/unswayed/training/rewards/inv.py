"""Invariance without confidence: not part of PA-GRPO."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.base.errors import ShapeError
from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import (
    FloatArray,
    check_presentations,
    choices_of,
    elsewhere,
    named,
)


def invariance_reward(choices: ArrayLike, n: int) -> FloatArray:
    """Return a consistency reward that rewards invariance only, not confidence (not part of PA-GRPO).

    2 * (how often the other presentations name this candidate - how often the other samples of
    this presentation do): an unbiased estimate whose expected gradient is that of minus the
    variance over presentations. The paper's r_con also pays for sharper answers, right or wrong.
    Values in [-2, 2], shape (..., P, N); 0 for an unparsed answer. At least two of each are needed.
    """
    z = choices_of(choices, n)
    check_presentations("inv", z)
    if z.shape[-1] < 2:
        raise ShapeError(f"reward inv needs at least 2 samples, got {z.shape[-1]}.")
    hits = named(z, n)
    counts = hits.sum(axis=-2, keepdims=True)
    within = (counts - 1) / (z.shape[-1] - 1)
    across = elsewhere(hits.mean(axis=-2))[..., None, :]
    result: FloatArray = np.where(hits, 2.0 * (across - within), 0.0).sum(axis=-1)
    return result


INV = Reward(
    "Invariance without confidence: agreement with other presentations, less agreement within the "
    "same one (not part of PA-GRPO).",
    sampled=lambda choices, right: invariance_reward(choices, right.shape[-1]),
    expected=lambda p, right: 2.0 * (elsewhere(p) - p),
    unparsed=0.0,
)
