"""What a place in a list is worth in points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from metric_builders import outcomes

from unswayed.metrics import Outcomes, measure
from unswayed.model.presentation import presentations

NAN = float("nan")
THREE = presentations("cyclic", 3)  # 0 1 2, 1 2 0, 2 0 1


def with_scores(scores: object, permutable: list[bool] | None = None) -> Outcomes:
    own = np.array(scores, dtype=float)
    plain = outcomes(
        [[0] * own.shape[1]] * len(own), shown=THREE[: own.shape[1]], permutable=permutable
    )
    return replace(plain, scores=own)


def points(made: Outcomes, resamples: int = 0) -> list[float | None]:
    row = measure([made], names=["position_score"], resamples=resamples)
    return [place.value for place in row.values["position_score"]]


def item(
    worth: tuple[float, float, float], places: tuple[float, float, float]
) -> list[list[float]]:
    """Scores by presentation and candidate of a judge who adds points to places."""
    return [[worth[c] + places[shown.order.index(c)] for c in range(3)] for shown in THREE]


def test_planted_points_by_position_are_recovered() -> None:
    made = with_scores([item((80, 20, 50), (6, 0, -6)), item((10, 90, 90), (2, 2, -4))])
    assert points(made) == pytest.approx([4.0, 1.0, -5.0])


def test_judge_of_content_adds_nothing() -> None:
    assert points(with_scores([item((80, 20, 50), (0, 0, 0))])) == pytest.approx([0, 0, 0])


def test_items_without_every_score_or_order_are_left_out() -> None:
    partial = item((80, 20, 50), (60, 0, 0))
    partial[1][2] = NAN
    fixed = item((1, 2, 3), (90, 0, 0))
    whole = item((80, 20, 50), (3, 0, -3))
    made = with_scores([partial, fixed, whole], permutable=[True, False, True])
    row = measure([made], names=["position_score"], resamples=0).values["position_score"]
    assert [place.value for place in row] == pytest.approx([3.0, 0.0, -3.0])
    assert {place.n for place in row} == {1}


def test_the_interval_holds_what_was_planted() -> None:
    draw = np.random.default_rng(4)
    rows = [
        [
            [s + draw.normal(0, 4) for s in row]
            for row in item(tuple(draw.uniform(0, 90, 3)), (5, 0, -5))
        ]
        for _ in range(80)
    ]
    first, middle, last = measure([with_scores(rows)], names=["position_score"]).values[
        "position_score"
    ]
    assert (first.low or 0) > 3
    assert (first.high or 9) < 7
    assert (middle.low or 0) < 0 < (middle.high or 0)
    assert (last.high or 0) < -3


def test_value_needs_scores_and_orders() -> None:
    assert "position_score" not in measure([outcomes([[0, 1], [1, 1]])], resamples=0).values
    alone = with_scores([[[80.0, 20.0, 50.0]]])
    assert "position_score" not in measure([alone], resamples=0).values
