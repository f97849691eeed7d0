"""Measure what is said about a vote in two orders of two candidates, without probabilities.

Disagreements are ties, so the vote is as accurate as a single call, unless an answer is unparsed: then the
other one decides, and the vote gains `r * (1 - r)` times the accuracy of the answers that were parsed,
with `r` the share of unparsed answers. At 2% that is more than the margin of one point.
"""

from __future__ import annotations

from collections.abc import Iterator

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items

TRIALS = 40
ITEMS = 300
SLOTS = (0.0, 0.6, 2.0)
UNPARSED = (0.0, 0.02, 0.1)


def state(slot: float, unparsed: float, seed: int) -> str:
    """Return the state of the recommendation of one audit."""
    audit = us.audit(
        f"simulated/judge?slot={slot}&unparsed={unparsed}&logprobs=0&seed={seed}",
        simulated_items(ITEMS, 2, seed=30_000 + seed),
        methods=["direct", "vote"],
        reask=False,
        resamples=400,
    )
    return audit.record.metrics.recommendation.state


def rates(trials: int | None = None) -> Iterator[Rate]:
    """The states that are wrong have a bound."""
    runs = trials or TRIALS
    for unparsed in UNPARSED:
        states = [state(slot, unparsed, seed) for slot in SLOTS for seed in range(runs)]
        wrong = ("better", "worse") if not unparsed else ("worse",)
        for name in ("same", "better", "enough", "worse", "open"):
            yield Rate(
                statement=f"a vote in two orders is given the state {name}",
                setting=f"{unparsed:.0%} unparsed, {ITEMS} items, no probabilities",
                count=states.count(name),
                trials=len(states),
                at_most=0.05 if name in wrong or (unparsed and name == "enough") else None,
            )
