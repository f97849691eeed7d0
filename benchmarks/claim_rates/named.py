"""Measure how often `escalate`, named beside all other methods, is called better where gold is a coin."""

from __future__ import annotations

from collections.abc import Iterator

from claim_rates.drawn_judges import DrawnJudge, recorded
from claim_rates.ladder import COIN_CELLS, advice_of, share
from claim_rates.rate import Rate

TRIALS = 20
"""Audits of a cell."""


def rates(trials: int | None) -> Iterator[Rate]:
    """At most 5% of audits call any method better; how many of them mean `escalate` has no bound."""
    better: list[bool] = []
    meant: list[bool] = []
    for number, (candidates, place, probs, items) in enumerate(COIN_CELLS):
        if not probs:  # which it reads
            continue
        judge = DrawnJudge(candidates=candidates, place=place, coin="all")
        for trial in range(trials or TRIALS):
            answers = recorded(judge, items, 20_000 * (number + 1) + trial)
            methods = ("all", "escalate")
            found = advice_of(answers.audit(0, items, probs=True, seed=trial, methods=methods))
            named = {found.method, found.cheapest, found.most_accurate}
            better.append(found.state == "better")
            meant.append(better[-1] and "escalate" in named)
    yield from share(
        "some method is called better", "gold by coin toss, escalate named", better, at_most=0.05
    )
    yield from share("escalate is called better", "gold by coin toss, escalate named", meant)
