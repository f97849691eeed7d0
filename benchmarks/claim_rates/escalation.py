"""Measure how often `escalate` changes more verdicts on new items than its bound allows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np

from claim_rates.answers import estimation_answers
from claim_rates.rate import Rate
from unswayed.methods.escalate import Escalate
from unswayed.methods.estimation import MethodWarning

FRESH: Final = 3000
"""Items on which the share is counted."""

SETTINGS: Final[tuple[tuple[str, float, int, int, float], ...]] = (
    ("high", 0.05, 2, 200, 1.0),
    ("high", 0.05, 2, 200, 3.0),
    ("high", 0.05, 4, 200, 1.0),
    ("high", 0.02, 2, 500, 1.0),
    ("high", 0.02, 4, 500, 1.0),
    ("mean", 0.05, 2, 200, 1.0),
    ("mean", 0.02, 2, 200, 1.0),
    ("mean", 0.02, 4, 200, 1.0),
)
"""Guarantee, share, candidates, estimation items, steepness of the judge."""


def changed(method: Escalate, n: int, size: int, steep: float, seed: int) -> tuple[float, float]:
    """Return the share of changed verdicts on new items, and the mean calls per item."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        fitted = method.fit_tables(estimation_answers(method, size, n, seed=seed, steep=steep))
    asked = estimation_answers(method, FRESH, n, seed=10**6 + seed, steep=steep)[n]
    table = asked.select(method.asks(n))
    early, whole = fitted.decide_table(table), fitted.settings()[-1].decide_table(table)
    return float((early.choices != whole.choices).mean()), float(early.n_calls.mean())


def rates(trials: int | None) -> Iterator[Rate]:
    """Exceeded in at most 10% of fits (`high`), or at most the share in the mean (`mean`)."""
    for guarantee, share, n, size, steep in SETTINGS:
        method = Escalate(share=share, guarantee=guarantee)  # type: ignore[arg-type]
        made = [changed(method, n, size, steep, seed) for seed in range(trials or 300)]
        shares, calls = np.array(made).T
        high = guarantee == "high"
        yield Rate(
            statement="more verdicts change than allowed" if high else "verdicts that change",
            setting=f"guarantee={guarantee}, {share:.0%}, {n} candidates, logits x {steep:g}, "
            f"{size} estimation items, {calls.mean():.2f} calls per item",
            count=int((shares > share).sum()) if high else float(shares.sum()),
            trials=len(made),
            at_most=method.risk if high else share,
        )
