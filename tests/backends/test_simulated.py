from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import numpy as np
import pytest

from unswayed.backends import open_backend
from unswayed.backends.simulated import SimulatedBackend, simulated_items
from unswayed.backends.utilities import level_utilities, utilities
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.model.calls import Query, Request, Response
from unswayed.model.items import Item, Task
from unswayed.model.parsing import parse_label
from unswayed.model.presentation import X0, X1, X2, X3, Ask, Presentation, Substitution

ITEM = Item(id="q", prompt="?", candidates=("a", "b"), meta={"utility": [0.5, -0.25]})
FOUR = Item(
    id="f", task=Task.MCQ, prompt="?", candidates=("a", "b", "c", "d"),
    meta={"utility": [0.0, 0.0, 0.0, 0.0]},
)  # fmt: skip


def judge(parameters: str) -> SimulatedBackend:
    backend = open_backend(f"simulated/judge?{parameters}")
    assert isinstance(backend, SimulatedBackend)
    return backend


def query(item: Item, shown: Presentation, *, sample: int = 0, **request: object) -> Query:
    labels = tuple("ABCDEF"[: item.n])
    fields: dict[str, object] = {"max_tokens": 16, "top_logprobs": 20, "sample": sample, **request}
    asked = Request(model="m", messages=(), labels=labels, nonce=f"{item.id}{shown}", **fields)
    return Query(item, Ask(shown, sample=sample), asked)


def logprobs(response: Response) -> dict[str, float]:
    assert response.top_logprobs is not None
    return dict(response.top_logprobs[0])


def log_odds(backend: SimulatedBackend, item: Item, shown: Presentation) -> float:
    """log P(A) / P(B)."""
    found = logprobs(backend.respond(query(item, shown)))
    return found["A"] - found["B"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (X0, 2 * 0.75 + 0.6 + 0.4),  # A is candidate a, shown first
        (X1, 2 * 0.75 - 0.6 + 0.4),  # A is candidate a, shown second
        (X2, -2 * 0.75 + 0.6 + 0.4),  # A is candidate b, shown first
        (X3, -2 * 0.75 - 0.6 + 0.4),  # A is candidate b, shown second
    ],
)
def test_two_candidates_have_the_planted_log_odds(shown: Presentation, expected: float) -> None:
    backend = judge("slot=0.6&label=0.4&content=2&noise=0")
    assert log_odds(backend, ITEM, shown) == pytest.approx(expected)


def test_one_slot_value_falls_evenly_over_the_positions() -> None:
    backend = judge("slot=0.6&label=0&noise=0")
    rotated = Presentation((1, 2, 3, 0), (0, 1, 2, 3))
    found = logprobs(backend.respond(query(FOUR, rotated)))
    # effects .3 .1 -.1 -.3 by position, and positions carry A B C D
    assert found["A"] - found["D"] == pytest.approx(0.6)
    assert found["A"] - found["B"] == pytest.approx(0.2)


def test_explicit_effects_belong_to_positions_and_to_labels() -> None:
    backend = judge("slot=1,0,0,0&label=0,0,0,2&noise=0")
    shown = Presentation((2, 0, 3, 1), (3, 1, 0, 2))
    found = logprobs(backend.respond(query(FOUR, shown)))
    assert found["D"] - found["B"] == pytest.approx(3.0)  # D is printed at the first position
    assert found["A"] == pytest.approx(found["C"])


def test_effects_of_another_number_of_candidates_are_refused() -> None:
    with pytest.raises(UsageError, match="slot has 3 values, but an item has 2"):
        judge("slot=1,0,-1").respond(query(ITEM, X0))


def test_the_saturating_link_stretches_one_side() -> None:
    plain = judge("slot=0.6&label=0&content=1&noise=0")
    bent = judge("slot=0.6&label=0&content=1&noise=0&link=saturating")
    assert log_odds(plain, ITEM, X0) == pytest.approx(1.35)
    assert log_odds(bent, ITEM, X0) == pytest.approx(3 * 1.35)
    assert log_odds(plain, ITEM, X2) == pytest.approx(-0.15)
    assert log_odds(bent, ITEM, X2) == pytest.approx(0.7 * -0.15)


