"""Baselines of a reward: the permutation group, or the presentation. PA-GRPO, Eq. 11-12."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.base.errors import ShapeError
from unswayed.training.rewards.blocks import BoolArray, FloatArray


def group_advantage(
    rewards: ArrayLike, *, epsilon: float = 1e-6, delta: float = 1e-6, ddof: int = 1
) -> FloatArray:
    """Advantage of each sample against the mean of its permutation group.

    From total rewards of shape (..., P, N); `ShapeError` where a group has too few samples for `ddof`.

    Source: PA-GRPO (arXiv 2603.21016), Eq. 11-12. The paper does not state ddof; its code's is 1.
    """
    r = _block(rewards)
    flat = r.reshape(*r.shape[:-2], -1)
    return standardise(flat, epsilon, delta, ddof)[0].reshape(r.shape)


def prompt_advantage(
    rewards: ArrayLike, *, epsilon: float = 1e-6, delta: float = 1e-6, ddof: int = 1
) -> FloatArray:
    """Advantage of each sample against the mean of its own presentation: plain GRPO."""
    return standardise(_block(rewards), epsilon, delta, ddof)[0]


def standardise(
    sets: FloatArray, epsilon: float, delta: float, ddof: int
) -> tuple[FloatArray, FloatArray]:
    """Values minus their mean over the last axis, by their standard deviation; and the latter."""
    size = sets.shape[-1]
    if size <= ddof:
        raise ShapeError(f"{size} sample(s) to compare; ddof {ddof} needs at least {ddof + 1}")
    sets = np.ascontiguousarray(sets)  # one summation order, so that batching changes no bit
    centred = sets - sets.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / (size - ddof))
    still = deviation < delta
    scale = np.where(still, 1.0, deviation + epsilon)
    return np.where(still, 0.0, centred / np.where(scale > 0, scale, 1.0)), deviation


def standardise_present(
    sets: FloatArray, present: BoolArray, epsilon: float, delta: float, ddof: int
) -> tuple[FloatArray, FloatArray]:
    """Standardise the values of each set that are present; all others are 0.

    So are those of a set in which no more than `ddof` are present.
    """
    values, deviation = np.zeros(sets.shape), np.zeros((*sets.shape[:-1], 1))
    for at in np.ndindex(sets.shape[:-1]):
        kept = present[at]
        if kept.sum() > ddof:
            values[at][kept], deviation[at] = standardise(sets[at][kept], epsilon, delta, ddof)
    return values, deviation


def _block(rewards: ArrayLike) -> FloatArray:
    r = np.asarray(rewards, dtype=np.float64)
    if r.ndim < 2:
        raise ShapeError(f"rewards must have shape (..., P, N), got {r.shape}")
    return r
