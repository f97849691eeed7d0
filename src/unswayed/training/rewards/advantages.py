"""Baselines of a reward: the permutation group, or the presentation. PA-GRPO, Eq. 11-12."""

from __future__ import annotations

import numpy as np

from unswayed.base.errors import ShapeError
from unswayed.training.rewards.blocks import BoolArray, FloatArray


def standardise(
    sets: FloatArray, epsilon: float, delta: float, ddof: int
) -> tuple[FloatArray, FloatArray]:
    """Return advantages of total rewards in their comparison set, the last axis, and its standard deviation.

    Source: PA-GRPO (arXiv 2603.21016), Eq. 11-12. The paper does not state ddof; its code's is 1.

    Raises:
        ShapeError: If a set has too few samples for `ddof`.
    """
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
