"""Measure how often the page names a place of a list that gains or loses points, on an unbiased judge."""

from __future__ import annotations

from collections.abc import Iterator

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import Task
from unswayed.report.collect import without_items
from unswayed.report.findings import Finding
from unswayed.report.scores import lists_of

TRIALS = 200
RESAMPLES = 1000

SETTINGS = ((40, 4, 0.0, 0.06), (150, 4, 0.0, 0.06), (40, 7, 0.0, 0.06), (40, 4, 0.3, None))
"""Lists, candidates, slot, and the bound."""


def named(lists: int, n: int, slot: float, trials: int) -> Iterator[bool]:
    """Return, for each page, whether it names a place."""
    for seed in range(trials):
        audited = us.audit(
            f"simulated/judge?slot={slot}&label=0&noise=0.6&seed={1000 + seed}",
            simulated_items(lists, n, seed=90_000 + seed, task=Task.LISTWISE),
            methods=["direct"],
            resamples=RESAMPLES,
        )
        own = lists_of(Finding(without_items(audited.record.metrics, audited.record.run)))
        yield own is not None and bool(own.gains or own.losses)


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Judges without any bias, then one with a small bias, without a bound."""
    runs = trials or TRIALS
    for lists, n, slot, bound in SETTINGS:
        yield Rate(
            statement="the report names a position that gains or loses points",
            setting=f"{lists} lists of {n}, slot {slot:g}",
            count=sum(named(lists, n, slot, runs)),
            trials=runs,
            at_most=bound,
        )
