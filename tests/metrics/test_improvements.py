"""Items that one method gets right and another wrong, their sign test, and items that flip."""

from __future__ import annotations

import numpy as np
import pytest
from metric_builders import SWAP, M, T, U, by_letter, outcomes

from unswayed.base.errors import UsageError
from unswayed.metrics import flips, improved_regressed, sign_test
from unswayed.model.presentation import X0, X3, presentations


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


@pytest.mark.parametrize(
    ("first", "second", "p"), [(69, 29, 6.57e-5), (30, 14, 0.0226), (39, 15, 0.00150)]
)
def test_sign_test_of_worked_counts(first: int, second: int, p: float) -> None:
    assert sign_test(first, second) == pytest.approx(p, rel=5e-3)
    assert sign_test(second, first) == sign_test(first, second)


def test_sign_test_without_evidence() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 5) == 1.0
    with pytest.raises(UsageError, match="counts"):
        sign_test(-1, 2)


def test_flips_count_items_and_pure_position_picks() -> None:
    letters = ["AA", "AA", "BB", "AB", "=A", "==", "?A", "A-"]
    made = outcomes([by_letter(row, SWAP) for row in letters])
    found = flips([made])
    # A- is incomplete; AB and == do not flip
    assert (found.n, found.total, found.first, found.last) == (7, 5, 2, 1)
    assert (found.unread, found.ties) == (1, 1)  # ?A and =A


def test_flips_of_many_candidates_and_of_label_changes() -> None:
    cyclic = presentations("cyclic", 3)
    many = outcomes([by_letter("AAA", cyclic), by_letter("ACB", cyclic)], shown=cyclic)
    assert flips([many]).total == 1
    assert flips([many]).first == 1
    # labels move, candidates stay: always choosing candidate 0 is no position pick
    still = outcomes([[0, 0]], shown=[X0, X3])
    assert (flips([still]).total, flips([still]).first) == (0, 0)
