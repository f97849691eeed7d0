"""Rewards and advantages of PA-GRPO: pure functions of blocks of shape (..., P, N), in float64.

P presentations of one item, N samples of each; leading axes, if any, are items. A choice is a
candidate or UNPARSED (-1), so presentations are compared by content and never by label. Every
training engine calls these functions and nothing else, and `tests/training/golden.json` holds
them to the same numbers.

    r = r_acc + r_len + r_fmt + lam * r_con                          (Eq. 6-7)
    A = (r - mean) / (sd + epsilon) over the group, 0 if sd < delta   (Eq. 11-12)

Source: PA-GRPO (arXiv 2603.21016), section 3. The paper leaves ddof, epsilon, delta and the length
band open; the defaults here are those of the library its authors trained with (ddof 1, epsilon
1e-6), delta 1e-6, and the band of their code. Where their released code departs from the paper it
is not followed: rewards here belong to a whole response (theirs are averaged over padded tokens,
so a response's length changes every advantage of its group), samples are paired by an explicit key
(theirs by order of appearance), the consistency of more than two presentations pools all P * N
samples (theirs goes column by column, here `consistency="columnwise"`), the delta gate exists
(theirs floors the variance and clamps advantages to 5), and an unparsed answer is inconsistent
(theirs leaves the whole pair out).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.decisions import UNPARSED
from unswayed.errors import ShapeError
from unswayed.reward_settings import REWARDS, RewardSettings

__all__ = [
    "Rewards",
    "SampleKey",
    "Samples",
    "accuracy_reward",
    "block_rows",
    "columnwise_reward",
    "consistency_reward",
    "format_reward",
    "group_advantage",
    "invariance_reward",
    "length_reward",
    "no_reward",
    "prompt_advantage",
    "right_mask",
    "score",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class SampleKey(NamedTuple):
    """Which sample a row of a batch is.

    Attributes:
        item_id: The item.
        presentation: Index of the presentation, 0 to P-1.
        sample: Index of the sample of that presentation, 0 to N-1.
    """

    item_id: str
    presentation: int
    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What was sampled for one item, or for several of the same shape.

    Attributes:
        choices: Candidate or UNPARSED, shape (..., P, N).
        right: Whether a candidate is right, shape (..., n).
        well_formed: Whether the answer has the form that was asked for, shape (..., P, N).
        reasoning_chars: Characters of reasoning, shape (..., P, N); not read without a band.
    """

    choices: IntArray
    right: BoolArray
    well_formed: BoolArray
    reasoning_chars: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """The parts of the reward and the advantages, each of shape (..., P, N).

    Attributes:
        accuracy, length, format, consistency: The parts, without the weight lam.
        total: accuracy + length + format + lam * consistency.
        advantages: What the policy gradient is weighted with.
        deviation: Standard deviation of the comparison set that each sample belongs to.
    """

    accuracy: FloatArray
    length: FloatArray
    format: FloatArray
    consistency: FloatArray
    total: FloatArray
    advantages: FloatArray
    deviation: FloatArray


def right_mask(gold: Sequence[int], n: int) -> BoolArray:
    """Which of n candidates are right, shape (n,).

    Raises:
        ShapeError: If there is no right candidate, or one is out of range.
    """
    mask = np.zeros(n, dtype=np.bool_)
    for candidate in gold:
        if not 0 <= candidate < n:
            raise ShapeError(f"gold {candidate} is out of range: there are {n} candidates")
        mask[candidate] = True
    if not mask.any():
        raise ShapeError("gold names no candidate; training needs at least one right candidate")
    return mask


def accuracy_reward(choices: ArrayLike, right: ArrayLike) -> FloatArray:
    """r_acc: +1 for a right candidate, -1 for a wrong one and for an unparsed answer.

    Args:
        choices: Shape (..., P, N).
        right: Shape (..., n).

    Source: PA-GRPO, Eq. 5 and section 3.3.2.
    """
    z, mask = _choices(choices), np.asarray(right, dtype=np.bool_)
    _check_range(z, mask.shape[-1])
    at = np.maximum(z, 0).reshape(*z.shape[:-2], -1)
    hit = np.take_along_axis(np.broadcast_to(mask, (*z.shape[:-2], mask.shape[-1])), at, axis=-1)
    return np.where(hit.reshape(z.shape) & (z >= 0), 1.0, -1.0)


def format_reward(choices: ArrayLike, well_formed: ArrayLike, *, size: float = 0.3) -> FloatArray:
    """r_fmt: +size if the answer is parsed and has the form that was asked for, else -size."""
    good = np.asarray(well_formed, dtype=np.bool_) & (_choices(choices) >= 0)
    return np.where(good, size, -size)


