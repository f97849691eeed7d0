"""Orders for any number of candidates."""

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.base.errors import ShapeError, UnknownNameError, UsageError
from unswayed.model import permutations
from unswayed.model.presentation import presentations

SIZES = st.integers(2, 8)
ORDERS = SIZES.flatmap(lambda n: st.permutations(range(n)).map(tuple))


def letters(orders: tuple[tuple[int, ...], ...]) -> list[str]:
    return ["".join("ABCDEF"[candidate] for candidate in order) for order in orders]


def test_structured_is_the_papers_set() -> None:
    four = permutations.structured(4)  # D stands first in two: it is not balanced
    assert letters(four) == ["ABCD", "BCDA", "CDAB", "DABC", "DCBA"]
    assert permutations.structured(2) == ((0, 1), (1, 0))


def test_inverse_of_bcda_is_dabc() -> None:
    # BCDA shows B, C, D, A at positions 0..3, so A stands at 3, B at 0, C at 1, D at 2.
    assert permutations.invert((1, 2, 3, 0)) == (3, 0, 1, 2)


@given(ORDERS)
def test_inverse_undoes_an_order(order: tuple[int, ...]) -> None:
    own = tuple(range(len(order)))
    assert permutations.compose(order, permutations.invert(order)) == own
    assert permutations.compose(permutations.invert(order), order) == own


@given(SIZES)
def test_cyclic_and_balanced_show_candidates_equally_often(n: int) -> None:
    for orders in (permutations.cyclic(n), permutations.balanced(n)):
        for position in range(n):
            shown = [order[position] for order in orders]
            assert all(shown.count(c) == len(orders) // n for c in range(n))
    assert len(permutations.balanced(n)) == (2 if n == 2 else 2 * n)


@given(st.sampled_from([3, 4, 5, 7, 9]))
def test_graeco_latin_balances_position_and_label(n: int) -> None:
    pairs = permutations.graeco_latin(n)
    assert len(pairs) == n
    for candidate in range(n):
        positions = [order.index(candidate) for order, _ in pairs]
        labels = [labels[order.index(candidate)] for order, labels in pairs]
        assert sorted(positions) == sorted(labels) == list(range(n))
    cells = [(p, labels[p]) for _, labels in pairs for p in range(n)]
    assert len(set(cells)) == n * n  # every label at every position once


@pytest.mark.parametrize("n", [2, 6])
def test_graeco_latin_is_refused_where_it_does_not_exist(n: int) -> None:
    with pytest.raises(UsageError, match="no Graeco-Latin set"):
        permutations.graeco_latin(n)


@given(st.integers(2, 9), st.integers(1, 40), st.integers(0, 5))
def test_random_orders_are_distinct_seeded_from_the_identity(n: int, k: int, seed: int) -> None:
    drawn = permutations.orders(f"random:{k}", n, seed=seed)
    assert drawn[0] == tuple(range(n))
    assert len(drawn) == len(set(drawn)) == min(k, math.factorial(n))
    assert drawn == permutations.orders(f"random:{k}", n, seed=seed)
    assert all(sorted(order) == list(range(n)) for order in drawn)
    eight = {permutations.orders("random:10", 8, seed=own) for own in (seed, seed + 1)}
    assert len(eight) == 2


@pytest.mark.parametrize("name", ["identity", "cyclic", "structured", "balanced", "full"])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_named_sets_are_distinct_and_begin_with_the_identity(name: str, n: int) -> None:
    orders = permutations.orders(name, n)
    assert orders[0] == tuple(range(n))
    assert len(set(orders)) == len(orders)
    assert set(orders) <= set(itertools.permutations(range(n)))
    even = name in ("cyclic", "balanced", "full") or (name, n) == ("structured", 2)
    assert permutations.exposure(orders).is_even_first == even


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("identity", 1001),
        ("cyclic", 129),
        ("structured", 128),
        ("balanced", 65),
        ("graeco-latin", 129),
        ("random:8", 40_000),
    ],
)
def test_sets_of_orders_refuse_endless_numbers_of_candidates(name: str, n: int) -> None:
    with pytest.raises(UsageError, match=f"support at most .* candidates, got {n:,}"):
        presentations(name, n)
    assert len(presentations(name, 63)) <= permutations.MOST_ORDERS


def test_all_orders_of_six_are_made() -> None:
    assert len(permutations.full(6)) == len(permutations.orders("random:1000", 6)) == 720


@pytest.mark.parametrize(
    ("name", "n", "error", "reason"),
    [
        ("cyclick", 4, UnknownNameError, "Did you mean 'cyclic'"),
        ("random:many", 4, UsageError, "random:K"),
        ("swap", 3, UsageError, "needs 2 candidates, got 3"),
        ("random:129", 7, UsageError, "limit is random:128"),
        ("full", 7, UsageError, "5,040 orders"),
    ],
)
def test_impossible_sets_are_refused_with_a_way_out(
    name: str, n: int, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        permutations.orders(name, n)


@pytest.mark.parametrize("wrong", [(0, 0), (0, 2), (1, 2)])
def test_what_is_not_a_permutation_is_refused(wrong: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        permutations.invert(wrong)


def test_exposure_counts_where_each_candidate_stands() -> None:
    three = permutations.exposure([(0, 1, 2), (0, 2, 1), (1, 0, 2)])
    assert three.counts == ((2, 1, 0), (1, 1, 1), (0, 1, 2))
    assert (three.orders, three.first, three.is_even_first) == (3, (2, 1, 0), False)
    with pytest.raises(ShapeError, match="at least one order"):
        permutations.exposure([])


@pytest.mark.parametrize("n", range(2, 10))
def test_williams_set_balances_positions_and_neighbours(n: int) -> None:
    shown = permutations.orders("williams", n)
    assert len(shown) == n * (1 + n % 2)
    assert shown[0] == tuple(range(n))
    times = 1 + n % 2
    places = Counter((place, c) for order in shown for place, c in enumerate(order))
    assert places == dict.fromkeys(itertools.product(range(n), repeat=2), times)
    neighbours = Counter(pair for order in shown for pair in itertools.pairwise(order))
    assert neighbours == dict.fromkeys(itertools.permutations(range(n), 2), times)
