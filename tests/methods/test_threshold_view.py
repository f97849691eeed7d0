"""The threshold view: every single-call method is a threshold, and the oracle bounds them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_judges import FOUR, fit, pairs, table_of

from unswayed.base.errors import MethodError
from unswayed.methods.names import parse_method
from unswayed.methods.threshold import best_threshold, method_thresholds, threshold_view
from unswayed.model.presentation import X0, X1, X2, X3, Ask

SPECS = (
    "batch:layouts=all",
    "pride:prior=cell",
    "calibraeval",
    "additive",
    "cell-median:layouts=all",
)


@cache
def fitted(spec: str):
    return fit(spec, pairs(400, seed=11).table)


@pytest.mark.parametrize("spec", ["pride:prior=cell", "additive", "cell-median:layouts=all"])
def test_each_label_sequence_has_its_own_threshold(spec: str) -> None:
    method = fit(parse_method(spec).with_resamples(0), pairs(4000).table)
    first, second = method.threshold(X0), method.threshold(X1)
    assert first == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.015)  # .4 + .6
    assert second == pytest.approx(1 / (1 + np.exp(0.2)), abs=0.02)  # .4 - .6
    assert (method.threshold(X2), method.threshold(X3)) == (first, second)


@pytest.mark.parametrize("spec", SPECS)
def test_a_verdict_is_a_threshold_on_the_probability_of_a(spec: str) -> None:
    method = fitted(spec)
    table = pairs(300, seed=3).table
    for column, shape in enumerate(FOUR):
        threshold = method.threshold(shape)
        p_a = table.probs[:, column, shape.candidate_of_label(0)]
        seen = method.decide_table(table.select(method.asks(2), through=shape))
        chosen = np.array(shape.order)[seen.choices]
        a_wins = chosen == shape.candidate_of_label(0)
        clear = np.abs(p_a - threshold) > 1e-6
        np.testing.assert_array_equal(a_wins[clear], (p_a > threshold)[clear])


def brute_force(p_a: np.ndarray, right: np.ndarray) -> float:
    cuts = [-1.0, *p_a.tolist()]
    return max(float(((p_a > cut) == right).mean()) for cut in cuts)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 30))
def test_the_best_threshold_is_that_of_brute_force(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    p_a = np.round(rng.random(count), 1)
    right = rng.random(count) < p_a
    oracle = best_threshold(p_a, right)
    assert oracle.accuracy == pytest.approx(brute_force(p_a, right))
    assert float(((p_a > oracle.threshold) == right).mean()) == pytest.approx(oracle.accuracy)


def test_a_hand_made_oracle() -> None:
    # right: A, A, B, B at .9, .7, .6, .2 -> everything right between .6 and .7
    oracle = best_threshold(np.array([0.9, 0.7, 0.6, 0.2]), np.array([True, True, False, False]))
    assert oracle.threshold == pytest.approx(0.65)
    assert oracle.accuracy == 1
    with pytest.raises(MethodError, match="at least one"):
        best_threshold(np.array([]), np.array([], dtype=bool))


def test_no_single_threshold_serves_both_positions() -> None:
    sim = pairs(6000, label=0.0, slot=1.2, seed=5)
    methods = [parse_method("direct"), *(fitted(spec) for spec in SPECS)]
    view = threshold_view(methods, sim.table, sim.gold.tolist())
    assert set(view.by_presentation) == {"X0", "X1", "X2", "X3"}
    # a pure preference for the first position: best t is above 1/2 where A is first, below else
    for name in ("X0", "X2"):
        assert view.by_presentation[name].threshold > 0.65
    for name in ("X1", "X3"):
        assert view.by_presentation[name].threshold < 0.35
    assert view.single.n == view.cells.n == 4 * 6000
    assert view.cells.accuracy > view.single.accuracy + 0.05
    assert view.methods["direct"] == dict.fromkeys(("X0", "X1", "X2", "X3"), 0.5)
    calibrated = set(view.methods["calibraeval"].values())
    assert len(calibrated) == 1  # one map: one threshold everywhere
    assert "wrong for the other" in view.text
    assert f"{view.single.accuracy:.1%}" in view.text


def test_the_oracles_of_the_specification() -> None:
    # label .4, first position .6: best t .73 (X0), .45 (X1), .67 (X2), read off 1000 items there;
    # the planted ones are sigmoid(1) = .731, sigmoid(-.2) = .450, sigmoid(1) = .731
    sim = pairs(20000, seed=6)
    view = threshold_view([], sim.table, sim.gold.tolist())
    for name, planted in (("X0", 0.731), ("X1", 0.450), ("X2", 0.731), ("X3", 0.450)):
        assert view.by_presentation[name].threshold == pytest.approx(planted, abs=0.06)


def test_coupled_presentations_alone_need_one_threshold() -> None:
    sim = pairs(300)
    coupled = sim.table.select([Ask(X0), Ask(X2)])
    view = threshold_view([parse_method("direct")], coupled, sim.gold.tolist())
    assert set(view.methods["direct"]) == {"X0", "X2"}
    assert "one threshold can serve" in view.text


def test_oracle_needs_gold() -> None:
    view = threshold_view([], pairs(5).table, [None] * 5)
    assert view.single is None
    assert "Without gold" in view.text


def test_methods_that_read_several_calls_have_no_threshold() -> None:
    methods = [parse_method("vote"), parse_method("average"), fitted("additive")]
    assert list(method_thresholds(methods)) == ["additive"]


def test_unknown_probabilities_and_golds_are_left_out() -> None:
    table = table_of(np.array([[[0.9, 0.1]], [[np.nan, np.nan]], [[0.2, 0.8]]]), (X0,))
    view = threshold_view([], table, [0, 1, None])
    assert view.single.n == 1
