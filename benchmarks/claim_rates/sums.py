"""Measure coverage of intervals from the normal distribution of sums, for metrics of probabilities.

Above 5 000 items that differ nobody draws them one by one; where few of them differ they are drawn. A
trial takes items of a judge whose true values are those of very many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from claim_rates.rate import Rate
from unswayed.metrics import Outcomes, measure
from unswayed.metrics.gold import GOLD_ONE
from unswayed.model.presentation import presentations

TRIALS = 1000
POPULATION = 400_000
ITEMS = 6_000
RESAMPLES = 400
AT_LEAST = 0.93
NAMES = ("icc2k", "icc3k", "score_sd", "label_mass", "position_bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A judge with a slot effect of .8 logits, how surely it answers, and how many items the slot decides.

    Attributes:
        swayed: Share of the items that the slot alone decides; the others are certain. None: as
            `sureness` says.
    """

    text: str
    sureness: float
    candidates: int
    swayed: float | None = None


SETTINGS = (
    Setting(text="2 candidates", sureness=1.0, candidates=2),
    Setting(text="4 candidates", sureness=1.0, candidates=4),
    Setting(text="2 candidates, nearly certain", sureness=8.0, candidates=2),
    Setting(text="0.2% swayed", sureness=1, candidates=2, swayed=0.002),
    Setting(text="1% swayed", sureness=1, candidates=2, swayed=0.01),
    Setting(text="5% swayed", sureness=1, candidates=2, swayed=0.05),
)


def judged(setting: Setting, items: int, generator: np.random.Generator) -> Outcomes:
    """Answers in the rotations, with a mass on the labels that is 1 but for a few items."""
    n = setting.candidates
    shown = presentations("cyclic", n)
    gold = generator.integers(0, n, items)
    worth = generator.normal(size=(items, 1, n)) + 0.5 * generator.normal(size=(items, n, n))
    worth[np.arange(items), :, gold] += 1.0
    for view, presentation in enumerate(shown):
        worth[:, view, presentation.order[0]] += 0.8
    worth *= setting.sureness
    if setting.swayed is not None:
        worth[...] = 0.0
        worth[np.arange(items), :, gold] = 6.0 + generator.normal(size=(items, 1))
        swayed = np.flatnonzero(generator.random(items) < setting.swayed)
        for view, presentation in enumerate(shown):
            worth[swayed, view] = 0.0
            worth[swayed, view, presentation.order[0]] = 2.0
    probs = np.exp(worth - worth.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    right = np.zeros((items, n), dtype=np.bool_)
    right[np.arange(items), gold] = True
    rare = generator.random((items, n)) < 0.02
    return Outcomes(
        item_ids=tuple(map(str, range(items))),
        groups=(None,) * items,
        shown=shown,
        label_set=tuple("ABCD"[:n]),
        choices=probs.argmax(axis=2).astype(np.int16),
        gold=right,
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
        probs=probs,
        label_mass=np.where(rare, generator.random((items, n)), 1.0),
    )


def coverage(setting: Setting, runs: int) -> Iterator[Rate]:
    """Coverage of every metric in one setting; of a list its first value."""
    generator = np.random.default_rng(ITEMS + setting.candidates)
    everyone = measure([judged(setting, POPULATION, generator)], names=NAMES, resamples=0)
    covered: Counter[str] = Counter()
    for trial in range(runs):
        sample = judged(setting, ITEMS, generator)
        row = measure([sample], names=NAMES, resamples=RESAMPLES, seed=trial)
        for name in NAMES:
            cell, truth = row.values[name][0], everyone.values[name][0].value
            assert truth is not None
            assert cell.low is not None
            assert cell.high is not None
            covered[name] += cell.low <= truth <= cell.high
    for name in NAMES:
        yield Rate(
            statement=f"interval of {name}",
            setting=f"{setting.text}, {ITEMS} items",
            count=covered[name],
            trials=runs,
            at_least=AT_LEAST,
        )


def rates(trials: int | None = None) -> Iterator[Rate]:
    """One setting after the other."""
    runs = trials or TRIALS
    for setting in SETTINGS:
        yield from coverage(setting, runs)
