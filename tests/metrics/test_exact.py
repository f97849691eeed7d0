"""Exact tests and bounds against worked numbers."""

import pytest
from metric_builders import SWAP, by_letter, outcomes

from unswayed.base.errors import UsageError
from unswayed.metrics import flips, majority_error, majority_error_bound, sign_test
from unswayed.model.presentation import X0, X3, presentations


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


@pytest.mark.parametrize(
    ("accuracy", "bound", "exact"),
    [(0.6, 0.869, 0.290), (0.7, 0.571, 0.126), (0.8, 0.284, 0.033), (0.9, 0.106, 0.0027)],
)
def test_majority_of_seven(accuracy: float, bound: float, exact: float) -> None:
    assert majority_error_bound(7, accuracy) == pytest.approx(bound, abs=5e-4)
    assert majority_error(7, accuracy) == pytest.approx(exact, abs=5e-4)
    assert majority_error(7, accuracy) <= majority_error_bound(7, accuracy)


def test_the_bound_is_refused_where_it_does_not_hold() -> None:
    with pytest.raises(UsageError, match="odd"):
        majority_error_bound(6, 0.8)
    with pytest.raises(UsageError, match=r"above 0\.5"):
        majority_error(7, 0.5)


def test_flips_count_items_and_pure_position_picks() -> None:
    letters = ["AA", "AA", "BB", "AB", "=A", "==", "?A", "A-"]
    made = outcomes([by_letter(row, SWAP) for row in letters])
    found = flips([made])
    # A- is incomplete; AB and == do not flip
    assert (found.n, found.total, found.first, found.last) == (7, 5, 2, 1)


def test_flips_of_many_candidates_and_of_label_changes() -> None:
    cyclic = presentations("cyclic", 3)
    many = outcomes([by_letter("AAA", cyclic), by_letter("ACB", cyclic)], shown=cyclic)
    assert flips([many]).total == 1
    assert flips([many]).first == 1
    # labels move, candidates stay: always choosing candidate 0 is no position pick
    still = outcomes([[0, 0]], shown=[X0, X3])
    assert (flips([still]).total, flips([still]).first) == (0, 0)
