"""Consistency rewards: what is paid for the candidate that a sample names, beside those of its group.

Each is a function of choices of shape (..., P, N), with its expectation where there is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unswayed.base.errors import ShapeError
from unswayed.training.reward_settings import Reward
from unswayed.training.rewards.blocks import BoolArray, FloatArray, choices_of, elsewhere, named
from unswayed.training.rewards.response import accuracy_reward


def no_reward(choices: ArrayLike, n: int) -> FloatArray:
    """No consistency reward: 0 for every sample."""
    return np.zeros(choices_of(choices).shape)


NONE = Reward(
    "No consistency reward: 0 for every sample.",
    sampled=lambda choices, right: no_reward(choices, right.shape[-1]),
    expected=lambda p, right: np.zeros(p.shape),
    unparsed=0.0,
)


def columnwise_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con of the authors' released code: the i-th samples of all presentations vote.

    +1 for the samples that name the candidate which more than half of the P presentations name in
    their i-th sample, else -1, shape (..., P, N). For two presentations it equals `consistency_reward`.
    """
    hits = named(choices, n)
    majority = 2 * hits.sum(axis=-3, keepdims=True) > hits.shape[-3]
    return np.where((hits & majority).any(axis=-1), 1.0, -1.0)


def _expected_vote(p: FloatArray, right: BoolArray) -> FloatArray:
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
    expected=_expected_vote,
)


def mode_reward(choices: ArrayLike, n: int) -> FloatArray:
    """+1 for the samples that name the group's unique mode over all P * N samples, else -1.

    If two candidates share the highest count nobody gets +1, nor does an unparsed answer.

    Source: PA-GRPO (arXiv 2603.21016), Eq. 9-10, here for two presentations as well.
    """
    hits = named(choices, n)
    counts = hits.sum(axis=(-3, -2), keepdims=True)
    highest = counts == counts.max(axis=-1, keepdims=True)
    unique = highest.sum(axis=-1, keepdims=True) == 1
    return np.where((hits & highest & unique).any(axis=-1), 1.0, -1.0)


MODE = Reward(
    "+1 for the candidate that the group names most often in all its samples, otherwise -1.",
    sampled=lambda choices, right: mode_reward(choices, right.shape[-1]),
)


def consistency_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con, as the paper defines it: +1 for agreement across presentations, else -1.

    Two presentations: the i-th samples of both are compared (Eq. 8). More: +1 for the samples that
    name the group's unique mode, counted over all P * N samples; if two candidates share the
    highest count nobody gets +1 (Eq. 9-10). An unparsed answer counts for no candidate, equals
    nothing, and gets -1.
    """
    pair = choices_of(choices).shape[-2] == 2
    return columnwise_reward(choices, n) if pair else mode_reward(choices, n)


def _agreement(p: FloatArray, right: BoolArray) -> FloatArray:
    """2 * (probability of a candidate in the other presentations, averaged) - 1, shape of p."""
    return 2.0 * elsewhere(p) - 1.0


CON = Reward(
    "r_con as the paper defines it: +1 for agreement across presentations, otherwise -1.",
    sampled=lambda choices, right: consistency_reward(choices, right.shape[-1]),
    expected=_agreement,
    pairs_only=True,
)


def pair_reward(choices: ArrayLike, n: int) -> FloatArray:
    """2 * (how many of the other presentations' i-th samples name this sample's candidate) - 1.

    A share of the P - 1 others, so that values lie in [-1, 1]; -1 for an unparsed answer. For two
    presentations it is the paper's r_con (Eq. 8).
    """
    hits = named(choices, n)
    result: FloatArray = (
        2.0 * (hits * elsewhere(hits, axis=-3, reward="reward pair")).sum(axis=-1) - 1.0
    )
    return result


PAIR = Reward(
    "Share of the other presentations that agree, sample by sample: -1 for none, +1 for all.",
    sampled=lambda choices, right: pair_reward(choices, right.shape[-1]),
    expected=_agreement,
)


def probability_weighted_reward(choices: ArrayLike, n: int) -> FloatArray:
    """2 * (share of the other presentations' samples that name this sample's candidate) - 1.

    The expectation of `pair_reward` over which samples are paired: the same objective with less
    noise. -1 for an unparsed answer.
    """
    hits = named(choices, n)
    shares = elsewhere(hits.mean(axis=-2), reward="reward probability-weighted")[..., None, :]
    result: FloatArray = 2.0 * (hits * shares).sum(axis=-1) - 1.0
    return result


PROBABILITY_WEIGHTED = Reward(
    "Share of the samples of all other presentations that agree: `pair` with less noise.",
    sampled=lambda choices, right: probability_weighted_reward(choices, right.shape[-1]),
    expected=_agreement,
)


def invariance_reward(choices: ArrayLike, n: int) -> FloatArray:
    """Return a consistency reward that rewards invariance only, not confidence (not part of PA-GRPO).

    2 * (how often the other presentations name this candidate - how often the other samples of
    this presentation do): an unbiased estimate whose expected gradient is that of minus the
    variance over presentations. The paper's r_con also pays for sharper answers, right or wrong.
    Values in [-2, 2], shape (..., P, N); 0 for an unparsed answer. At least two of each are needed.
    """
    hits = named(choices, n)
    samples = hits.shape[-2]
    if samples < 2:
        raise ShapeError(f"reward inv needs at least 2 samples, got {samples}.")
    within = (hits.sum(axis=-2, keepdims=True) - 1) / (samples - 1)
    across = elsewhere(hits.mean(axis=-2), reward="reward inv")[..., None, :]
    result: FloatArray = np.where(hits, 2.0 * (across - within), 0.0).sum(axis=-1)
    return result


INV = Reward(
    "Invariance without confidence: agreement with other presentations, less agreement within the "
    "same one (not part of PA-GRPO).",
    sampled=lambda choices, right: invariance_reward(choices, right.shape[-1]),
    expected=lambda p, right: 2.0 * (elsewhere(p) - p),
    unparsed=0.0,
)


def joint_reward(choices: ArrayLike, right: ArrayLike) -> FloatArray:
    """+1 where the i-th samples of all presentations are right, else -1: the same for all of them.

    Source: J1 (arXiv 2505.10320): a verdict is paid for only if it is right in both orders.
    """
    hit = accuracy_reward(choices, right) > 0
    return np.where(np.broadcast_to(hit.all(axis=-2, keepdims=True), hit.shape), 1.0, -1.0)


def _expected_joint(p: FloatArray, right: BoolArray) -> FloatArray:
    mask = right[..., None, :]
    sure = (p * mask).sum(axis=-1)  # probability of a right answer, shape (..., P)
    rest = np.stack(
        [np.delete(sure, own, axis=-1).prod(axis=-1) for own in range(p.shape[-2])], axis=-1
    )
    return 2.0 * np.where(mask, rest[..., None], 0.0) - 1.0


JOINT = Reward(
    "+1 if the answer is right in every presentation, otherwise -1 (J1, arXiv 2505.10320).",
    sampled=joint_reward,
    expected=_expected_joint,
)
