"""Judges of a scale with a planted liking for positions: what each method takes out of it."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from unswayed.backends.simulated import SimulatedJudge, simulated_items
from unswayed.backends.utilities import Draws
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method
from unswayed.methods.protocol import Method
from unswayed.model.calls import Query, Request
from unswayed.model.decisions import DecisionTable, FloatArray
from unswayed.model.items import Item, Task, blind
from unswayed.model.presentation import Ask, settled

PRIMACY, RECENCY, ENDS = "primacy", "recency", "ends"
ITEMS = 150


def liking(shape: str, n: int) -> tuple[float, ...]:
    """What each position adds, in logits."""
    places = np.linspace(0.0, 1.0, n)
    added = {PRIMACY: 1 - places, RECENCY: places, ENDS: (2 * places - 1) ** 2, "none": 0 * places}
    return tuple((1.5 * added[shape]).tolist())


def answers(judge: SimulatedJudge, items: list[Item], asks: tuple[Ask, ...]) -> DecisionTable:
    """One answer to each question, drawn from the judge's softmax."""
    n = items[0].n
    choices = np.empty((len(items), len(asks)), dtype=np.int16)
    for row, item in enumerate(items):
        for column, ask in enumerate(asks):
            own = settled(ask, item)
            draws = Draws(f"{item.id} {own}".encode(), judge.seed)
            request = Request(model="m", messages=(), labels=tuple("ABCDEFGHIJ"[:n]), max_tokens=1)
            logits = np.array(judge.logits(Query(item, own, request), draws))
            gumbel = [-np.log(-np.log(draws.uniform())) for _ in range(n)]
            label = int((logits + gumbel).argmax())
            choices[row, column] = own.presentation.candidate_of_label(label)
    return DecisionTable(
        items=tuple(map(blind, items)),
        asks=asks,
        shown=tuple(ask.presentation for ask in asks),
        label_set=tuple("ABCDEFGHIJ"[:n]),
        choices=choices,
    )


@cache
def errors(spec: str, shape: str, n: int) -> FloatArray:
    """Score less quality of each item, shape (I,)."""
    judge = SimulatedJudge(slot=liking(shape, n), label=(0.0,))
    method = ready(spec, judge, n)
    items = list(simulated_items(ITEMS, n, seed=7, task=Task.RUBRIC))
    score = method.decide_table(answers(judge, items, method.asks(n))).score
    result: FloatArray = score - np.array([item.meta["quality"] for item in items])
    return result


def ready(spec: str, judge: SimulatedJudge, n: int) -> Method:
    method = parse_method(spec)
    if not method.learns:
        return method
    items = list(simulated_items(60, n, seed=8, task=Task.RUBRIC))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        return method.fit_tables({n: answers(judge, items, method.estimation_asks(n))})


def standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("shape", [PRIMACY, RECENCY])
def test_balanced_orders_have_no_error_where_one_order_has(shape: str, n: int) -> None:
    balanced, repeated = errors("balanced-rubric", shape, n), errors("repeat-score", shape, n)
    assert abs(balanced.mean()) < 3 * standard_error(balanced)
    assert abs(repeated.mean()) > 5 * standard_error(repeated)
    assert np.sign(repeated.mean()) == (-1 if shape == PRIMACY else 1)
    assert np.abs(balanced).mean() < np.abs(repeated).mean()


@pytest.mark.parametrize("n", [5, 10])
def test_balanced_orders_narrow_a_preference_for_both_ends(n: int) -> None:
    items = simulated_items(ITEMS, n, seed=7, task=Task.RUBRIC)
    quality = np.array([item.meta["quality"] for item in items])
    slopes = {
        spec: float(np.polyfit(quality, errors(spec, ENDS, n), 1)[0])
        for spec in ("balanced-rubric", "repeat-score")
    }
    assert slopes["repeat-score"] > slopes["balanced-rubric"] + 0.05


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize(
    ("spec", "control"),
    [
        ("balanced-rubric", "repeat-score"),
        ("bias-cost", "direct"),
    ],
)
def test_an_unbiased_judge_is_left_alone(spec: str, control: str, n: int) -> None:
    gap = np.abs(errors(spec, "none", n)) - np.abs(errors(control, "none", n))
    assert abs(gap.mean()) <= 3 * standard_error(gap)
    own = errors(spec, "none", n)
    assert abs(own.mean()) < 3 * standard_error(own)
