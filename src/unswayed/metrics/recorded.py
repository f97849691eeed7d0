"""Outcomes of decisions that were recorded in any presentations."""

from __future__ import annotations

from collections.abc import Iterable

from unswayed.decisions import Decision, DecisionTable
from unswayed.items import Item
from unswayed.metrics.outcomes import Outcomes, outcomes_of
from unswayed.presentation import canonical


def outcomes_from_decisions(
    items: Iterable[Item], decisions: Iterable[Decision]
) -> tuple[Outcomes, ...]:
    """Outcomes of recorded decisions, one stratum per number of candidates, smallest first.

    Every question that occurs becomes a column, the item's own presentation first; questions with
    content-free text in place of the candidates are left out. Items of which no decision is known
    keep a row of MISSING; an item that is not permutable keeps the answer to its own order only.
    """
    by_n: dict[int, list[Item]] = {}
    for item in items:
        by_n.setdefault(item.n, []).append(item)
    recorded = list(decisions)
    strata = []
    for n in sorted(by_n):
        rows = by_n[n]
        table = DecisionTable.of(rows, recorded)
        own = canonical(n)
        asked = [ask for ask in table.asks if ask.substitute is None]
        asks = sorted(asked, key=lambda ask: ask.presentation != own)
        strata.append(outcomes_of(rows, table.select(asks)))
    return tuple(strata)
