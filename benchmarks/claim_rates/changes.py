"""Measure how often `unswayed report A B` reports a change between two runs of the same judge.

Many items are asked twice, with other noise. A trial draws some of them, and of each the two answers
in a random order where the judge is the same, so that nothing changed by any measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

import unswayed as us
from claim_rates.rate import Rate
from unswayed.auditing.comparison import SingleCalls, answers_of, changes
from unswayed.backends.simulated import simulated_items
from unswayed.report.claims import changes_of
from unswayed.report.intervals import above, below

TRIALS = 1000
POPULATION = 4000
RESAMPLES = 400
ANY = "anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Two judges asked about the same items, which differ in the seed of their noise at least."""

    first: str
    other: str
    candidates: int
    items: int

    @property
    def alike(self) -> bool:
        """True if the judge is the same."""
        return self.first == self.other

    @property
    def text(self) -> str:
        """The setting in words."""
        judges = self.first if self.alike else f"{self.first} → {self.other}"
        return f"{judges}, {self.candidates} candidates, {self.items} items"


SETTINGS = (
    Setting(first="slot=0.6", other="slot=0.6", candidates=2, items=50),
    Setting(first="slot=0.6", other="slot=0.6", candidates=2, items=300),
    Setting(first="slot=0", other="slot=0", candidates=2, items=200),
    Setting(first="slot=0.6", other="slot=0.6", candidates=4, items=150),
    Setting(first="slot=0.6", other="slot=0.9", candidates=2, items=300),
)


@cache
def answers(judge: str, candidates: int, *, seed: int) -> SingleCalls:
    """Return the part of one run over all items that a run directory keeps."""
    record = us.audit(
        f"simulated/judge?{judge}&seed={seed}",
        simulated_items(POPULATION, candidates, seed=90),
        methods="direct",
        resamples=100,
    ).record
    return answers_of(record.plan)[0]


def of_rows(
    run: SingleCalls, other: SingleCalls, rows: list[int], swapped: list[bool]
) -> SingleCalls:
    """The answers of a run to some items, of those that are swapped the other run's."""
    pairs = list(zip(rows, swapped, strict=True))
    return msgspec.structs.replace(
        run,
        item_ids=tuple(run.item_ids[row] for row in rows),
        choices=tuple((other if swap else run).choices[row] for row, swap in pairs),
        gold=tuple(run.gold[row] for row in rows),
        gold_kind=tuple(run.gold_kind[row] for row in rows),
        permutable=tuple(run.permutable[row] for row in rows),
        units=tuple(run.units[row] for row in rows),
    )


def said(setting: Setting, runs: int) -> Counter[str]:
    """Count differences whose interval leaves out 0, by metric, and any of them."""
    first = answers(setting.first, setting.candidates, seed=1)
    other = answers(setting.other, setting.candidates, seed=2)
    generator = np.random.default_rng(setting.items)
    counts: Counter[str] = Counter()
    for trial in range(runs):
        rows = generator.choice(POPULATION, setting.items, replace=False).tolist()
        swapped = (generator.random(setting.items) < 0.5 * setting.alike).tolist()
        before, after = of_rows(first, other, rows, swapped), of_rows(other, first, rows, swapped)
        gains = changes_of(changes([before], [after], resamples=RESAMPLES, seed=trial), 1)
        apart = [name for name, gain in gains.items() if above(gain, 0) or below(gain, 0)]
        counts.update(dict.fromkeys(gains, 0))
        counts.update(apart)
        counts[ANY] += bool(apart)
    return counts


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Each metric and any of them."""
    runs = trials or TRIALS
    for setting in SETTINGS:
        for name, count in sorted(said(setting, runs).items()):
            yield Rate(
                statement=f"{name.replace('_', ' ')} is reported as changed",
                setting=setting.text,
                count=count,
                trials=runs,
                at_most=0.06 if setting.alike else None,
            )
