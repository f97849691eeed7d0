"""Decisions joined with gold: `Outcomes` of recorded answers.

Gold enters the program here and nowhere earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from unswayed.base.errors import ShapeError
from unswayed.metrics.gold import gold_of, human_of
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import (
    MISSING,
    SCORE,
    Decision,
    DecisionTable,
    IntArray,
    criterion_places,
    value_of_choices,
)
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.items import Item
from unswayed.model.presentation import Presentation, canonical


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


def outcomes_of(items: Sequence[Item], table: DecisionTable) -> Outcomes:
    """Join the gold of items, found by id, to the columns of a decision table, one per presentation
    of the items as they are (seen through no view).

    Answers that an item that is not permutable should not have given are left out.
    """
    if table.outer not in (None, tuple(range(table.n))):
        raise ShapeError(
            f"the decision table is seen through {table.outer}: map its choices back to the "
            "items' own candidates first"
        )
    by_id = {item.id: item for item in items}
    own: list[Item] = []
    for blind_item in table.items:
        if blind_item.id not in by_id:
            raise ShapeError(f"{blind_item.id}: decided, but not among the items")
        own.append(by_id[blind_item.id])
    joined = with_gold(
        own,
        shown=table.shown,
        label_set=table.label_set,
        choices=table.choices,
        clusters=Clusters.of(table.subjects.units.tolist()),
    )
    return answered(joined, table)


def answered(items: Outcomes, table: DecisionTable) -> Outcomes:
    """Return the columns of a decision table joined to its items, whose gold is joined already."""
    # recorded data may have asked an item that must not be permuted in other orders too
    choices = np.where(table.allowed, table.choices, np.int16(MISSING))
    return replace(
        items,
        shown=table.shown,
        label_set=table.label_set,
        choices=choices,
        probs=table.probs,
        label_mass=table.label_mass,
        score=None if table.values is None else value_of_choices(choices, table.values),
        scores=table.ratings.get(SCORE),
        places=criterion_places(table.subjects, table.asks),
    )


def with_gold(
    items: Sequence[Item],
    *,
    shown: Sequence[Presentation],
    label_set: tuple[str, ...],
    choices: IntArray,
    clusters: Clusters | None = None,
) -> Outcomes:
    """Join the gold of items to choices by candidate, shape (I, V): the only place where gold meets
    verdicts.
    """
    gold, kind = gold_of(items, len(label_set))
    return Outcomes(
        item_ids=tuple([item.id for item in items]),
        groups=tuple([item.group for item in items]),
        shown=tuple(shown),
        label_set=label_set,
        choices=choices,
        gold=gold,
        gold_kind=kind,
        permutable=np.array([item.permutable for item in items], dtype=np.bool_),
        human=human_of(items),
        clusters=clusters,
    )
