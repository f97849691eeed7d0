"""Training targets of an item's answers: the model's own average, the gold, or both weighed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from unswayed.base.errors import ShapeError
from unswayed.base.quantiles import NORMAL
from unswayed.model.decisions import Estimate
from unswayed.model.items import Item, units_of
from unswayed.model.tasks import task_of
from unswayed.training.rewards import FloatArray, right_mask

TEMPERATURES: Final = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
"""Temperatures tried for the model's own average."""

EPSILONS: Final = tuple(round(0.05 * step, 2) for step in range(10))
"""Shares of wrong gold that are tried."""

FINE_TEMPERATURES: Final = tuple(np.geomspace(0.01, 100.0, 81).tolist())
"""Temperatures of a profile, 1 among them; wide, since one that is missing looks like wrong gold or hides it."""

FINE_STEPS: Final = 50
"""Steps of a profile from no wrong gold to gold by lot."""

LIKELY: Final = NORMAL**2 / 2
"""By how much a log-likelihood may be below the best within a 95% interval: chi-square / 2."""


class GoldNoise(NamedTuple):
    """Reliability of gold and of the model's own average."""

    temperature: float  # temperature of the average
    wrong_gold: float  # share of items whose gold is wrong


def own_average(log_p: FloatArray, *, temperature: float = 1.0) -> FloatArray:
    """Return the mean of the logits over a balanced set of presentations, as a distribution, shape (..., n).

    Whatever is added to a position's or a label's logit is the same for all candidates in the mean
    of a set that shows each candidate equally often in each place, so it cancels. A temperature below
    1 sharpens.
    """
    result: FloatArray = softmax(
        np.asarray(log_p, dtype=np.float64).mean(axis=-2) / temperature, axis=-1
    )
    return result


def noise_of_gold(
    mean_logits: FloatArray,
    gold: Sequence[int],
    *,
    temperatures: Sequence[float] = TEMPERATURES,
) -> GoldNoise:
    """Return the temperature and the share of wrong gold under which the gold is likeliest.

    The truth is drawn from the average, mean logits of shape (items, n), at a temperature; gold names
    it with probability 1 - epsilon and any other candidate equally often. Of equal likelihoods the
    first stands.
    """
    values = _log_likelihoods(mean_logits, gold, temperatures, EPSILONS)
    row, column = np.unravel_index(int(values.argmax()), values.shape)
    return GoldNoise(temperatures[int(row)], EPSILONS[int(column)])


def wrong_gold(mean_logits: FloatArray, gold: Sequence[int]) -> Estimate:
    """Return the share of wrong gold with its 95% profile-likelihood interval, whatever the temperature.

    From 0 to (n - 1) / n, which is gold by lot. "Wrong" is as in `noise_of_gold`: as often on items
    where the average is sure as on others. An average that is sure and wrong counts in it, since gold
    alone cannot tell the two apart; gold that is wrong on close items only does not, since a higher
    temperature says the same. Nor does gold that contradicts an average which is right more often than
    it is sure: one temperature, between .01 and 100, is taken for all items.
    """
    n = mean_logits.shape[1]
    shares = np.linspace(0.0, (n - 1) / n, FINE_STEPS + 1)
    profile = _peaks(_log_likelihoods(mean_logits, gold, FINE_TEMPERATURES, shares.tolist()))
    low, high = _likely(profile, shares)
    return Estimate(value=float(shares[profile.argmax()]), low=low, high=high, n=len(gold))


def shared_temperature(mean_logits: FloatArray, gold: Sequence[int]) -> float:
    """Return the temperature nearest to 1 that is likely, whether gold is always right or partly wrong.

    Where gold contradicts a sure average either of them may be wrong: all right, gold asks for a
    flatter average; partly wrong, for a sharper one. Log loss is convex in 1 / temperature, so a step from 1
    that both ask for, and that ends before the likeliest, makes the average better.
    """
    values = _log_likelihoods(mean_logits, gold, FINE_TEMPERATURES, EPSILONS)
    places = np.log(FINE_TEMPERATURES)
    _, highest = _likely(values[:, 0], places)
    lowest, _ = _likely(_peaks(values.T), places)
    return float(np.exp(min(max(0.0, lowest), highest)))


def _likely(profile: FloatArray, places: FloatArray) -> tuple[float, float]:
    """Return the ends of the 95% interval, on straight lines between the places of a profile."""
    above = profile - (profile.max() - LIKELY)
    within = np.flatnonzero(above >= 0)
    ends = []
    for inner, step in ((int(within[0]), -1), (int(within[-1]), 1)):
        outer = min(max(inner + step, 0), len(places) - 1)
        part = 0.0 if outer == inner else above[inner] / (above[inner] - above[outer])
        ends.append(float(places[inner] + part * (places[outer] - places[inner])))
    return ends[0], ends[1]


