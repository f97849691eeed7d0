"""Measure how often the 95% intervals of fitted numbers hold the true number.

The truth is what the method learns from very many items of the same judge.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Final

from claim_rates.answers import estimation_answers
from claim_rates.rate import Rate
from unswayed.methods.estimation import MOST_ITEMS, MethodWarning
from unswayed.methods.names import parse_method

SIZES: Final = (20, 60, 200)
"""Estimation items."""

MANY: Final = 10
"""Fits on 3 000 items whose mean is the truth."""

SETTINGS: Final[tuple[tuple[str, int, float], ...]] = (
    ("cell-median", 2, 1.0),
    ("cell-median", 2, 3.0),
    ("pride", 2, 1.0),
    ("pride", 2, 3.0),
    ("pride", 4, 1.0),
    ("pride:mean=geometric", 4, 1.0),
    ("additive", 2, 1.0),
    ("additive", 2, 3.0),
    ("additive", 4, 1.0),
    ("additive:centre=median", 2, 1.0),
    ("calibraeval:resamples=200", 2, 1.0),
    ("batch", 2, 1.0),
    ("bias-cost:resamples=300", 5, 1.0),
)
"""Method, candidates, steepness of the judge."""


def covered(spec: str, n: int, steep: float, *, size: int, trials: int) -> Iterator[bool]:
    """Return, for each interval of the first learned number, whether it holds the truth."""
    method, truth = parse_method(spec), _truth(spec, n, steep)
    for trial in range(trials):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MethodWarning)
            answers = estimation_answers(method, size, seed=trial, n=n, steep=steep)
            estimate = next(iter(method.fit_tables(answers).estimates().values()))
        if estimate.low is not None and estimate.high is not None:
            yield estimate.low <= truth <= estimate.high


@cache
def _truth(spec: str, n: int, steep: float) -> float:
    method = parse_method(spec)
    plain = method.with_resamples(0)
    values = []
    for part in range(MANY):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MethodWarning)
            answers = estimation_answers(method, MOST_ITEMS, seed=10**6 + part, n=n, steep=steep)
            estimate = next(iter(plain.fit_tables(answers).estimates().values()))
        assert estimate.value is not None
        values.append(estimate.value)
    return sum(values) / MANY


def rates(trials: int | None) -> Iterator[Rate]:
    """Coverage where an interval is given: at least 93%."""
    for spec, n, steep in SETTINGS:
        for size in SIZES:
            count = trials or (150 if spec.startswith("calibraeval") else 600)
            held = list(covered(spec, n, steep, size=size, trials=count))
            if held:
                yield Rate(
                    statement="an interval of what is learned holds the truth",
                    setting=f"{spec}, {n} candidates, logits x {steep:g}, {size} items",
                    count=sum(held),
                    trials=len(held),
                    at_least=0.93,
                )
