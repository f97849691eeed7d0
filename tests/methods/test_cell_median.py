"""The cell median: thresholds, their invariance, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_judges import pairs, saturating, table_of

from unswayed.base.errors import MethodError
from unswayed.methods.cell_median import CellMedian
from unswayed.methods.estimation import MethodWarning
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X1, X2, X3, Ask


def test_the_threshold_is_the_median_over_coupled_orders() -> None:
    # P(A) under X0: .9, .6, .5; under X2 (A is candidate 1): .7, .2, .3
    probs = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.8, 0.2]], [[0.5, 0.5], [0.7, 0.3]]])
    with pytest.warns(MethodWarning, match="only 3 estimation questions"):
        fitted = CellMedian().fit_tables({2: table_of(probs, (X0, X2))})
    # middle of logit(.5) and logit(.6)
    middle = np.log(0.6 / 0.4) / 2
    assert fitted.threshold(X0) == pytest.approx(1 / (1 + np.exp(-middle)))


def test_half_of_the_permuted_answers_end_on_either_side() -> None:
    table = pairs(101, seed=4).table.select([Ask(X0), Ask(X2)])
    fitted = CellMedian().fit_tables({2: table})
    choices = [
        fitted.decide_table(table.select(fitted.asks(2), through=shape)).choices
        for shape in (X0, X2)
    ]
    labels = np.concatenate(choices)  # in a coupled view candidate and label coincide
    assert (labels == 0).sum() == 101


def test_no_monotone_distortion_moves_a_verdict() -> None:
    plain, bent = pairs(400, seed=5), pairs(400, seed=5, link=saturating)
    fitted = [
        CellMedian(layouts="all").fit_tables({2: sim.table.rows(np.arange(101))})
        for sim in (plain, bent)
    ]
    for shape in (X0, X1, X2, X3):
        seen = [
            method.decide_table(sim.table.select(method.asks(2), through=shape)).choices
            for method, sim in zip(fitted, (plain, bent), strict=True)
        ]
        # the median of an even count is the mean of two, which a bend moves by a hair
        assert (seen[0] != seen[1]).mean() < 0.01


def test_unbalanced_gold_does_not_move_the_threshold() -> None:
    planted = 1 / (1 + np.exp(-1.0))
    for shift in (0.0, 1.4):
        fitted = CellMedian().fit_tables(
            {2: pairs(2000, shift=shift).table.select([Ask(X0), Ask(X2)])}
        )
        assert fitted.threshold(X0) == pytest.approx(planted, abs=0.02)


def test_the_interval_covers_the_threshold() -> None:
    planted = 1 / (1 + np.exp(-1.0))
    fitted = CellMedian().fit_tables({2: pairs(200).table.select([Ask(X0), Ask(X2)])})
    (first, second) = fitted.estimates().values()
    assert first.low < planted < first.high
    assert second.low == pytest.approx(1 - first.high)


def test_it_is_for_two_candidates() -> None:
    item = Item(id="four", task=Task.MCQ, prompt="?", candidates=("a", "b", "c", "d"))
    with pytest.raises(MethodError, match="four: cell-median needs 2 candidates, got 4"):
        CellMedian().plan_fit([item])
    with pytest.raises(MethodError, match="needs 2 candidates"):
        CellMedian().asks(4)
    assert CellMedian.about.candidates == 2
