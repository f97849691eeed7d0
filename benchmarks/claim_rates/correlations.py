"""Measure how often the intervals of correlations with human scores contain the truth.

Quality is normal; the judge's score is quality with noise rounded to a level from 1 to 5 (ties
everywhere), the human score the mean of three raters who are rounded the same way. The noise is
scaled so that the Spearman correlation of the population is near the wanted one; the truth of all
three is the population's own. Under the null two judges differ in their noise alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from claim_rates.rate import Rate
from unswayed.metrics import Outcomes, difference, measure
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import FloatArray
from unswayed.model.presentation import canonical

TRIALS = 1500
POPULATION = 400_000
RESAMPLES = 400
AT_LEAST = 0.93
NAMES = ("pearson", "spearman", "kendall_tau")
LEVELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A judge and the items of a trial.

    Attributes:
        text: Judge and items in words.
        noise: Standard deviation of the judge's noise, where that of quality is 1.
        items: Items of a trial.
    """

    text: str
    noise: float
    items: int


WEAK, STRONG = 2.9, 0.6
"""Noise for Spearman .3 and .8."""

SETTINGS = tuple(
    Setting(text=f"ρ {rho}, {items:,} items", noise=noise, items=items)
    for rho, noise in ((".3", WEAK), (".8", STRONG))
    for items in (50, 200, 1000)
)
ALONE = 4
"""Judges beside the first whose differences are looked at together."""


def judged(items: int, noise: float, judges: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Scores of some judges, (I, J), and the human scores, (I,)."""
    draw = np.random.default_rng([seed, items, judges])
    quality = draw.normal(size=(items, 1))
    scale = np.sqrt(1.0 + noise**2)
    scores = 3.0 + 1.2 * (quality + draw.normal(0, noise, (items, judges))) / scale
    raters = 3.0 + 1.2 * (quality + draw.normal(0, 0.3, (items, 3)))
    rounded = (np.clip(np.round(side), 1, LEVELS) for side in (scores, raters))
    first, second = rounded
    return first, second.mean(axis=1)


def scored(score: FloatArray, human: FloatArray) -> Outcomes:
    """Outcomes of one judge under one presentation."""
    items = len(score)
    return Outcomes(
        item_ids=tuple(map(str, range(items))),
        groups=(None,) * items,
        shown=(canonical(LEVELS),),
        label_set=tuple("ABCDE"),
        choices=(score - 1).astype(np.int16)[:, None],
        gold=np.zeros((items, LEVELS), dtype=np.bool_),
        gold_kind=np.zeros(items, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
        human=human,
        score=score[:, None],
    )


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Coverage of the single values, then false alarms of differences."""
    runs = trials or TRIALS
    for setting in SETTINGS:
        yield from coverage(setting, runs)
        yield from false_alarms(setting, runs)


def coverage(setting: Setting, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Measure how often each interval holds the population's value."""
    counts = dict.fromkeys(NAMES, 0)
    for trial in range(runs):
        score, human = judged(setting.items, setting.noise, 1, seed=2 + trial)
        row = measure([scored(score[:, 0], human)], names=NAMES, resamples=RESAMPLES, seed=trial)
        for name in NAMES:
            cell, truth = row[name], population(size, setting.noise)[name]
            held = cell.low is not None and cell.high is not None and cell.low <= truth <= cell.high
            counts[name] += held
    for name, count in counts.items():
        yield Rate(
            statement=f"interval of {name}",
            setting=setting.text,
            count=count,
            trials=runs,
            at_least=AT_LEAST,
        )


@cache
def population(size: int, noise: float) -> dict[str, float]:
    """The values of so many items."""
    score, human = judged(size, noise, 1, seed=1)
    row = measure([scored(score[:, 0], human)], names=NAMES, resamples=0)
    return {name: value for name in NAMES if (value := row[name].value) is not None}


def false_alarms(setting: Setting, runs: int) -> Iterator[Rate]:
    """Measure how often two equally good judges are called different."""
    alone = dict.fromkeys(NAMES, 0)
    together = 0
    for trial in range(runs):
        score, human = judged(setting.items, setting.noise, 1 + ALONE, seed=9000 + trial)
        judges = {str(number): [scored(own, human)] for number, own in enumerate(score.T)}
        for name in NAMES:
            apart = difference(judges["1"], judges["0"], name)
            alone[name] += apart.low is not None and not _holds_zero(apart.low, apart.high)
        family = contrasts(judges, "spearman", seed=trial)
        ends = family.against("0").values()
        together += any(end.low is not None and not _holds_zero(end.low, end.high) for end in ends)
    for name, count in alone.items():
        yield Rate(
            statement=f"two judges alike differ in {name}",
            setting=setting.text,
            count=count,
            trials=runs,
            at_most=0.07,
        )
    yield Rate(
        statement=f"any of {ALONE} judges alike differs from the base in spearman, jointly",
        setting=setting.text,
        count=together,
        trials=runs,
        at_most=0.07,
    )


def _holds_zero(low: float, high: float | None) -> bool:
    return low <= 0.0 and high is not None and high >= 0.0
