"""Measure how often each sentence of a report is false: the table of its tests, with more seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from claim_rates.rate import Rate

TESTS = Path(__file__).parents[2] / "tests"
TRIALS = 20
FIRST = 100
"""A seed that the tests do not take."""
ENOUGH = 40
"""Places from which a rate is held to its bound."""


def rates(trials: int | None = None) -> Iterator[Rate]:
    """A sentence that may miss by chance is bound to 8%, every other one to none."""
    sys.path += [str(TESTS), str(TESTS / "claims")]
    import test_sentences as sentences

    seeds = range(FIRST, FIRST + (trials or TRIALS))
    for row in sentences.ROWS + sentences.SCORES:
        cases = sentences.stood(row.words, row.holds, sentences.kind(row), seeds)
        if cases:
            bound = 0.08 if len(cases) >= ENOUGH else None
            yield Rate(
                statement=row.words,
                setting="judges of 16 states",
                count=sum(not case.true for case in cases),
                trials=len(cases),
                at_most=bound if row.by_chance else 0.0,
            )
