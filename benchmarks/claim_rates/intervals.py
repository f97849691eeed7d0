"""Measure how often a 95% interval contains the truth.

A population of items is audited once with every method (fitted ones are cross-fitted there). A
trial draws items from it with replacement; the truth is the population's own value, and what was
learned stays as it is, which is what the intervals are conditional on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import unswayed as us
from claim_rates.rate import Rate
from unswayed.auditing.evaluation import score_method
from unswayed.backends.simulated import simulated_items
from unswayed.metrics import difference, measure
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import contrasts

TRIALS = 1000
POPULATION = 6000
RESAMPLES = 400
AT_LEAST = 0.93


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A judge, the candidates and the items of a trial."""

    text: str
    judge: str
    candidates: int
    items: int


STEADY = "slot=0.05&label=0.05&noise=0.1&content=1.5"
"""A judge that keeps 96% of its verdicts."""

SETTINGS = (
    Setting(text="40 items, 2 candidates", judge="slot=0.6", candidates=2, items=40),
    Setting(text="150 items, 2 candidates", judge="slot=0.6", candidates=2, items=150),
    Setting(text="100 items, 4 candidates", judge="slot=0.6", candidates=4, items=100),
    Setting(text="96% consistent, 150 items", judge=STEADY, candidates=2, items=150),
)
METHODS = ("direct", "vote", "average", "canonical", "pride", "contextual")
SINGLE = ("accuracy", "consistency", "consistent_accuracy")


def population(setting: Setting, size: int) -> dict[str, Outcomes]:
    """Every method's verdicts on many items."""
    items = simulated_items(size, setting.candidates, seed=77)
    audited = us.audit(f"simulated/judge?{setting.judge}", items, methods=METHODS, resamples=100)
    record = audited.record
    made = {}
    for name, method in record.plan.methods.items():
        scored = score_method(
            method,
            record.plan.strata,
            record.source,
            estimation_items=None,
        )
        made[name] = scored.outcomes[0]
    return made


def drawn(outcomes: Outcomes, rows: NDArray[np.intp]) -> Outcomes:
    """Some items under new names: an item that is drawn twice counts twice."""
    names = tuple(str(place) for place in range(len(rows)))
    return replace(outcomes.rows(rows), item_ids=names)


def value_of(outcomes: Outcomes, name: str) -> float:
    """The value in the population."""
    value = measure([outcomes], names=[name], resamples=0)[name].value
    assert value is not None
    return value


def covers(low: float | None, high: float | None, truth: float) -> bool:
    """Return True if an interval contains the truth."""
    return low is not None and high is not None and low - 1e-12 <= truth <= high + 1e-12


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Coverage of differences, of single values, and of all differences together."""
    runs = trials or TRIALS
    for setting in SETTINGS:
        yield from coverage(setting, runs)


def coverage(setting: Setting, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage in one setting."""
    pool = population(setting, size)
    others = [name for name in pool if name != "direct"]
    truth = {(name, metric): value_of(pool[name], metric) for name in pool for metric in SINGLE}
    counts: dict[str, int] = dict.fromkeys(
        [*(f"difference {n}" for n in others), *(f"single {m}" for m in SINGLE), "joint"], 0
    )
    generator = np.random.default_rng(setting.items)
    for trial in range(runs):
        rows = generator.integers(0, size, setting.items)
        sample = {name: drawn(outcomes, rows) for name, outcomes in pool.items()}
        for name in others:
            found = difference([sample[name]], [sample["direct"]], "accuracy")
            right = truth[name, "accuracy"] - truth["direct", "accuracy"]
            counts[f"difference {name}"] += covers(found.low, found.high, right)
        counts["joint"] += _all_covered(sample, truth)
        row = measure([sample["direct"]], names=SINGLE, resamples=RESAMPLES, seed=trial)
        for metric in SINGLE:
            cell = row[metric]
            right = truth["direct", metric]
            counts[f"single {metric}"] += covers(cell.low, cell.high, right)
    for what, count in counts.items():
        kind, _, name = what.partition(" ")
        statement = {
            "difference": f"interval of accuracy, {name} − direct",
            "single": f"interval of {name.replace('_', ' ')}",
            "joint": "intervals of all methods against one, jointly",
        }[kind]
        yield Rate(
            statement=statement, setting=setting.text, count=count, trials=runs, at_least=AT_LEAST
        )


def _all_covered(sample: Mapping[str, Outcomes], truth: Mapping[tuple[str, str], float]) -> bool:
    family = contrasts({name: [one] for name, one in sample.items()}, "accuracy")
    base = next(iter(sample))
    found = [
        (gap, truth[name, "accuracy"] - truth[base, "accuracy"])
        for name, gap in family.against(base).items()
    ]
    return all(covers(one.low, one.high, right) for one, right in found)
