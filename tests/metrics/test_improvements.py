"""Items that one method gets right and another wrong."""

from __future__ import annotations

import numpy as np
import pytest
from metric_builders import M, T, U, outcomes

from unswayed.metrics import improved_regressed


def test_the_worked_values() -> None:
    """Two methods of which the first is right alone, wrong alone, or both are right."""
    first = [0] * 30 + [1] * 14 + [0] * 40
    other = [1] * 30 + [0] * 14 + [0] * 40
    a, b = (outcomes([[choice, 1] for choice in own]) for own in (first, other))
    counted = improved_regressed([a], [b])
    assert (counted.improved, counted.regressed, counted.n) == (30, 14, 84)
    assert counted.p == pytest.approx(0.0226, rel=3e-3)
    assert improved_regressed([b], [a]).regressed == 30


def test_a_tie_is_wrong_and_its_share_stands_beside_it() -> None:
    # first: right, tie, tie, unread; other: tie, wrong, right, right
    a = outcomes([[0, 0], [T, 0], [T, 0], [U, 0]])
    b = outcomes([[T, 0], [1, 0], [0, 0], [0, 0]])
    counted = improved_regressed([a], [b])
    assert (counted.improved, counted.regressed, counted.n) == (1, 2, 4)
    assert (counted.improved_shared, counted.regressed_shared) == (0.5 + 0.5, 0.5 + 1.0)


def test_items_without_an_answer_or_gold_are_left_out() -> None:
    a = outcomes([[0, 0], [M, 0], [0, 0]], gold=[0, 0, None])
    b = outcomes([[1, 0], [1, 0], [1, 0]], gold=[0, 0, None])
    assert improved_regressed([a], [b]).n == 1


def test_items_are_matched_by_id() -> None:
    a = outcomes([[0, 0], [1, 0]], ids=["x", "y"])
    b = outcomes([[0, 0], [1, 0], [1, 0]], ids=["y", "x", "z"])
    counted = improved_regressed([a], [b])
    assert (counted.n, counted.improved, counted.regressed) == (2, 1, 1)


def test_without_items_in_common_nothing_is_counted() -> None:
    a, b = outcomes([[0, 0]], ids=["x"]), outcomes([[1, 0]], ids=["y"])
    counted = improved_regressed([a], [b])
    assert (counted.n, counted.p, counted.improved_shared) == (0, 1.0, 0.0)
    assert np.isfinite(counted.p)
