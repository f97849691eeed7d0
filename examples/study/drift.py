"""Compute the expected gradient of each estimator exactly: on content and on bias.

A judge of two candidates has, for candidate 0, the logits s1 = f + b in the order (0, 1) and
s2 = f - b in the order (1, 0): f is what it thinks of the content, b is its position bias. The
expected gradient E[A * d log p] on f and b says what training does to each, before any optimiser,
seed or noise. For one-token answers it is a finite sum over the outcomes of P * N samples, so no
simulation is needed.

The result that matters: without r_con the push on b carries the factor 2q - 1, where q is how
often gold agrees with the model's content preference, so noisy gold stops debiasing; r_con pushes
b towards 0 for every (f, b) and reads no gold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from unswayed.base.errors import UsageError
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import Samples, right_mask, score

ESTIMATORS: Final[Mapping[str, RewardSettings]] = {
    "GRPO": RewardSettings(consistency="none", advantage="prompt"),
    "+r_con": RewardSettings(consistency="con", advantage="prompt"),
    "+A_PA": RewardSettings(consistency="none", advantage="group"),
    "PA-GRPO": RewardSettings(consistency="con", advantage="group"),
}
"""The four arms of the paper's Table 2, as settings."""


class Drift(NamedTuple):
    """Expected gradient, in logit per unit of learning rate.

    Attributes:
        content: E[df]; positive strengthens the model's own content preference.
        bias: E[db]; negative shrinks a positive position bias.
    """

    content: float
    bias: float


def expected_drift(
    content: float,
    bias: float,
    gold_agrees: float,
    settings: RewardSettings,
    *,
    n_samples: int = 8,
) -> Drift:
    """The exact expected gradient on content preference and position bias.

    Args:
        content: f, the logit of candidate 0 without bias.
        bias: b, the logit that the first position adds.
        gold_agrees: q, the probability that gold is candidate 0.
        settings: Estimator; format and length rewards are equal for all samples and left out.
        n_samples: N; the sum has (N+1)(N+2)(N+3)/6 terms.

    Raises:
        UsageError: If `gold_agrees` is not a probability.
    """
    if not 0 <= gold_agrees <= 1:
        raise UsageError(f"gold_agrees is {gold_agrees}; it is a probability, 0 to 1.")
    p = 1.0 / (1.0 + np.exp(-np.array([content + bias, content - bias])))
    choices, weights = _outcomes(p, n_samples)
    pushed = np.zeros(2)
    for gold, probability in ((0, gold_agrees), (1, 1.0 - gold_agrees)):
        if probability == 0:
            continue
        samples = Samples(
            choices=choices,
            right=np.broadcast_to(right_mask([gold], 2), (len(choices), 2)),
            well_formed=np.ones(choices.shape, dtype=np.bool_),
            reasoning_chars=np.zeros(choices.shape, dtype=np.int64),
        )
        advantages = score(samples, settings).advantages
        # d log p(z) / ds_t = [z = 0] - p_t
        slope = (choices == 0) - p[None, :, None]
        pushed += probability * (weights[:, None] * (advantages * slope).mean(axis=2)).sum(axis=0)
    return Drift(content=float(pushed[0] + pushed[1]) / 2, bias=float(pushed[0] - pushed[1]) / 2)


def _outcomes(
    p: np.ndarray[tuple[int], np.dtype[np.float64]], n_samples: int
) -> tuple[
    np.ndarray[tuple[int, int, int], np.dtype[np.int64]],
    np.ndarray[tuple[int], np.dtype[np.float64]],
]:
    """All outcomes of N index-aligned pairs up to the order of the pairs, with probabilities.

    Every estimator treats the N pairs alike, so how often each of the four pairs occurs is enough.
    """
    pairs = ((0, 0), (0, 1), (1, 0), (1, 1))
    chance = [
        float(np.prod([p[t] if z == 0 else 1 - p[t] for t, z in enumerate(pair)])) for pair in pairs
    ]
    blocks, weights = [], []
    for a in range(n_samples + 1):
        for b in range(n_samples + 1 - a):
            for c in range(n_samples + 1 - a - b):
                counts = (a, b, c, n_samples - a - b - c)
                ways = math.factorial(n_samples)
                weight = 1.0
                for count, one in zip(counts, chance, strict=True):
                    ways //= math.factorial(count)
                    weight *= one**count
                sampled = [
                    pair for pair, count in zip(pairs, counts, strict=True) for _ in range(count)
                ]
                blocks.append(np.array(sampled).T)
                weights.append(ways * weight)
    return np.stack(blocks), np.array(weights)
