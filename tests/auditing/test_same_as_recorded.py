"""Answers have the same figures and intervals, asked for or recorded."""

import pytest

import unswayed as us
from unswayed.model.permutations import ORDER_SETS

ITEMS = [
    {
        "id": f"q{i}",
        "task": "mcq",
        "prompt": f"Question {i}",
        "candidates": [f"a{i}", f"b{i}", f"c{i}"],
        "gold": i % 3,
    }
    for i in range(40)
]


@pytest.mark.parametrize("orders", sorted({*ORDER_SETS, "graeco-latin", "random:4"} - {"swap"}))
def test_recorded_answers_have_figures_of_asked_ones(orders: str) -> None:
    asked = us.audit("simulated/judge", ITEMS, orders=orders, methods="direct", resamples=200)
    recorded = us.audit(items=ITEMS, decisions=asked.decisions, methods="direct", resamples=200)
    assert recorded.metrics["methods"]["direct"] == asked.metrics["methods"]["direct"]
