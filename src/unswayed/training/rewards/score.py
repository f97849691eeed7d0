"""The whole reward of a batch of samples, and its advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from unswayed.base.counts import plural
from unswayed.base.errors import ShapeError
from unswayed.training.reward_settings import REWARDS, RewardSettings
from unswayed.training.rewards.blocks import BoolArray, FloatArray, IntArray
from unswayed.training.rewards.response import accuracy_reward, format_reward, length_reward

PARTS: Final = ("accuracy", "length", "format", "consistency", "response")
"""The reward's parts, as they are logged: `rewards/accuracy/mean`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Samples for one item, or for several of the same shape."""

    choices: IntArray  # candidate or UNPARSED, shape (..., P, N)
    right: BoolArray  # whether a candidate is right, shape (..., n)
    well_formed: BoolArray  # whether the answer has the form that was asked for, shape (..., P, N)
    reasoning_chars: IntArray  # characters of reasoning, shape (..., P, N); not read without a band
    response: FloatArray | None = None  # values of the reward of responses, shape (..., P, N)


class Rewards(NamedTuple):
    """The parts of the reward and the advantages, each of shape (..., P, N)."""

    # accuracy, length, format, consistency, response: the parts, without `weights`
    accuracy: FloatArray
    length: FloatArray
    format: FloatArray
    consistency: FloatArray
    response: FloatArray
    total: FloatArray  # sum of the parts, each with its weight
    advantages: FloatArray  # what the policy gradient is weighted with
    deviation: FloatArray  # standard deviation of the comparison set that each sample belongs to


def weights(settings: RewardSettings) -> dict[str, float]:
    """Return the parts that are paid for and logged, with their weights."""
    sizes = settings.accuracy_size, 1.0, 1.0, settings.lam, settings.response_size
    return dict(zip(PARTS if settings.response else PARTS[:-1], sizes, strict=False))


def score(
    samples: Samples, settings: RewardSettings, *, present: BoolArray | None = None
) -> Rewards:
    """Return every part of the reward, the total and the advantages.

    Args:
        samples: Choices of samples that were lost are UNPARSED.
        settings: Every number.
        present: Samples that were not lost, shape (..., P, N); None for all. The others are compared with
            nothing and have advantage 0.
    """
    z = samples.choices
    accuracy = accuracy_reward(z, samples.right)
    length = length_reward(
        z, samples.reasoning_chars, band=settings.length_band, size=settings.length_size
    )
    form = format_reward(z, samples.well_formed, size=settings.format_size)
    consistency = REWARDS.load(settings.consistency or "con").sampled(z, samples.right)
    response = np.zeros(z.shape) if samples.response is None else samples.response
    parts = dict(zip(PARTS, (accuracy, length, form, consistency, response), strict=True))
    weighed = (weight * parts[name] for name, weight in weights(settings).items())
    total = sum(weighed, np.zeros(z.shape))
    # A comparison set is the last axis: one presentation, or the whole group.
    sets = total if settings.advantage == "prompt" else total.reshape(*total.shape[:-2], -1)
    numbers = settings.epsilon, settings.delta, settings.ddof
    if present is None:
        advantages, deviation = standardise(sets, *numbers)
    else:
        advantages, deviation = standardise_present(sets, present.reshape(sets.shape), *numbers)
    return Rewards(
        **parts,
        total=total,
        advantages=advantages.reshape(total.shape),
        deviation=np.broadcast_to(deviation, sets.shape).reshape(total.shape),
    )


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
        raise ShapeError(f"{plural(size, 'sample')} to compare; ddof {ddof} needs {ddof + 1}")
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
