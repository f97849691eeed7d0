"""Measure how often a build fails, by the rule of its gate and the judge's true flip rate.

A judge flips each of 300 items with the same probability; the intervals are those of the program. A limit
of 0.10 is checked by every rule. `shown` may fail few builds of a judge at its limit, `strict` must stop
nearly all of them, and `point` is shown for comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from claim_rates.rate import Rate
from unswayed.auditing.comparison import SingleCalls
from unswayed.auditing.gates import Condition, Rule, check
from unswayed.auditing.records import CallsRecord, Metrics
from unswayed.metrics import measure
from unswayed.metrics.rows import Row

TRIALS: Final = 2000
ITEMS: Final = 300
MOST_ITEMS: Final = 8000
CONDITION: Final = "flip_rate>0.1"
RULES: Final[tuple[Rule, ...]] = ("shown", "strict", "point")
AT_MOST: Final = {("shown", 0.05): 0.001, ("shown", 0.08): 0.005, ("shown", 0.1): 0.05}
AT_LEAST: Final = {("strict", 0.1): 0.93, ("strict", 0.12): 0.98, ("shown", 0.15): 0.5}


def metrics_of_flips(flips: np.ndarray) -> Metrics:
    """Return the figures of a judge that flips these items."""
    ids = tuple(f"q{place:05}" for place in range(len(flips)))
    calls = SingleCalls(
        label_set=("A", "B"),
        orders=((0, 1), (1, 0)),
        labels=((0, 1), (0, 1)),
        item_ids=ids,
        choices=tuple((0, int(flip)) for flip in flips),
        gold=((),) * len(ids),
        gold_kind=(0,) * len(ids),
        permutable=(True,) * len(ids),
        units=ids,
    )
    outcomes = calls.outcomes(frozenset(ids), dict(zip(ids, ids, strict=True)))
    row = Row({"consistency": (measure([outcomes], names=["consistency"])["consistency"],)})
    counts = CallsRecord(planned=2 * len(ids), made=2 * len(ids), replies=2 * len(ids))
    return Metrics(calls=counts, methods={"direct": row})


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Measure the share of failing builds for each true flip rate and rule."""
    condition, draws, n_trials = Condition.of(CONDITION), np.random.default_rng(0), trials or TRIALS
    for truth in (0.05, 0.08, 0.1, 0.12, 0.15):
        failing = dict.fromkeys(RULES, 0)
        for _ in range(n_trials):
            metrics = metrics_of_flips(draws.random(ITEMS) < truth)
            for rule in RULES:
                failing[rule] += check(metrics, condition, rule).fails(rule)
        for rule in RULES:
            yield Rate(
                statement=f"a build fails by the rule {rule}",
                setting=f"true flip rate {truth:.2f}, {ITEMS} items, limit 0.10",
                count=failing[rule],
                trials=n_trials,
                at_most=AT_MOST.get((rule, truth)),
                at_least=AT_LEAST.get((rule, truth)),
            )
    yield from _decided(condition, draws, n_trials // 10)


def _decided(condition: Condition, draws: np.random.Generator, trials: int) -> Iterator[Rate]:
    """Measure how often the number of items that an unclear gate names decides it, for other items."""
    for truth in (0.06, 0.08, 0.12, 0.15):
        ended = unclear = 0
        for _ in range(trials):
            said = check(metrics_of_flips(draws.random(ITEMS) < truth), condition).said
            named = re.search(r"about ([\d,]+) items", said)
            if named is None or (items := int(named[1].replace(",", ""))) > MOST_ITEMS:
                continue
            again = check(metrics_of_flips(draws.random(items) < truth), condition)
            unclear, ended = unclear + 1, ended + (again.outcome != "unclear")
        setting = f"true flip rate {truth:.2f}, {ITEMS} items, limit 0.10"
        yield Rate(
            statement="an unclear gate is decided by the items named",
            setting=setting,
            count=ended,
            trials=unclear,
        )
