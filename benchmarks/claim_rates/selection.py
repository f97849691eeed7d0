"""Measure how often `selective` errs more often among its verdicts than its bound allows.

Truth is the share of errors among verdicts on many items, over all their orders. Some judges are hostile: surer
when wrong, sure by lot, with gold first in nine of ten items, or with gold by lot, where any verdict
errs too often.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np

from claim_rates.advice import pool_of
from claim_rates.drawn_judges import DrawnJudge, recorded
from claim_rates.rate import Rate
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.selective import Selective
from unswayed.model.decisions import DecisionTable
from unswayed.model.items import Task
from unswayed.model.presentation import Ask, presentations

TRIALS: Final = 300
POOL: Final = 10_000
"""Items of a judge, from which estimation items are drawn."""

JUDGES: Final = {
    "biased judge": DrawnJudge(place=1.5, spread=2.5, taste=0.2),
    "biased judge, 4 candidates": DrawnJudge(candidates=4, place=1.5, spread=4, taste=0.2),
    "judge that is surer when wrong": DrawnJudge(place=1.0, spread=4, surer="when wrong"),
    "judge that is sure by lot": DrawnJudge(place=1.0, spread=2.5, surer="by lot"),
    "judge, gold first in 9 of 10 items": DrawnJudge(place=2.5, spread=0.4, first_right=0.9),
    "judge, gold by lot": DrawnJudge(place=1.0, coin="all"),
}
TINY: Final = "tiny judge"
METHODS: Final = (
    Selective(),
    Selective(orders="auto"),
    Selective(error=0.05),
    Selective(guarantee="mean"),
    Selective(guarantee="mean", orders="auto"),
)


@functools.cache
def answers_of(judge: str) -> DecisionTable:
    """Return the answers of a judge in every cyclic order, with gold."""
    if judge == TINY:
        pool = pool_of(Task.PAIRWISE, filtered=False, drawn=10_000)
        items, n = pool.items, 2
        probs = np.exp(np.stack([pool.answers[item.id] for item in items]))[:, :2]
        probs /= probs.sum(axis=2, keepdims=True)
    else:
        drawn = recorded(JUDGES[judge], POOL, seed=1)
        items, probs, n = drawn.items, drawn.probs, drawn.judge.candidates
    asks = tuple(map(Ask, presentations("cyclic", n)))
    return DecisionTable(
        items=items,
        asks=asks,
        shown=tuple(ask.presentation for ask in asks),
        label_set=tuple("ABCD"[:n]),
        choices=probs.argmax(axis=2).astype(np.int16),
        probs=probs,
        gold=np.array([item.gold for item in items])[:, None] == np.arange(n),
    )


def outcome(method: Selective, judge: str, size: int, seed: int) -> tuple[float, float]:
    """Return the share of errors among verdicts, and the share of items decided, of one fit."""
    table = answers_of(judge)
    rows = np.random.default_rng(seed).permutation(len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        fitted = method.fit_tables({table.n: table.rows(rows[:size])})
    others = table.rows(rows[size:])
    assert others.gold is not None
    wrong = decided = 0
    views = presentations("cyclic", table.n)
    for view in views:
        own = fitted.decide_table(others.select(method.asks(table.n), through=view))
        given = np.flatnonzero(own.choices >= 0)
        right = others.gold[given, np.array(view.order)[own.choices[given]]]
        decided, wrong = decided + len(given), wrong + int((~right).sum())
    return wrong / max(decided, 1), decided / (len(views) * len(others))


def rates(trials: int | None) -> Iterator[Rate]:
    """Exceeded in at most 10% of fits (`high`), or at most the error in the mean (`mean`)."""
    for judge in (TINY, *JUDGES):
        for method in METHODS:
            made = [outcome(method, judge, 300, seed) for seed in range(trials or TRIALS)]
            risks, covered = np.array(made).T
            high = method.guarantee == "high"
            orders = "one order" if method.orders == "identity" else "all orders"
            yield Rate(
                statement="verdicts err more often than allowed" if high else "verdicts that err",
                setting=f"{judge}, guarantee={method.guarantee}, {method.error:.0%}, {orders}, "
                f"300 estimation items, {covered.mean():.1%} decided",
                count=int((risks > method.error).sum()) if high else float(risks.sum()),
                trials=len(made),
                at_most=method.risk if high else method.error,
            )
