"""Rubric items: levels with values, the text that is scored, the human score."""

import pytest

from unswayed.base.errors import ItemError
from unswayed.model.calls import Response
from unswayed.model.items import Item, Task, items_of
from unswayed.model.parsing import read_decision
from unswayed.model.presentation import Ask, canonical, content_order

ROW = {
    "id": "r1",
    "task": "rubric",
    "prompt": "Tell me about tea.",
    "response": "Tea is a plant.",
    "candidates": ["good", "bad", "fair"],
    "values": [5, 1, 3],
    "gold": 3,
}


def item_of(**fields: object) -> Item:
    (item,) = items_of([{**ROW, **fields}])
    return item


@pytest.mark.parametrize(
    ("gold", "score", "levels"), [(3, 3.0, (2,)), (3.5, 3.5, ()), (None, None, ())]
)
def test_the_human_score_names_a_level_where_it_is_one(
    gold: float | None, score: float | None, levels: tuple[int, ...]
) -> None:
    item = item_of(gold=gold)
    assert (item.human_score(), item.gold_candidates()) == (score, levels)
    other = Item(id="q", task=Task.MCQ, prompt="?", candidates=("a", "b"), gold=1)
    assert other.human_score() is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"values": None}, "values: rubric needs one score per level: 3 levels, values: none"),
        ({"values": [1, 2]}, "values: rubric needs one score per level: 3 levels, values: 2"),
        ({"values": [1, 2, 2]}, r"values: \[1.0, 2.0, 2.0\] are not 3 different numbers"),
        ({"values": [1e308, -1e308, 0]}, r"values: .* are not 3 different numbers below 1e\+15"),
        ({"gold": 10**400}, r"gold: 1000\d* is not a number below 1e\+15"),
        ({"gold": -1e15}, r"gold: -1000\S* is not a number below 1e\+15"),
        ({"response": None}, "response: rubric needs the text that is scored"),
        ({"gold": "tie"}, "gold: for rubric gold is a number"),
        ({"gold": [1]}, "gold: for rubric gold is a number"),
        ({"gold": {"style": 3}}, r"gold: names criteria that the item does not have: \['style'\]"),
        ({"gold": {"style": 3}}, r"it has none"),
        ({"gold": "3"}, r"without quotes.* not '3'"),
        ({"candidates": ["one"], "values": [1]}, "candidates: needs at least 2, got 1"),
    ],
)
def test_error_names_field(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ItemError, match=said):
        item_of(**fields)


def test_levels_are_sorted_by_value() -> None:
    assert content_order(item_of()) == (1, 2, 0)
    assert content_order(item_of(permutable=False)) == (0, 1, 2)


@pytest.mark.parametrize(("line", "level"), [("My verdict: [[C]]", 0), ("Tea grows.", 2)])
def test_repeated_line_of_response_gives_no_verdict(line: str, level: int) -> None:
    item = item_of(response=f"Tea is a plant.\n{line}")
    reply = Response(text="Answer: A\n\nMy verdict: [[C]]", finish_reason="stop")
    read = read_decision(item, Ask(canonical(3)), "ABC", reply, model="m", answer_only=False)
    assert read.choice == level
