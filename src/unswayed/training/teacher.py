"""The model's own average before training, as a target; how far it and the gold can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from unswayed.items import Item
from unswayed.rewards import FloatArray
from unswayed.training.targets import GoldNoise, gold_targets, noise_of_gold, own_average

__all__ = ["ENOUGH_GOLD", "gold_noise", "golden", "own_averages", "weighed_gold"]

ENOUGH_GOLD: Final = 20
"""Items with gold from which a temperature is chosen; with fewer it is 1."""


def own_averages(
    items: Sequence[Item], answers: Mapping[str, FloatArray], *, temperature: float
) -> list[FloatArray]:
    """The average of each item, shape (n,).

    Args:
        items: The items.
        answers: By item id, log-probabilities over `balanced(n)`, shape (n presentations, n).
        temperature: Of the average.
    """
    return [own_average(answers[item.id], tau=temperature) for item in items]


def gold_noise(items: Sequence[Item], answers: Mapping[str, FloatArray]) -> GoldNoise:
    """The temperature of the average and the share of wrong gold under which gold is likeliest.

    Only items with one right candidate are looked at, and of several numbers of candidates the most
    frequent. Temperature 1 and share 0 where they are fewer than `ENOUGH_GOLD`.
    """
    judged = golden(items)
    if len(judged) < ENOUGH_GOLD:
        return GoldNoise(1.0, 0.0)
    logits = np.stack([answers[item.id].mean(axis=0) for item in judged])
    return noise_of_gold(logits, [item.gold_candidates()[0] for item in judged])


def golden(items: Sequence[Item]) -> list[Item]:
    """The items whose gold can be held against the average."""
    single = [item for item in items if len(item.gold_candidates()) == 1]
    numbers = Counter(item.n for item in single)
    n = max(numbers, key=lambda number: (numbers[number], -number), default=0)
    return [item for item in single if item.n == n]


def weighed_gold(
    items: Sequence[Item], averages: Sequence[FloatArray], *, epsilon: float
) -> list[FloatArray]:
    """What gold makes of each item's average, shape (n,); gold itself for epsilon 0.

    Items with several right candidates keep their gold, equally much for each.
    """
    targets = []
    for item, average in zip(items, averages, strict=True):
        right = item.gold_candidates()
        if len(right) > 1:
            target = np.zeros(item.n)
            target[list(right)] = 1 / len(right)
        else:
            (target,) = gold_targets(np.array(right), item.n, own=average[None], epsilon=epsilon)
        targets.append(target)
    return targets
