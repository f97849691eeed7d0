"""Learned numbers: intervals by hand, none where none holds, and what a server rounded to 0."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_judges import decision, decisions_of, fit, pairs, table_of

from unswayed.methods.intervals import FEWEST, expanded_levels, median_interval
from unswayed.methods.names import parse_method
from unswayed.model.presentation import X0, X2


def test_levels_are_students() -> None:
    # t(.975, 19) = 2.0930, times sqrt(20 / 19) = 2.1474; Phi(-2.1474) = .01588
    low, high = expanded_levels(20)
    assert low == pytest.approx(1.588, abs=0.002)
    assert high == pytest.approx(100 - low)
    assert expanded_levels(10**6)[0] == pytest.approx(2.5, abs=0.001)


def test_a_sign_test_decides_which_splits_are_kept() -> None:
    # pairs of equal values 1 to 8: below a split of 1 to 7 the mid-p is (1 + 8 / 2) / 128 = .039,
    # of 2 to 6 it is (1 + 8 + 28 / 2) / 128 = .18, so the splits from 2 to 6 on are kept
    values = np.repeat(np.arange(1.0, 9.0)[:, None], 2, axis=1)
    assert median_interval(values) == (2.0, 7.0)


def test_items_on_both_sides_of_the_median_do_not_move_it() -> None:
    values = np.repeat(np.arange(1.0, 9.0)[:, None], 2, axis=1)
    straddling = np.tile([[-50.0, 50.0]], (5, 1))
    assert median_interval(np.concatenate([values, straddling])) == (2.0, 7.0)


@pytest.mark.parametrize("count", [1, 4])
def test_too_few_items_have_no_median_interval(count: int) -> None:
    assert median_interval(np.arange(2.0 * count).reshape(count, 2)) is None


@pytest.mark.parametrize("spec", ["pride", "additive", "calibraeval:resamples=20"])
def test_bootstrap_intervals_need_sixty_items(spec: str) -> None:
    for count, given in ((FEWEST - 1, False), (FEWEST, True)):
        for estimate in fit(spec, pairs(count).table).estimates().values():
            assert (estimate.low is not None) == given
            assert (estimate.high is not None) == given


def test_interval_of_median_needs_five_items() -> None:
    method = parse_method("cell-median")
    rising = np.array([0.2, 0.3, 0.5, 0.7, 0.8])
    by_candidate = np.stack([rising, 1 - rising], axis=1)
    probs = np.stack([by_candidate, by_candidate[:, ::-1]], axis=1)  # P(A) is the same twice
    with pytest.warns(UserWarning, match="only 5 estimation questions"):
        first = next(iter(method.fit_tables({2: table_of(probs, (X0, X2))}).estimates().values()))
    assert first.value == pytest.approx(0.5)
    assert first.low == pytest.approx(0.2)
    assert first.high == pytest.approx(0.8)


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
