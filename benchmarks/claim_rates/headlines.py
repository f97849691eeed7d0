"""Measure how often the headline names a bias of a judge that has none."""

from __future__ import annotations

from collections.abc import Iterator

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items
from unswayed.report.collect import without_items
from unswayed.report.findings import Finding, State

TRIALS = 200
RESAMPLES = 400
ITEMS = 200

SETTINGS = ((2, "coupled"), (2, "all"), (4, "coupled"), (4, "all"))
"""Candidates and protocol."""


def biased(n: int, protocol: str, trials: int) -> Iterator[bool]:
    """Return, for each headline, whether it is about a position or a label."""
    for seed in range(trials):
        found = us.audit(
            f"simulated/judge?slot=0&label=0&seed={seed}",
            simulated_items(ITEMS, n, seed=70_000 + seed),
            methods=["direct"],
            protocol=protocol,
            resamples=RESAMPLES,
        )
        state = Finding(without_items(found.record.metrics, found.record.run)).state
        yield state in {State.POSITION, State.HIDDEN}


def rates(trials: int | None = None) -> Iterator[Rate]:
    """One setting after the other."""
    runs = trials or TRIALS
    for n, protocol in SETTINGS:
        yield Rate(
            statement="the headline names a bias, judge without any",
            setting=f"{n} candidates, protocol {protocol}, {ITEMS} items",
            count=sum(biased(n, protocol, runs)),
            trials=runs,
            at_most=0.09,
        )
