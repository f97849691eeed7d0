"""Pay for a response by itself: right, well formed, of a good length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.training.rewards.blocks import FloatArray, choices_of


def accuracy_reward(choices: ArrayLike, right: ArrayLike) -> FloatArray:
    """r_acc: +1 for a right candidate, -1 for a wrong one and for an unparsed answer.

    Source: PA-GRPO, Eq. 5 and section 3.3.2.
    """
    mask = np.asarray(right, dtype=np.bool_)
    z = choices_of(choices, mask.shape[-1])
    at = np.maximum(z, 0).reshape(*z.shape[:-2], -1)
    hit = np.take_along_axis(np.broadcast_to(mask, (*z.shape[:-2], mask.shape[-1])), at, axis=-1)
    return np.where(hit.reshape(z.shape) & (z >= 0), 1.0, -1.0)


def format_reward(choices: ArrayLike, well_formed: ArrayLike, *, size: float = 0.3) -> FloatArray:
    """r_fmt: +size if the answer is parsed and has the form that was asked for, else -size."""
    good = np.asarray(well_formed, dtype=np.bool_) & (choices_of(choices) >= 0)
    return np.where(good, size, -size)


def length_reward(
    choices: ArrayLike,
    reasoning_chars: ArrayLike,
    *,
    band: tuple[int, int] | None = None,
    size: float = 0.1,
) -> FloatArray:
    """r_len: +size for reasoning inside the band, else -size; without a band 0. Unparsed: -size.

    The band is the shortest and longest rewarded length, both inclusive; None for direct prompts. The
    paper's size is 0.1; its band is not stated, and 500 to 5000 characters are the authors' code's.
    """
    z = choices_of(choices)
    if band is None:
        return np.where(z >= 0, 0.0, -size)
    length = np.asarray(reasoning_chars)
    inside = (length >= band[0]) & (length <= band[1])
    return np.where(inside & (z >= 0), size, -size)