def _peaks(values: FloatArray) -> FloatArray:
    """Return the largest value of each column, shape (k, m) -> (m,), of a parabola through three rows."""
    rows, columns = values.argmax(axis=0), np.arange(values.shape[1])
    inner = rows.clip(1, len(values) - 2)
    before, peak, after = (values[inner + step, columns] for step in (-1, 0, 1))
    bend = 2 * peak - before - after
    steps = (after - before) / 2
    risen = peak + steps**2 / (2 * np.where(bend > 0, bend, np.inf))
    best: FloatArray = np.where(rows == inner, risen, values[rows, columns])
    return best


def _log_likelihoods(
    mean_logits: FloatArray,
    gold: Sequence[int],
    temperatures: Sequence[float],
    epsilons: Sequence[float],
) -> FloatArray:
    """Log-likelihood of the gold at each temperature and share, shape (temperatures, epsilons)."""
    items, n = mean_logits.shape
    if items != len(gold) or not items:
        raise ShapeError(f"{len(gold)} gold answers for {items} items")
    rows, chosen = np.arange(items), np.asarray(gold)
    shares = np.asarray(epsilons)[:, None]
    sums = []
    for temperature in temperatures:
        own = np.exp(log_softmax(mean_logits / temperature, axis=-1))[rows, chosen]
        likelihood = (1 - shares) * own + shares / (n - 1) * (1 - own)
        sums.append(np.log(np.maximum(likelihood, np.finfo(np.float64).tiny)).sum(axis=-1))
    return np.array(sums)


def gold_target(gold: int, own: FloatArray, *, epsilon: float) -> FloatArray:
    """Return the posterior of the truth given gold, shape (n,), with an item's own average as the prior.

    One-hot for epsilon 0, whatever the average.
    """
    likelihood = np.full(len(own), epsilon / (len(own) - 1))
    likelihood[gold] = 1 - epsilon
    posterior = likelihood * own
    total = posterior.sum()
    return posterior / total if total > 0 else likelihood


ENOUGH_GOLD: Final = 20
"""Items with gold from which a temperature is chosen; with fewer it is 1."""


def estimated_noise(
    items: Sequence[Item],
    answers: Mapping[str, FloatArray],
    *,
    temperature: float | None = None,
) -> GoldNoise:
    """Return the temperature of the average, unless it is given, and the share of wrong gold that are likeliest.

    Temperature 1 and share 0 where too few items can be `compared`.
    """
    against = compared(items, answers)
    if against is None:
        return GoldNoise(temperature or 1.0, 0.0)
    given = TEMPERATURES if temperature is None else (temperature,)
    return noise_of_gold(*against, temperatures=given)


def own_temperature(items: Sequence[Item], answers: Mapping[str, FloatArray]) -> float:
    """Return the temperature at which the average is a target: as near to 1 as the gold there is allows.

    1 where too few items can be `compared`; else `shared_temperature`.
    """
    against = compared(items, answers)
    return 1.0 if against is None else shared_temperature(*against)


def compared(
    items: Sequence[Item], answers: Mapping[str, FloatArray]
) -> tuple[FloatArray, list[int]] | None:
    """Mean logits, shape (items, n), and the gold beside them, of `golden` items; None where there are none."""
    judged = golden(items)
    if not judged:
        return None
    mean_logits = np.array([answers[item.id].mean(axis=0) for item in judged])
    return mean_logits, [item.gold_candidates()[0] for item in judged]


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
    """Return the first item of each question: duplicates are no evidence of their own."""
    first: dict[str, Item] = {}
    for unit, item in zip(units_of(items)[0], items, strict=True):
        first.setdefault(unit, item)
    return list(first.values())


def plain_gold(items: Sequence[Item]) -> list[FloatArray]:
    """Return the gold of each item, shape (n,), equally much for each right candidate."""
    masks = [right_mask(item.gold_candidates(), item.n) for item in items]
    return [mask / mask.sum() for mask in masks]


def weighed_gold(
    items: Sequence[Item], averages: Sequence[FloatArray], *, epsilon: float
) -> list[FloatArray]:
    """Return the target that gold makes of each item's average, shape (n,); gold itself for epsilon 0.

    Items with several right candidates keep their gold, equally much for each.
    """
    return [
        gold_target(int(gold.argmax()), average, epsilon=epsilon) if gold.max() == 1 else gold
        for gold, average in zip(plain_gold(items), averages, strict=True)
    ]
