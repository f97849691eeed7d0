"""Real questions with four options as lists: what a bias for the first place does and undoes."""

import gzip
import json

import pytest

import needs
from unswayed.api import audit
from unswayed.model.items import Item, ItemSet, Task

FILE = needs.DATA / "arc" / "ARC-Challenge-Dev_dev.jsonl.gz"
pytestmark = needs.recorded
QUIET = "simulated/judge?slot=1.5,0,0,0&label=0&noise=0&content=1"


@pytest.fixture(scope="module")
def lists() -> ItemSet:
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if len(row["question"]["choices"]) == 4][:120]
    items = []
    for row in rows[::3]:
        choices = row["question"]["choices"]
        right = [choice["label"] for choice in choices].index(row["answerKey"])
        items.append(
            Item(
                id=row["id"],
                task=Task.LISTWISE,
                prompt=row["question"]["stem"],
                candidates=tuple(choice["text"] for choice in choices),
                gold=right,
                # ten points for the right answer: less than the first place is worth
                meta={"utility": [1.0 * (c == right) for c in range(4)]},
            )
        )
    return ItemSet.of(items, name="arc-lists")


def test_even_orders_undo_points_for_the_first_position(lists: ItemSet) -> None:
    methods = ["pcf", "pcf:orders=cyclic", "average", "vote"]
    result = audit(QUIET, lists, methods=methods, resamples=100)
    accuracy = {name: row["accuracy"]["value"] for name, row in result.metrics["methods"].items()}
    first = sum(item.gold == 0 for item in lists) / len(lists)
    assert accuracy["direct"] == pytest.approx(first)  # right only where the right one is first
    assert accuracy["pcf:orders=cyclic"] == accuracy["average"] == 1.0
    assert accuracy["direct"] < accuracy["pcf"]
    assert result.metrics["methods"]["direct"]["position_rate"][0]["low"] > 0.9


def test_an_unbiased_judge_of_the_same_lists_is_left_alone(lists: ItemSet) -> None:
    judge = "simulated/judge?slot=0&label=0&noise=0&content=1"
    result = audit(judge, lists, methods=["pcf", "average", "vote"], resamples=100)
    for row in result.metrics["methods"].values():
        assert row["accuracy"]["value"] == row["consistency"]["value"] == 1.0
