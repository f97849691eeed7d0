"""What the order of levels does to scores, and the order of candidates to rankings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from metric_builders import M, cell, outcomes, value
from scipy import stats

from unswayed.metrics import Outcomes, measure
from unswayed.metrics.score_effects import rank_agreement
from unswayed.model.presentation import presentations

NAN = float("nan")
FOUR = presentations("cyclic", 4)


def with_scores(score: list[list[float]], permutable: list[bool] | None = None) -> Outcomes:
    plain = outcomes([[0] * 4] * len(score), shown=FOUR, permutable=permutable)
    return replace(plain, score=np.array(score))


def test_the_sd_within_an_item_divides_by_one_less() -> None:
    assert value("within_item_sd", with_scores([[4, 5, 4, 3]])) == pytest.approx(0.8165, abs=1e-4)
    both = with_scores([[4, 5, 4, 3], [2, 2, 2, 2]])
    assert value("within_item_sd", both) == pytest.approx(0.8165 / 2, abs=1e-4)


def test_the_sd_takes_two_scores_and_what_may_be_permuted() -> None:
    rows = [[4.0, NAN, 2.0, NAN], [5.0, NAN, NAN, NAN], [1.0, 5.0, 1.0, 5.0]]
    made = with_scores(rows, permutable=[True, True, False])
    estimate = cell("within_item_sd", made)
    assert (estimate.value, estimate.n) == (pytest.approx(2**0.5), 1)


def test_the_shift_is_what_the_own_order_adds() -> None:
    rows = [[4.0, 2.0, 2.0, 4.0], [5.0, 4.0, 5.0, 4.0], [9.0, NAN, 1.0, 1.0]]
    estimate = cell("score_shift", with_scores(rows))
    assert (estimate.value, estimate.n) == (pytest.approx((1.0 + 0.5) / 2), 2)


def test_shift_needs_recorded_own_order() -> None:
    plain = outcomes([[0, 1, 2]], shown=FOUR[1:])
    others = replace(plain, score=np.array([[5.0, 4.0, 3.0]]))
    assert value("score_shift", others) is None
    assert value("within_item_sd", others) == pytest.approx(1.0)


def test_reading_every_order_gives_one_score_by_construction() -> None:
    made = with_scores([[4.0] * 4, [2.5] * 4])
    row = measure([made], names=["within_item_sd", "score_shift"], constructed=True, resamples=20)
    for estimate in row.estimates.values():
        assert (estimate.low, estimate.value, estimate.high) == (0.0, 0.0, 0.0)
        assert estimate.by_construction


def test_a_ranking_agrees_with_another_by_kendall() -> None:
    # (3,2,1) and (3,1,2): two of three pairs alike. (1,1,0) and (1,0,0): tau-b 1/2
    scores = np.array([[[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]], [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    assert rank_agreement(scores) == pytest.approx([1 / 3, 1 / 2])


def test_scores_equal_but_for_rounding_tie() -> None:
    scores = np.array([[[0.1 + 0.2, 0.3, 0.0], [0.3, 0.1 + 0.2, 0.0]]])
    assert rank_agreement(scores) == pytest.approx([1.0])


def test_rankings_are_compared_over_shared_candidates() -> None:
    draw = np.random.default_rng(3)
    scores = draw.integers(0, 5, (40, 4, 6)).astype(float)
    scores[draw.random(scores.shape) < 0.15] = NAN
    for own, computed in zip(scores, rank_agreement(scores), strict=True):
        taus = []
        for v in range(4):
            for w in range(v + 1, 4):
                both = ~np.isnan(own[v]) & ~np.isnan(own[w])
                a, b = own[v][both], own[w][both]
                if len(set(a)) > 1 and len(set(b)) > 1:
                    taus.append(stats.kendalltau(a, b)[0])
        assert computed == pytest.approx(np.mean(taus))


def test_nothing_is_compared_with_a_ranking_without_an_order() -> None:
    flat = np.ones((1, 2, 3))
    assert np.isnan(rank_agreement(flat)).all()
    scores = np.array([[[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]], [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]])
    shown = presentations("cyclic", 3)[:2]
    made = replace(outcomes([[0, 0], [0, M]], shown=shown), scores=scores)
    estimate = cell("rank_stability", made)
    assert (estimate.value, estimate.n) == (1.0, 1)


def test_row_needs_scores() -> None:
    plain = outcomes([[0, 1], [1, 1]])
    assert not {"within_item_sd", "score_shift", "rank_stability"} & set(
        measure([plain], resamples=0).values
    )


THREE = presentations("cyclic", 3)  # 0 1 2, 1 2 0, 2 0 1


def listed(scores: object, permutable: list[bool] | None = None) -> Outcomes:
    own = np.array(scores, dtype=float)
    plain = outcomes(
        [[0] * own.shape[1]] * len(own), shown=THREE[: own.shape[1]], permutable=permutable
    )
    return replace(plain, scores=own)


def points(made: Outcomes, resamples: int = 0) -> list[float | None]:
    row = measure([made], names=["position_score"], resamples=resamples)
    return [place.value for place in row.values["position_score"]]


def scored(
    worth: tuple[float, float, float], places: tuple[float, float, float]
) -> list[list[float]]:
    """Scores by presentation and candidate of a judge who adds points to places."""
    return [[worth[c] + places[shown.order.index(c)] for c in range(3)] for shown in THREE]


def test_planted_points_by_position_are_recovered() -> None:
    made = listed([scored((80, 20, 50), (6, 0, -6)), scored((10, 90, 90), (2, 2, -4))])
    assert points(made) == pytest.approx([4.0, 1.0, -5.0])


def test_judge_of_content_adds_nothing() -> None:
    assert points(listed([scored((80, 20, 50), (0, 0, 0))])) == pytest.approx([0, 0, 0])


def test_items_without_every_score_or_order_are_left_out() -> None:
    partial = scored((80, 20, 50), (60, 0, 0))
    partial[1][2] = NAN
    fixed = scored((1, 2, 3), (90, 0, 0))
    whole = scored((80, 20, 50), (3, 0, -3))
    made = listed([partial, fixed, whole], permutable=[True, False, True])
    row = measure([made], names=["position_score"], resamples=0).values["position_score"]
    assert [place.value for place in row] == pytest.approx([3.0, 0.0, -3.0])
    assert {place.n for place in row} == {1}


def test_the_interval_holds_what_was_planted() -> None:
    draw = np.random.default_rng(4)
    rows = [
        [
            [s + draw.normal(0, 4) for s in row]
            for row in scored(tuple(draw.uniform(0, 90, 3)), (5, 0, -5))
        ]
        for _ in range(80)
    ]
    first, middle, last = measure([listed(rows)], names=["position_score"]).values["position_score"]
    assert (first.low or 0) > 3
    assert (first.high or 9) < 7
    assert (middle.low or 0) < 0 < (middle.high or 0)
    assert (last.high or 0) < -3


def test_value_needs_scores_and_orders() -> None:
    assert "position_score" not in measure([outcomes([[0, 1], [1, 1]])], resamples=0).values
    alone = listed([[[80.0, 20.0, 50.0]]])
    assert "position_score" not in measure([alone], resamples=0).values