def test_noise_is_independent_and_has_the_planted_deviation() -> None:
    backend = judge("slot=0&label=0&content=0&noise=0.4")
    items = simulated_items(1500, seed=3)
    odds = np.array([[log_odds(backend, item, shown) for shown in (X0, X2)] for item in items])
    assert odds.std() == pytest.approx(0.4, abs=0.03)
    assert abs(np.corrcoef(odds.T)[0, 1]) < 0.1
    assert abs(odds.mean()) < 0.03


def test_the_same_question_gets_the_same_answer() -> None:
    asked = query(ITEM, X0, temperature=1.0, sample=3)
    assert judge("noise=1").respond(asked) == judge("noise=1").respond(asked)
    other = judge("noise=1&seed=1").respond(asked)
    assert logprobs(other) != logprobs(judge("noise=1").respond(asked))


def test_samples_follow_the_probabilities_at_the_temperature() -> None:
    backend = judge("slot=1&label=0&content=0&noise=0")
    drawn = [
        backend.respond(query(ITEM, X0, sample=k, temperature=2.0)).text for k in range(1, 2001)
    ]
    expected = 1 / (1 + math.exp(-1 / 2))  # .622; standard error .011
    assert drawn.count("A") / len(drawn) == pytest.approx(expected, abs=0.045)


def test_a_greedy_answer_is_the_likeliest_label() -> None:
    backend = judge("noise=2")
    for item in simulated_items(50):
        response = backend.respond(query(item, X2))
        found = logprobs(response)
        assert response.text == max(found, key=lambda label: found[label])


def test_exact_ties_are_not_given_to_the_first_label() -> None:
    backend = judge("slot=0&label=0&content=0&noise=0")
    chosen = [backend.respond(query(item, X0)).text for item in simulated_items(400)]
    assert 140 < chosen.count("A") < 260  # 200 +- 6 standard deviations of 10


def test_refusals_and_ties_come_at_their_rates_and_read_as_such() -> None:
    backend = judge("unparsed=0.1&tie=0.2")
    responses = [backend.respond(query(item, X0)) for item in simulated_items(2000)]
    read = [parse_label(response.text, ("A", "B")) for response in responses]
    assert read.count(None) / 2000 == pytest.approx(0.1, abs=0.03)
    assert read.count("tie") / 2000 == pytest.approx(0.2, abs=0.04)
    no_logprobs = [response for response in responses if response.top_logprobs is None]
    assert len(no_logprobs) == read.count(None) + read.count("tie")


def test_reasoning_prompts_return_text_alone() -> None:
    backend = judge("logprobs=0")
    assert not backend.gives_logprobs
    assert backend.respond(query(ITEM, X0)).top_logprobs is None
    response = judge("").respond(query(ITEM, X0, top_logprobs=0, max_tokens=2048))
    assert parse_label(response.text, ("A", "B")) == "A"
    assert response.text.startswith("<think>")
    assert response.top_logprobs is None


def test_content_free_candidates_leave_the_biases() -> None:
    backend = judge("slot=0.6&label=0.4&content=5&noise=0")
    plain = query(ITEM, X2)
    substituted = plain.ask._replace(substitute=Substitution(("N/A", "N/A")))
    found = logprobs(backend.respond(plain._replace(ask=substituted)))
    assert found["A"] - found["B"] == pytest.approx(1.0)


