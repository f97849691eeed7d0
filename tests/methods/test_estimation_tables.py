"""Estimation tables: what a server rounded to 0 is no measurement."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_judges import decision, decisions_of, pairs

from unswayed.methods.names import parse_method
from unswayed.model.presentation import X0, X2


def test_zeros_get_the_smallest_probability_of_the_table() -> None:
    method = parse_method("pride")
    items = pairs(2).table.items
    one, other = (item.id for item in items)
    answers = [
        *(decision(one, X0, p_a=1.0), decision(one, X2, p_a=0.04)),
        *(decision(other, X0, p_a=0.5), decision(other, X2, p_a=0.5)),
    ]
    probs = method.estimation_tables(items, answers)[2].probs
    np.testing.assert_allclose(probs[0, 0], (1 / 1.04, 0.04 / 1.04))
    np.testing.assert_allclose(probs[0, 1], (0.96, 0.04))


@pytest.mark.parametrize("spec", ["additive", "pride"])
def test_rounded_zeros_do_not_move_the_threshold(spec: str) -> None:
    method = parse_method(spec)
    table = pairs(200, seed=1, label=0.8, slot=0.7).table
    decisions = decisions_of(table, 2)
    assert sum(0.0 in (decision.probs or ()) for decision in decisions) > 5
    exact = method.fit(table.items, decisions_of(table, 12)).threshold(X0)
    coarse = method.fit(table.items, decisions).threshold(X0)
    assert coarse == pytest.approx(exact, abs=0.01)  # .044 off with log 1e-10 in their place