def length_reward(
    choices: ArrayLike,
    reasoning_chars: ArrayLike,
    *,
    band: tuple[int, int] | None = None,
    size: float = 0.1,
) -> FloatArray:
    """r_len: +size for reasoning inside the band, else -size; without a band 0. Unparsed: -size.

    Args:
        choices: Shape (..., P, N).
        reasoning_chars: Characters of reasoning, shape (..., P, N).
        band: Shortest and longest rewarded length, both inclusive; None for direct prompts.
        size: The paper's 0.1. Its band is not stated; 500 to 5000 is the authors' code's.
    """
    z = _choices(choices)
    if band is None:
        return np.where(z >= 0, 0.0, -size)
    length = np.asarray(reasoning_chars)
    inside = (length >= band[0]) & (length <= band[1])
    return np.where(inside & (z >= 0), size, -size)


def consistency_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con, as the paper defines it: +1 for agreement across presentations, else -1.

    Two presentations: the i-th samples of both are compared (Eq. 8). More: +1 for the samples that
    name the group's unique mode, counted over all P * N samples; if two candidates share the
    highest count nobody gets +1 (Eq. 9-10). An unparsed answer counts for no candidate, equals
    nothing, and gets -1.

    Args:
        choices: Shape (..., P, N).
        n: Number of candidates.

    Returns:
        +1 or -1, shape (..., P, N).
    """
    z = _choices(choices)
    _check_range(z, n)
    if z.shape[-2] == 2:
        same = (z[..., :1, :] == z[..., 1:, :]) & (z[..., :1, :] >= 0)
        return np.where(np.broadcast_to(same, z.shape), 1.0, -1.0)
    counts = _one_hot(z, n).sum(axis=(-3, -2))
    highest = counts.max(axis=-1, keepdims=True)
    unique = (counts == highest).sum(axis=-1) == 1
    mode = np.where(unique, counts.argmax(axis=-1), UNPARSED - 1)  # a tie equals no choice
    return np.where((z == mode[..., None, None]) & (z >= 0), 1.0, -1.0)


def no_reward(choices: ArrayLike, n: int) -> FloatArray:
    """No consistency reward: 0 for every sample."""
    return np.zeros(_choices(choices).shape)


def columnwise_reward(choices: ArrayLike, n: int) -> FloatArray:
    """r_con of the authors' released code: the i-th samples of all presentations vote.

    +1 for the samples that name the candidate which more than half of the P presentations name in
    their i-th sample, else -1. For two presentations it equals `consistency_reward`.

    Args:
        choices: Shape (..., P, N).
        n: Number of candidates.

    Returns:
        +1 or -1, shape (..., P, N).
    """
    z = _choices(choices)
    _check_range(z, n)
    named = _one_hot(z, n)
    majority = 2 * named.sum(axis=-3, keepdims=True) > z.shape[-2]
    return np.where((named & majority).any(axis=-1), 1.0, -1.0)


def invariance_reward(choices: ArrayLike, n: int) -> FloatArray:
    """A consistency reward that rewards invariance only, not confidence (not part of PA-GRPO).

    2 * (how often the other presentations name this candidate - how often the other samples of
    this presentation do): an unbiased estimate whose expected gradient is that of minus the
    variance over presentations. The paper's r_con also pays for sharper answers, right or wrong.

    Args:
        choices: Shape (..., P, N); at least two presentations and two samples.
        n: Number of candidates.

    Returns:
        Values in [-2, 2], shape (..., P, N); 0 for an unparsed answer.

    Raises:
        ShapeError: For one presentation or one sample.
    """
    z = _choices(choices)
    _check_range(z, n)
    n_presentations, n_samples = z.shape[-2:]
    if n_presentations < 2 or n_samples < 2:
        raise ShapeError(
            f"reward inv needs at least 2 presentations and 2 samples, got {n_presentations} and "
            f"{n_samples}."
        )
    named = _one_hot(z, n)
    here = named.sum(axis=-2, keepdims=True)
    elsewhere = (here.sum(axis=-3, keepdims=True) - here) / ((n_presentations - 1) * n_samples)
    others = (here - 1) / (n_samples - 1)
    result: FloatArray = np.where(named, 2.0 * (elsewhere - others), 0.0).sum(axis=-1)
    return result


def group_advantage(
    rewards: ArrayLike, *, epsilon: float = 1e-6, delta: float = 1e-6, ddof: int = 1
) -> FloatArray:
    """Advantage of each sample against the mean of its permutation group.

    Args:
        rewards: Total reward r, shape (..., P, N): P presentations of one item, N samples of each.
        epsilon: Added to the standard deviation.
        delta: A group whose standard deviation is below this gets advantage 0.
        ddof: 1 or 0.

    Returns:
        Advantages, shape (..., P, N), unitless.

    Raises:
        ShapeError: If `rewards` has fewer than two axes, or a group too few samples for `ddof`.

    Source: PA-GRPO (arXiv 2603.21016), Eq. 11-12. The paper does not state ddof; its code's is 1.
    """
    r = _block(rewards)
    flat = r.reshape(*r.shape[:-2], -1)
    return _standardise(flat, epsilon, delta, ddof)[0].reshape(r.shape)


def prompt_advantage(
    rewards: ArrayLike, *, epsilon: float = 1e-6, delta: float = 1e-6, ddof: int = 1
) -> FloatArray:
    """Advantage of each sample against the mean of its own presentation: plain GRPO.

    Args and errors are those of `group_advantage`.
    """
    return _standardise(_block(rewards), epsilon, delta, ddof)[0]


def score(samples: Samples, settings: RewardSettings) -> Rewards:
    """Every part of the reward, the total and the advantages.

    Raises:
        ShapeError: If shapes do not agree or a choice is out of range.
    """
    z, n = samples.choices, int(samples.right.shape[-1])
    accuracy = accuracy_reward(z, samples.right)
    length = length_reward(
        z, samples.reasoning_chars, band=settings.length_band, size=settings.length_size
    )
    form = format_reward(z, samples.well_formed, size=settings.format_size)
    consistency = REWARDS.load(settings.consistency or "con")(z, n)
    total = accuracy + length + form + settings.lam * consistency
    # A comparison set is the last axis: one presentation, or the whole group.
    sets = total if settings.advantage == "prompt" else total.reshape(*total.shape[:-2], -1)
    advantages, deviation = _standardise(sets, settings.epsilon, settings.delta, settings.ddof)
    return Rewards(
        accuracy=accuracy,
        length=length,
        format=form,
        consistency=consistency,
        total=total,
        advantages=advantages.reshape(total.shape),
        deviation=np.broadcast_to(deviation, sets.shape).reshape(total.shape),
    )


def block_rows(
    keys: Sequence[SampleKey], *, n_presentations: int, n_samples: int
) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Where each sample of each item stands in a batch, whatever the order of the batch.

    Args:
        keys: One per row of the batch.
        n_presentations: P.
        n_samples: N.

    Returns:
        The G item ids in order of first appearance, and the row of each sample, shape (G, P, N):
        `values[rows]` are blocks, and `out[rows] = blocks` puts results back in batch order.

    Raises:
        ShapeError: If a sample is missing, repeated or out of range; names the item.
    """
    items: dict[str, int] = {}
    for key in keys:
        items.setdefault(key.item_id, len(items))
    rows = np.full((len(items), n_presentations, n_samples), -1, dtype=np.intp)
    for row, key in enumerate(keys):
        if not (0 <= key.presentation < n_presentations and 0 <= key.sample < n_samples):
            raise ShapeError(
                f"{key.item_id}: presentation {key.presentation}, sample {key.sample} is outside "
                f"a group of {n_presentations} presentations x {n_samples} samples"
            )
        place = (items[key.item_id], key.presentation, key.sample)
        if rows[place] >= 0:
            raise ShapeError(
                f"{key.item_id}: presentation {key.presentation}, sample {key.sample} is in the "
                "batch twice"
            )
        rows[place] = row
    missing = np.argwhere(rows < 0)
    if len(missing):
        group, presentation, sample = (int(value) for value in missing[0])
        raise ShapeError(
            f"{tuple(items)[group]}: presentation {presentation}, sample {sample} is not in the "
            f"batch ({len(missing)} samples missing). A permutation group must stay whole."
        )
    return tuple(items), rows


def _standardise(
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


def _one_hot(z: IntArray, n: int) -> BoolArray:
    result: BoolArray = z[..., None] == np.arange(n)
    return result


def _choices(choices: ArrayLike) -> IntArray:
    z = np.asarray(choices)
    if z.ndim < 2 or not np.issubdtype(z.dtype, np.integer):
        raise ShapeError(f"choices must be integers of shape (..., P, N), got {z.dtype}{z.shape}")
    return z.astype(np.int64, copy=False)


def _check_range(z: IntArray, n: int) -> None:
    if z.size and (z.min() < UNPARSED or z.max() >= n):
        raise ShapeError(
            f"choices run from {z.min()} to {z.max()}; with {n} candidates they are 0 to {n - 1}, "
            f"or {UNPARSED} for unparsed"
        )


def _block(rewards: ArrayLike) -> FloatArray:
    r = np.asarray(rewards, dtype=np.float64)
    if r.ndim < 2:
        raise ShapeError(f"rewards must have shape (..., P, N), got {r.shape}")
    return r