def test_items_without_utilities_get_some_per_candidate() -> None:
    backend = judge("slot=0&label=0&noise=0&content=1")
    odds = []
    for number in range(300):
        item = Item(id=f"q{number}", prompt="?", candidates=("a", "b"))
        odds.append(log_odds(backend, item, X0))
        assert log_odds(backend, item, X2) == pytest.approx(-odds[-1])
    assert np.std(odds) == pytest.approx(1.5, abs=0.25)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("simulated/jugde", UnknownNameError, "simulated/judge"),
        ("simulated/judge?slott=1", UnknownNameError, "Did you mean 'slot'"),
        ("simulated/judge?slot=much", UsageError, "slot='much'"),
        ("simulated/judge?slot=nan", UsageError, "finite"),
        ("simulated/judge?noise=-1", UsageError, "negative"),
        ("simulated/judge?unparsed=2", UsageError, "between 0 and 1"),
        ("simulated/judge?link=cubic", UsageError, "linear or saturating"),
        ("simulated/judge?logprobs=yes", UsageError, "0 or 1"),
    ],
)
def test_a_bad_name_is_refused_with_the_reason(
    name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_backend(name)


def test_equal_judges_have_equal_names_that_open_them() -> None:
    first, second = judge("slot=0.60&seed=0"), judge("slot=0.6")
    assert first.model == second.model
    assert open_backend(first.model).model == first.model
    assert judge("slot=0.6,0,-.1").model != first.model


def test_every_query_is_answered_once() -> None:
    asked = [query(item, shown) for item in simulated_items(200) for shown in (X0, X2)]

    async def ask(backend: SimulatedBackend) -> list[tuple[Query, object]]:
        return [answered async for answered in backend.answer(asked)]

    answered = asyncio.run(ask(judge("")))
    assert [pair[0] for pair in answered] == asked
    assert all(isinstance(pair[1], Response) for pair in answered)


def test_items_have_the_planted_worth_and_gold() -> None:
    items = simulated_items(4000, seed=1)
    worth = np.array([item.meta["utility"] for item in items])
    gap = worth[:, 0] - worth[:, 1]
    gold = np.array([item.gold for item in items])
    assert gap.std() == pytest.approx(1.5, abs=0.08)
    assert (gold == 0).mean() == pytest.approx(0.5, abs=0.04)
    near = np.abs(gap - 0.5) < 0.25  # P(gold = 0) = sigmoid(2 * .5) = .731
    assert (gold[near] == 0).mean() == pytest.approx(0.731, abs=0.08)


@pytest.mark.parametrize(("n", "balance"), [(2, 0.8), (4, 0.7)])
def test_gold_can_be_listed_first_more_often(n: int, balance: float) -> None:
    items = simulated_items(3000, n, gold_balance=balance)
    gold = np.array([item.gold for item in items])
    assert (gold == 0).mean() == pytest.approx(balance, abs=0.04)
    assert right_share(items.items) == pytest.approx(right_share(simulated_items(3000, n).items))
    assert items.task is (Task.PAIRWISE if n == 2 else Task.MCQ)


def right_share(items: Sequence[Item]) -> float:
    """How often gold is the candidate of highest worth: listing it first must not change that."""
    return float(np.mean([np.argmax(item.meta["utility"]) == item.gold for item in items]))


def scale(item_id: str, response: str, *values: float) -> Item:
    return Item(
        id=item_id,
        task=Task.RUBRIC,
        prompt="?",
        response=response,
        candidates=tuple(map(str, values)),
        values=values,
    )


def test_a_level_is_worth_less_farther_from_the_quality() -> None:
    # steps of 10; quality 22: 1.2, .2 and .8 steps away, half the square lost
    assert level_utilities((10, 20, 30), 22) == pytest.approx([-0.72, -0.02, -0.32])


def test_quality_depends_on_id_and_text_alone() -> None:
    up, down = utilities(scale("q", "r", 1, 2, 3, 4, 5)), utilities(scale("q", "r", 5, 4, 3, 2, 1))
    assert up == pytest.approx(down[::-1])
    assert utilities(scale("q", "other", 1, 2, 3, 4, 5)) != up
    assert utilities(scale("p", "r", 1, 2, 3, 4, 5)) != up
    best = [int(np.argmax(utilities(scale(f"q{k}", "r", 1, 2, 3, 4, 5)))) for k in range(2000)]
    # uniform between the ends: half a step is nearest to each end, a whole one to the others
    shares = np.bincount(best, minlength=5) / 2000
    assert shares == pytest.approx([0.125, 0.25, 0.25, 0.25, 0.125], abs=0.04)


def test_rubric_items_have_planted_quality_and_human_scores() -> None:
    items = simulated_items(3000, 7, seed=2, task=Task.RUBRIC)
    quality = np.array([item.meta["quality"] for item in items])
    human = np.array([item.gold for item in items], dtype=float)
    assert items.task is Task.RUBRIC
    assert items[0].values == (1, 2, 3, 4, 5, 6, 7)
    assert (quality.min(), quality.max()) == pytest.approx((1, 7), abs=0.01)
    assert (human - quality).std() == pytest.approx(0.5, abs=0.03)
    assert utilities(items[0]) == level_utilities(items[0].values or (), float(quality[0]))
    with pytest.raises(UsageError, match="the gold of rubric items is a number"):
        simulated_items(3, 5, task=Task.RUBRIC, gold_balance=0.5)


def test_lists_are_made_as_options_are() -> None:
    lists, options = simulated_items(20, 4, task=Task.LISTWISE), simulated_items(20, 4)
    assert lists.task is Task.LISTWISE
    assert [item.gold for item in lists] == [item.gold for item in options]
