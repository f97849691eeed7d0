"""What an item's answers are trained towards: the model's own average, the gold, or both weighed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from unswayed.errors import ShapeError
from unswayed.rewards import FloatArray, IntArray

__all__ = ["EPSILONS", "TAUS", "GoldNoise", "gold_targets", "noise_of_gold", "own_average"]

TAUS: Final = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
"""Temperatures tried for the model's own average."""

EPSILONS: Final = tuple(round(0.05 * step, 2) for step in range(10))
"""Shares of wrong gold that are tried."""


class GoldNoise(NamedTuple):
    """How far gold and the model's own average can be trusted.

    Attributes:
        tau: Temperature of the average.
        epsilon: Share of items whose gold is wrong.
    """

    tau: float
    epsilon: float


def own_average(log_p: FloatArray, *, tau: float = 1.0) -> FloatArray:
    """The mean of the logits over a balanced set of presentations, as a distribution.

    Whatever is added to a position's or a label's logit is the same for all candidates in the mean
    of a set that shows each candidate equally often in each place, so it cancels.

    Args:
        log_p: Log-probabilities of the candidates, shape (..., P, n), over a balanced set.
        tau: Temperature; below 1 sharpens.

    Returns:
        Distributions, shape (..., n).
    """
    result: FloatArray = softmax(np.asarray(log_p, dtype=np.float64).mean(axis=-2) / tau, axis=-1)
    return result


def noise_of_gold(
    mean_logits: FloatArray,
    gold: Sequence[int],
    *,
    taus: Sequence[float] = TAUS,
    epsilons: Sequence[float] = EPSILONS,
) -> GoldNoise:
    """The temperature and the share of wrong gold under which the gold is likeliest.

    The truth is drawn from the average at temperature tau; gold names it with probability
    1 - epsilon and any other candidate equally often.

    Args:
        mean_logits: Mean over a balanced set of presentations, shape (items, n).
        gold: The candidate that gold names, of each item.
        taus: The temperatures tried; of equal likelihoods the first stands.
        epsilons: The shares tried.

    Raises:
        ShapeError: If there is not one gold per item, or no item.
    """
    items, n = mean_logits.shape
    if items != len(gold) or not items:
        raise ShapeError(f"{len(gold)} gold answers for {items} items")
    rows, chosen = np.arange(items), np.asarray(gold)
    best: tuple[float, GoldNoise] | None = None
    for tau in taus:
        own = np.exp(log_softmax(mean_logits / tau, axis=-1))[rows, chosen]
        for epsilon in epsilons:
            likelihood = (1 - epsilon) * own + epsilon / (n - 1) * (1 - own)
            value = float(np.log(np.maximum(likelihood, np.finfo(np.float64).tiny)).mean())
            if best is None or value > best[0]:
                best = value, GoldNoise(tau, epsilon)
    assert best is not None  # taus and epsilons are not empty
    return best[1]


def gold_targets(
    gold: IntArray, n: int, *, own: FloatArray | None = None, epsilon: float = 0.0
) -> FloatArray:
    """Gold as distributions; with a share of wrong gold, weighed against the model's own average.

    Args:
        gold: The candidate that gold names, shape (items,).
        n: Number of candidates.
        own: Prior of each item, shape (items, n); uniform where None.
        epsilon: Share of items whose gold is wrong.

    Returns:
        The posterior of the truth given gold, shape (items, n); one-hot for epsilon 0.
    """
    likelihood = np.full((len(gold), n), epsilon / (n - 1))
    likelihood[np.arange(len(gold)), gold] = 1 - epsilon
    posterior = likelihood if own is None else likelihood * own
    total = posterior.sum(axis=-1, keepdims=True)
    result: FloatArray = np.where(total > 0, posterior / np.where(total > 0, total, 1), likelihood)
    return result
