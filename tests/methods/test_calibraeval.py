"""CalibraEval as a method: what it asks, maps, warns about and cannot do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simulated_judges import choices_options, pairs, table_of

from unswayed.base.errors import MethodError, UsageError
from unswayed.methods.calibraeval import CalibraEval, Curve
from unswayed.methods.estimation import MethodWarning
from unswayed.model.decisions import TIE, tie_rank
from unswayed.model.presentation import X0, X1, X2, X3, Ask, presentations

THREE = [Ask(X0), Ask(X2), Ask(X1)]


def fitted(count: int = 300, seed: int = 0, **settings: Any) -> CalibraEval:
    return CalibraEval(**settings).fit_tables({2: pairs(count, seed=seed).table.select(THREE)})


def test_it_asks_for_the_coupled_and_the_order_only_swap() -> None:
    items = pairs(2).table.items
    asked = {
        objective: [
            ask.presentation
            for item, ask in CalibraEval(objective=objective).plan_fit(items)
            if item is items[0]
        ]
        for objective in ("both", "l1", "l2")
    }
    assert asked == {"both": [X0, X2, X1], "l1": [X0, X2], "l2": [X0, X1]}


def test_the_hand_case_gives_its_verdicts() -> None:
    # P(A) under X0, X1, X2: (.9, .9, .2), (.8, .8, .8) -> g = 0, .5, 1 at .2, .8, .9
    probs = np.array([[[0.9, 0.1], [0.8, 0.2], [0.9, 0.1]], [[0.8, 0.2], [0.2, 0.8], [0.8, 0.2]]])
    with pytest.warns(MethodWarning, match="only 2 estimation questions"):
        method = CalibraEval().fit_tables({2: table_of(probs, (X0, X2, X1))})
    judged = table_of(np.array([[[p, 1 - p]] for p in (0.1, 0.2, 0.5, 0.85, 0.9, 1.0)]), (X0,))
    scores = method.decide_table(judged).scores
    # linear between the points, clipped outside
    np.testing.assert_allclose(scores[:, 0], [0, 0, 0.25, 0.75, 1, 1], atol=1e-6)
    assert method.threshold(X0) == pytest.approx(0.8, abs=1e-6)


FENCE = Curve(2, 0, (0.2, 0.6, 0.8, 0.9), (0.0, 0.5, 0.5, 1.0), 2, -0.25)
"""A map that takes the difference between .6 and .8 away."""


def test_what_the_map_takes_the_difference_from_is_a_tie() -> None:
    at_fence = table_of(np.array([[[0.7, 0.3]], [[0.3, 0.7]], [[0.85, 0.15]]]), (X0,))
    verdicts = CalibraEval(curves=(FENCE,)).decide_table(at_fence)
    assert verdicts.choices.tolist() == [TIE, 1, 0]
    assert verdicts.tied.tolist() == [[True, True], [False, False], [False, False]]
    assert verdicts.verdict(0, item_id="s0", method="calibraeval").tie == (0, 1)


def test_equal_probabilities_go_to_the_tie_rule_by_content() -> None:
    even = Curve(2, 0, (0.2, 0.5, 0.9), (0.0, 0.5, 1.0), 2, -0.25)
    table = table_of(np.full((60, 1, 2), 0.5), (X0,))
    for curve in (even, replace(even, z=(0.5,), g=(0.5,))):
        choices = CalibraEval(curves=(curve,)).decide_table(table).choices
        assert choices.tolist() == [tie_rank(item).index(0) for item in table.items]


def test_a_constant_map_is_not_applied_and_is_warned_about() -> None:
    noisy = pairs(200, noise=3.0).table
    with pytest.warns(MethodWarning, match=r"constant .* verdicts are the uncorrected ones"):
        method = CalibraEval().fit_tables({2: noisy.select([Ask(shape) for shape in (X0, X2, X1)])})
    assert method.curves[0].is_constant
    assert method.threshold(X0) == 0.5
    (estimate,) = method.estimates().values()
    assert (estimate.value, estimate.reason) == (None, "the map is constant")
    for shape in (X0, X1, X2, X3):
        seen = noisy.select(method.asks(2), through=shape)
        verdicts = method.decide_table(seen)
        np.testing.assert_array_equal(verdicts.choices, seen.choices[:, 0])
        np.testing.assert_allclose(verdicts.scores, seen.probs[:, 0])  # type: ignore[index,arg-type]


def test_descent_is_not_said_to_be_constant_where_it_is_not() -> None:
    noisy = pairs(200, noise=3.0).table.select([Ask(shape) for shape in (X0, X2, X1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", MethodWarning)
        method = CalibraEval(solver="noa", epochs=5).fit_tables({2: noisy})
    assert not method.curves[0].is_constant
    assert method.curves[0].loss > 0  # worse than the constant map, and still a map


def test_the_map_is_of_label_a_wherever_it_stands() -> None:
    method = fitted()
    sim = pairs(50, seed=3)
    for column, shape in enumerate((X0, X1, X2, X3)):
        scores = method.decide_table(sim.table.select(method.asks(2), through=shape)).scores
        p_a = sim.table.probs[:, column, shape.candidate_of_label(0)]
        curve = method.curves[0]  # type: ignore[index]
        seen_a = 0 if shape.labels == (0, 1) else 1  # candidate of the view that carries A
        np.testing.assert_allclose(scores[:, seen_a], np.interp(p_a, curve.z, curve.g))
        np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_a_weight_below_lambda_star_is_warned_about_on_request() -> None:
    with pytest.warns(MethodWarning, match=r"below 1.2 x lambda\*"):
        method = fitted(weight=0.05, diagnose=True)
    critical = method.curves[0].critical
    assert 1.2 * critical > 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error", MethodWarning)
        assert fitted(diagnose=True).curves[0].critical == pytest.approx(critical, rel=0.05)  # type: ignore[index]
        assert fitted().curves[0].critical is None  # type: ignore[index]


def test_the_interval_of_the_threshold_covers_its_own_estimate() -> None:
    method = fitted(150, resamples=40)
    (estimate,) = method.estimates().values()
    assert estimate.low <= estimate.value <= estimate.high  # type: ignore[operator]
    assert 0.005 < estimate.high - estimate.low < 0.3
    assert next(iter(fitted(150).estimates().values())).low is None


def test_equal_probabilities_leave_everything_to_the_tie_rule() -> None:
    flat = table_of(np.full((30, 3, 2), 0.5), (X0, X2, X1))
    with pytest.warns(MethodWarning, match="all estimation probabilities are equal"):
        method = CalibraEval().fit_tables({2: flat})
    choices = method.decide_table(pairs(60).table.select([Ask(X0)])).choices
    assert set(choices.tolist()) == {0, 1}


def test_an_item_that_lacks_one_probability_is_left_out() -> None:
    table = pairs(60).table.select(THREE)
    table.probs[:20, 2] = np.nan
    method = CalibraEval().fit_tables({2: table})
    assert method.curves == CalibraEval().fit_tables({2: table.rows(np.arange(20, 60))}).curves


def test_no_more_than_3000_items_are_asked_about() -> None:
    items = pairs(3100).table.items
    assert len(CalibraEval().plan_fit(items)) == 3 * 3000


def test_more_than_two_candidates_are_marked_unvalidated() -> None:
    shown = presentations("cyclic", 4)
    planted = {"positions": (1.0, 0.2, -0.4, -0.8), "labels": (0.4, 0.0, -0.2, -0.2)}
    train = choices_options(300, 4, shown, seed=1, **planted)
    test = choices_options(500, 4, shown, seed=2, **planted)
    with pytest.warns(MethodWarning, match="unvalidated"):
        method = CalibraEval().fit_tables({4: train.table})
    assert "unvalidated extension" in CalibraEval.about.cannot
    corrected = method.decide_table(test.table.select(method.asks(4)))
    np.testing.assert_allclose(corrected.scores.sum(axis=1), 1)
    raw = (test.table.choices[:, 0] == test.gold).mean()
    assert (corrected.choices == test.gold).mean() > raw + 0.1
    with pytest.raises(MethodError, match="l2 needs 2 candidates, got 4"):
        CalibraEval(objective="l2").plan_fit(train.table.items)


@pytest.mark.parametrize("wrong", [{"weight": -1}, {"starts": 0}])
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="weight must be >= 0; starts, batch and epochs >= 1"):
        CalibraEval(**wrong)
