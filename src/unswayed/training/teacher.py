"""The model's own average before training, as a target; how far it and the gold can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from unswayed.items import Item, units_of
from unswayed.rewards import FloatArray, right_mask
from unswayed.tasks import task_of
from unswayed.training.targets import (
    TAUS,
    GoldNoise,
    gold_targets,
    noise_of_gold,
    own_average,
    shared_temperature,
)

ENOUGH_GOLD: Final = 20
"""Items with gold from which a temperature is chosen; with fewer it is 1."""


class Compared(NamedTuple):
    """Items whose gold can be held against the average."""

    mean_logits: FloatArray  # mean over a balanced set of presentations, shape (items, n)
    gold: Sequence[int]  # the candidate that gold names


def own_averages(
    items: Sequence[Item], answers: Mapping[str, FloatArray], *, temperature: float
) -> list[FloatArray]:
    """The average of each item, shape (n,), of log-probabilities over `balanced(n)` by item id."""
    return [own_average(answers[item.id], tau=temperature) for item in items]


def gold_noise(
    items: Sequence[Item],
    answers: Mapping[str, FloatArray],
    *,
    temperature: float | None = None,
) -> GoldNoise:
    """The temperature of the average, unless it is given, and the share of wrong gold that are likeliest.

    Temperature 1 and share 0 where too few items can be `compared`.
    """
    against = compared(items, answers)
    if against is None:
        return GoldNoise(temperature or 1.0, 0.0)
    given = TAUS if temperature is None else (temperature,)
    return noise_of_gold(against.mean_logits, against.gold, taus=given)


def own_temperature(items: Sequence[Item], answers: Mapping[str, FloatArray]) -> float:
    """The temperature at which the average is a target: as near to 1 as the gold there is allows.

    1 where too few items can be `compared`; else `shared_temperature`.
    """
    against = compared(items, answers)
    return 1.0 if against is None else shared_temperature(against.mean_logits, against.gold)


def compared(items: Sequence[Item], answers: Mapping[str, FloatArray]) -> Compared | None:
    """Gold beside the averages, of the items that are `golden`; None where there are none."""
    judged = golden(items)
    if not judged:
        return None
    return Compared(
        np.array([answers[item.id].mean(axis=0) for item in judged]),
        [item.gold_candidates()[0] for item in judged],
    )


def golden(items: Sequence[Item]) -> list[Item]:
    """Items with one right candidate, of the most frequent number of candidates; none if too few.

    Too few are fewer than `ENOUGH_GOLD`. Levels of a scale are left out, since gold is then wrong by
    one level more often than by three; so are items of the same question as an earlier one.
    """
    single = [
        item for item in items if len(item.gold_candidates()) == 1 and not task_of(item.task).scaled
    ]
    asked = questions(single)
    numbers = Counter(item.n for item in asked)
    n = max(numbers, key=lambda number: (numbers[number], -number), default=0)
    return [item for item in asked if item.n == n] if numbers[n] >= ENOUGH_GOLD else []


def questions(items: Sequence[Item]) -> list[Item]:
    """The first item of each question: duplicates are no evidence of their own."""
    first: dict[str, Item] = {}
    for unit, item in zip(units_of(items)[0], items, strict=True):
        first.setdefault(unit, item)
    return list(first.values())


def plain_gold(items: Sequence[Item]) -> list[FloatArray]:
    """The gold of each item, shape (n,), equally much for each right candidate."""
    masks = [right_mask(item.gold_candidates(), item.n) for item in items]
    return [mask / mask.sum() for mask in masks]


def weighed_gold(
    items: Sequence[Item], averages: Sequence[FloatArray], *, epsilon: float
) -> list[FloatArray]:
    """What gold makes of each item's average, shape (n,); gold itself for epsilon 0.

    Items with several right candidates keep their gold, equally much for each.
    """
    targets = []
    for item, gold, average in zip(items, plain_gold(items), averages, strict=True):
        right = np.flatnonzero(gold)
        single = len(right) == 1
        targets.append(
            gold_targets(right, item.n, own=average[None], epsilon=epsilon)[0] if single else gold
        )
    return targets
