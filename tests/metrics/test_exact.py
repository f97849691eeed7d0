"""The sign test and flips against worked numbers."""

import pytest
from metric_builders import SWAP, by_letter, outcomes

from unswayed.base.errors import UsageError
from unswayed.metrics import flips, sign_test
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
