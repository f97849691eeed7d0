"""Estimation tables: what a server rounded to 0 is no measurement."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_judges import pairs

from unswayed.decisions import Decision, DecisionTable
from unswayed.methods.names import parse_method
from unswayed.presentation import X0


def rounded(table: DecisionTable, digits: int) -> list[Decision]:
    """The answers of a server that rounds its probabilities."""
    return [
        Decision(
            item_id=item.id,
            order=shown.order,
            labels=shown.symbols("AB"),
            label_set=("A", "B"),
            choice=int(table.choices[row, column]),
            probs=tuple(map(float, np.round(table.probs[row, column], digits))),
        )
        for row, item in enumerate(table.items)
        for column, shown in enumerate(table.shown)
    ]


def test_zeros_get_the_smallest_probability_of_the_table() -> None:
    method = parse_method("pride")
    items = pairs(2).table.items
    answers = [
        Decision(
            item_id=item.id, order=order, labels=("A", "B"), label_set=("A", "B"), choice=0, probs=p
        )
        for item, order, p in (
            (items[0], (0, 1), (1.0, 0.0)),
            (items[0], (1, 0), (0.96, 0.04)),
            (items[1], (0, 1), (0.5, 0.5)),
            (items[1], (1, 0), (0.5, 0.5)),
        )
    ]
    probs = method.estimation_tables(items, answers)[2].probs
    np.testing.assert_allclose(probs[0, 0], (1 / 1.04, 0.04 / 1.04))
    np.testing.assert_allclose(probs[0, 1], (0.96, 0.04))


@pytest.mark.parametrize("spec", ["additive", "pride"])
def test_rounded_zeros_do_not_move_the_threshold(spec: str) -> None:
    method = parse_method(spec)
    table = pairs(200, seed=1, label=0.8, slot=0.7).table
    decisions = rounded(table, 2)
    assert sum(0.0 in (decision.probs or ()) for decision in decisions) > 5
    exact = method.fit(table.items, rounded(table, 12)).threshold(X0)
    coarse = method.fit(table.items, decisions).threshold(X0)
    assert coarse == pytest.approx(exact, abs=0.01)  # .044 off with log 1e-10 in their place
