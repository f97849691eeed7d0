"""Listwise replies: scores, flags and ranking by candidate, and the candidate they choose."""

import json

import numpy as np
import pytest

from unswayed.model.calls import Response
from unswayed.model.decisions import Decision, DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask, Presentation, presentations
from unswayed.model.tasks import task_of
from unswayed.prompts import PROMPTS

ITEM = Item(id="l1", task=Task.LISTWISE, prompt="?", candidates=("x", "y", "z"), gold=1)
SHOWN = Presentation((2, 0, 1), (0, 1, 2))  # A is z, B is x, C is y
LABELS = ("A", "B", "C")
REPLY = task_of("listwise").reply
FLAGS = {"major_error": False, "hallucinated_specificity": False, "calibrated_uncertainty": True}


def read(scores: dict[str, object], ranking: list[str] | None, **fields: object) -> Decision:
    marks = {label: {"score": score, "rationale": "r", **FLAGS} for label, score in scores.items()}
    return read_text(json.dumps({"candidates": marks, "ranking": ranking}), **fields)


def read_text(text: str, **fields: object) -> Decision:
    response = Response(text=text, **fields)
    return REPLY.read(ITEM, Ask(SHOWN), LABELS, response, model="m", answer_only=False)


def test_everything_is_by_candidate() -> None:
    decision = read({"A": 10, "B": 90, "C": 50}, ["B", "C", "A"])
    assert decision.scores == (90.0, 50.0, 10.0)
    assert decision.ranking == (0, 1, 2)
    assert decision.flags is not None
    assert decision.flags["calibrated_uncertainty"] == (True, True, True)
    assert decision.choice == 0
    assert decision.ratings["rank"] == (1, 2, 3)


@pytest.mark.parametrize(
    ("scores", "ranking", "choice"),
    [
        ({"A": 1, "B": 2, "C": 3}, None, 1),
        ({"A": 3, "B": 2, "C": 1}, ["C", "B", "A"], 2),  # the score, whatever the ranking says
        ({"A": 3, "B": 3, "C": 1}, ["B", "A", "C"], 0),  # equal: the ranking
        ({"A": 3, "B": 3, "C": 1}, ["C", "A", "B"], 2),
        ({"A": 3, "B": 3, "C": 1}, None, "tie"),
    ],
)
def test_the_highest_score_is_chosen(
    scores: dict[str, object], ranking: list[str] | None, choice: object
) -> None:
    assert read(scores, ranking).choice == choice


def test_a_refusal_is_not_read() -> None:
    decision = read({"A": 1, "B": 2, "C": 3}, ["C", "B", "A"], finish_reason="refusal")
    assert (decision.choice, decision.scores, decision.ranking) == (None, None, None)


def test_a_simulated_judge_writes_what_it_thinks() -> None:
    decision = read_text(REPLY.written(LABELS, "C", [40.4, 71.2, 71.4], answer_only=True))
    assert decision.scores == (71.0, 71.0, 40.0)
    assert (decision.ranking, decision.choice) == ((1, 0, 2), 1)


def test_more_candidates_get_more_room_and_their_own_schema() -> None:
    direct = PROMPTS.load("direct").reply
    small, large = (REPLY.request(LABELS[:n], direct) for n in (2, 3))
    assert small.max_tokens < large.max_tokens
    assert not large.answer_only
    assert large.schema != small.schema
    reasoning = REPLY.request(LABELS, PROMPTS.load("reasoning").reply)
    assert reasoning.schema is None  # it would leave no room for the reasoning
    assert reasoning.max_tokens > large.max_tokens


def test_ratings_are_columns_through_any_view() -> None:
    shapes, nan = presentations("cyclic", 3), float("nan")
    rated = {"ranking": (2, 0, 1), "flags": {"major_error": (True, None, False)}}

    def decision(column: int, **more: object) -> Decision:
        return Decision(item_id="l1", order=shapes[column].order, labels=LABELS, choice=0, **more)

    decisions = [decision(k, scores=(1.0 + k, None, 3.0), **rated) for k in range(3)]
    table = DecisionTable.of([ITEM], decisions)
    assert table.ratings["score"][0, :, 0].tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(table.ratings["score"][0, :, 1]).all()
    assert table.ratings["rank"][0, 0].tolist() == [2.0, 3.0, 1.0]
    np.testing.assert_equal(table.ratings["major_error"][0, 1], [1.0, nan, 0.0])
    seen = table.select([Ask(shown) for shown in shapes], through=shapes[1])
    # the first column of the view is the second of the table, candidates renumbered by (1, 2, 0)
    assert seen.ratings["score"][0, 0, 2] == 2.0
    assert seen.ratings["rank"][0, 0].tolist() == [3.0, 1.0, 2.0]
    again = DecisionTable.of([ITEM], [*decisions, decision(0)])
    assert np.isnan(again.ratings["score"][0, 0]).all()
