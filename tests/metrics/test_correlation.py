"""Correlations with human scores, spread within items, agreement of rankings."""

import numpy as np
import pytest

from unswayed.errors import ShapeError
from unswayed.metrics import Scores, measure_scores
from unswayed.metrics.correlation import (
    kendall_tau,
    pearson,
    ranking_agreement,
    spearman,
    within_item_sd,
)


def scores(rows: object, human: object = None) -> Scores:
    array = np.asarray(rows, dtype=float)
    ids = tuple(f"q{i}" for i in range(len(array)))
    return Scores(ids, array, None if human is None else np.asarray(human, dtype=float))


def test_worked_correlations() -> None:
    x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    assert pearson(x, y) == pytest.approx(0.8)
    assert spearman(x, y) == pytest.approx(0.8)
    assert kendall_tau(x, y) == pytest.approx(4 / 6)  # 5 pairs agree, 1 does not


def test_correlations_agree_with_scipy_with_ties() -> None:
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(0)
    x = generator.integers(1, 6, 50).astype(float)
    y = x + generator.integers(0, 4, 50)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic)


@pytest.mark.parametrize("function", [pearson, spearman, kendall_tau])
def test_correlation_is_undefined_for_constants_and_two_items(function: object) -> None:
    assert np.isnan(function(np.ones(5), np.arange(5.0)))  # type: ignore[operator]
    assert np.isnan(function(np.arange(2.0), np.arange(2.0)))  # type: ignore[operator]


def test_item_means_are_compared_where_both_sides_are_known() -> None:
    made = scores(
        [[1, 1], [2, np.nan], [3, 3], [4, 4], [np.nan, np.nan], [9, 9]],
        human=[1, 3, 2, 4, 5, np.nan],
    )
    row = measure_scores(made, resamples=200)
    assert row["pearson"]["value"] == pytest.approx(0.8)  # type: ignore[index]
    assert row["pearson"]["n"] == 4  # type: ignore[index]
    assert row["spearman"]["low"] <= 0.8 <= row["spearman"]["high"]  # type: ignore[index]


def test_missing_human_scores_are_a_reason() -> None:
    row = measure_scores(scores([[1, 2], [2, 3], [4, 4]]), resamples=10)
    assert row["kendall_tau"] == {"value": None, "reason": "no human scores"}
    few = measure_scores(scores([[1, 2]], human=[1]), resamples=10)
    assert few["pearson"]["reason"] == "fewer than three items"  # type: ignore[index]


def test_spread_within_items_has_ddof_one() -> None:
    # (4, 5, 4, 3): .816, not .707; a single score says nothing
    made = scores([[4, 5, 4, 3], [2, np.nan, np.nan, np.nan], [1, 1, np.nan, 1]])
    assert within_item_sd(made, resamples=50).value == pytest.approx((0.81650 + 0) / 2, abs=1e-5)
    assert within_item_sd(made, resamples=50).n == 2
    nothing = within_item_sd(scores([[1], [2]]))
    assert (nothing.value, nothing.reason) == (None, "no item has two scores")


def test_ranking_agreement_is_the_mean_kendall_tau_between_orders() -> None:
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(3)
    rankings = np.array(
        [[generator.permutation(4) for _ in range(3)] for _ in range(6)], dtype=np.int16
    )
    expected = []
    for item in rankings:
        places = np.argsort(item, axis=1)
        pairs = [(0, 1), (0, 2), (1, 2)]
        expected.append(
            np.mean([stats.kendalltau(places[a], places[b]).statistic for a, b in pairs])
        )
    assert ranking_agreement(rankings, resamples=20).value == pytest.approx(np.mean(expected))


def test_a_missing_ranking_is_left_out() -> None:
    same = np.array([[[2, 0, 1], [2, 0, 1], [-1, -1, -1]]], dtype=np.int16)
    assert ranking_agreement(same, resamples=20).value == pytest.approx(1.0)
    alone = ranking_agreement(same[:, 1:], resamples=20)
    assert (alone.value, alone.reason) == (None, "no item has two rankings")


def test_shapes_are_checked() -> None:
    with pytest.raises(ShapeError, match="human scores"):
        scores([[1.0], [2.0]], human=[1.0])
