"""False drift alarms of a nearly certain judge, whose probabilities are almost 0 or 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from claim_rates.drift import alarms
from claim_rates.rate import Rate

TRIALS: Final = 300
SETTINGS: Final = ((4.0, 25), (4.0, 40), (4.0, 60), (1.0, 25))
"""Factor on the logits, and items asked again."""


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Alarms of `pride` on a judge that stayed the same; no bound is kept."""
    count = trials or TRIALS
    for steep, asked in SETTINGS:
        yield Rate(
            statement="drift alarm, nearly certain judge unchanged",
            setting=f"pride, logits x {steep:g}, {asked} asked again",
            count=sum(alarms("pride", 2, 1, asked=asked, trials=count, resamples=100, steep=steep)),
            trials=count,
        )
