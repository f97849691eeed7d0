"""The whole reward of a batch of samples, and its advantages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unswayed.training.reward_settings import REWARDS, RewardSettings
from unswayed.training.rewards.advantages import standardise, standardise_present
from unswayed.training.rewards.blocks import BoolArray, FloatArray, IntArray
from unswayed.training.rewards.response import accuracy_reward, format_reward, length_reward


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Samples for one item, or for several of the same shape."""

    choices: IntArray  # candidate or UNPARSED, shape (..., P, N)
    right: BoolArray  # whether a candidate is right, shape (..., n)
    well_formed: BoolArray  # whether the answer has the form that was asked for, shape (..., P, N)
    reasoning_chars: IntArray  # characters of reasoning, shape (..., P, N); not read without a band


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """The parts of the reward and the advantages, each of shape (..., P, N)."""

    # accuracy, length, format, consistency: the parts, without the weight lam
    accuracy: FloatArray
    length: FloatArray
    format: FloatArray
    consistency: FloatArray
    total: FloatArray  # accuracy + length + format + lam * consistency
    advantages: FloatArray  # what the policy gradient is weighted with
    deviation: FloatArray  # standard deviation of the comparison set that each sample belongs to


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
    total = accuracy + length + form + settings.lam * consistency
    # A comparison set is the last axis: one presentation, or the whole group.
    sets = total if settings.advantage == "prompt" else total.reshape(*total.shape[:-2], -1)
    numbers = settings.epsilon, settings.delta, settings.ddof
    if present is None:
        advantages, deviation = standardise(sets, *numbers)
    else:
        advantages, deviation = standardise_present(sets, present.reshape(sets.shape), *numbers)
    return Rewards(
        accuracy=accuracy,
        length=length,
        format=form,
        consistency=consistency,
        total=total,
        advantages=advantages.reshape(total.shape),
        deviation=np.broadcast_to(deviation, sets.shape).reshape(total.shape),
    )
