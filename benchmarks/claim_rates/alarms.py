"""Measure false warnings of `train` that nothing is learned, and the delay of true ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from claim_rates.rate import Rate
from unswayed.training.alarms import ALARMS, Alarms, steps_before_alarm

STEPS = 100
METRIC = ALARMS[1].metric  # the share of groups whose responses earned the same


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Groups are alike or not by chance, each by itself; one that is not can be learned from."""
    runs = trials or 2_000
    rng = np.random.default_rng(0)
    for items in (1, 2, 4, 8, 16):  # the shipped recipes have 8 and 16
        for alike in (0.35, 0.5, 0.66):
            shares = rng.binomial(items, alike, size=(runs, STEPS)) / items
            yield Rate(
                statement="all responses earned the same, so nothing is learned",
                setting=f"{items} items a step, {alike:.0%} of the groups alike, {STEPS} steps",
                count=sum(raised(row, items) for row in shares),
                trials=runs,
                at_most=0.01,
            )
    yield Rate(
        statement="all responses earned the same, so nothing is learned",
        setting=f"every group alike, {STEPS} steps",
        count=sum(raised(row, 1) for row in np.ones((runs, STEPS))),
        trials=runs,
        at_least=1.0,
    )


def raised(shares: np.ndarray, items: int) -> bool:
    """Return, step by step, whether the alarm is raised in a run with these shares."""
    alarms = Alarms(steps_before_alarm(items))
    return any(alarms.of({METRIC: float(share)}) is not None for share in shares)
