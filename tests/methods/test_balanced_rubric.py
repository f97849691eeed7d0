"""The mean score over orders of the levels, and what is left of it when answers cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import pytest

from unswayed.base.errors import MethodError, UsageError
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method
from unswayed.methods.over_orders import Average, BalancedRubric
from unswayed.methods.protocol import Method
from unswayed.methods.repeated import RepeatScore
from unswayed.model.decisions import Decision, Verdict
from unswayed.model.items import Item, Task
from unswayed.model.permutations import balanced
from unswayed.model.presentation import Ask

BALANCED = BalancedRubric()
Chooser = Callable[[Ask], int | str | None]


def scale(*values: float) -> Item:
    return Item(
        id="q",
        task=Task.RUBRIC,
        prompt="?",
        response="an answer",
        candidates=tuple(f"level {value}" for value in values),
        values=values,
    )


FIVE = scale(1, 2, 3, 4, 5)


def call(item: Item, ask: Ask, choice: object, probs: Sequence[float] | None = None) -> Decision:
    label_set = tuple("ABCDEFGHIJ"[: item.n])
    return Decision(
        item_id=item.id,
        order=ask.presentation.order,
        labels=ask.presentation.symbols(label_set),
        label_set=label_set,
        sample=ask.sample,
        choice=choice,  # type: ignore[arg-type]
        probs=None if probs is None else tuple(probs),
    )


def judged(method: Method, item: Item, chooser: Chooser, *, lost: Sequence[int] = ()) -> Verdict:
    """The verdict on a judge that chooses by what is shown; some of its answers are unread."""
    calls = [
        call(item, ask, None if at in lost else chooser(ask))
        for at, ask in enumerate(method.asks(item.n))
    ]
    return method.decide(item, calls)


def first(ask: Ask) -> int:
    """A judge that always names the level at the first position."""
    return ask.presentation.order[0]


def test_the_mean_is_of_values_and_the_nearest_level_is_chosen() -> None:
    answers = iter([4, 4, 3, 4, 3, 4, 4, 3, 4, 4])  # 0-based levels: seven 5s and three 4s
    verdict = judged(BALANCED, FIVE, lambda _: next(answers))
    assert verdict.score == pytest.approx(4.7)
    assert verdict.choice == 4
    assert verdict.confidence == pytest.approx(0.7)
    # squares about 4.7: seven of .09 and three of .49, over 9
    assert verdict.sd == pytest.approx(((7 * 0.09 + 3 * 0.49) / 9) ** 0.5)
    assert verdict.consistent is False
    assert verdict.n_calls == 10


@pytest.mark.parametrize(
    ("method", "values", "answers", "score", "choice"),
    [
        # 66.7 is nearer to 100 than to 10, though no answer was unsure
        ("balanced-rubric", (0, 10, 100), [0, 2, 2, 0, 2, 2], 400 / 6, 2),
        ("balanced-rubric:orders=random:3", (1, 2, 3, 4, 5), [0, 1, 4], 8 / 3, 2),
        ("balanced-rubric", (1, 2, 3, 4, 5), [0, 1] * 5, 1.5, (0, 1)),  # equally near: a tie
        ("vote", (1, 2, 3, 4, 5), [0, 3, 3, 0, 1], 2.5, (0, 3)),  # chosen equally often
    ],
)
def test_scores_are_means_of_values(
    method: str, values: Sequence[float], answers: list[int], score: float, choice: object
) -> None:
    given = iter(answers)
    verdict = judged(parse_method(method), scale(*values), lambda _: next(given))
    assert verdict.score == pytest.approx(score)
    assert (verdict.tie or verdict.choice) == choice
    assert (verdict.confidence is None) == (verdict.choice == "tie")


def test_a_declared_tie_names_no_level() -> None:
    answers = iter(["tie", 3, 3, 3, 3, 3, 3, 3, 3, 3])
    verdict = judged(BALANCED, FIVE, lambda _: next(answers))
    assert (verdict.choice, verdict.score, verdict.n_calls) == (3, 4.0, 10)
    assert judged(BALANCED, FIVE, lambda _: "tie").score is None
    for method in ("direct", "vote", "sequential", "repeat"):
        verdict = judged(parse_method(method), FIVE, lambda _: "tie")
        assert (verdict.choice, verdict.score) == ("tie", None)


def test_a_judge_of_positions_alone_gets_the_middle_of_the_scale() -> None:
    for position in range(5):
        verdict = judged(BALANCED, FIVE, lambda ask, p=position: ask.presentation.order[p])  # type: ignore[misc]
        assert verdict.score == pytest.approx(3.0)


@pytest.mark.parametrize("lost", range(10))
def test_an_unread_answer_does_not_move_a_judge_of_positions(lost: int) -> None:
    # without one order, one level is first once and the others twice: the plain mean is 27..29.. / 9
    level = balanced(5)[lost][0]
    plain = (30 - (level + 1)) / 9
    verdict = judged(BALANCED, FIVE, first, lost=[lost])
    assert verdict.score == pytest.approx(3.0)
    assert (abs(plain - 3.0) > 1e-9) == (level != 2)


def test_an_unread_answer_does_not_move_a_judge_of_content() -> None:
    assert judged(BALANCED, FIVE, lambda _: 3, lost=[0, 1]).score == pytest.approx(4.0)


def test_unbalanced_mean_is_reported() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judged(BALANCED, FIVE, first, lost=[0, 1, 2, 3, 4])  # the reversed rotations are balanced
    # the orders 0 and 5 both show level 2 in the middle (01234 and 43210): nothing shows it there
    assert balanced(5)[0][2] == balanced(5)[5][2] == 2
    with pytest.warns(MethodWarning, match="not balanced"):
        verdict = judged(BALANCED, FIVE, first, lost=[0, 5])
    assert verdict.score == pytest.approx(3.0)  # levels 1 and 5 lost one of their two firsts each


def test_the_other_layouts_balance_their_own_places() -> None:
    glued = BalancedRubric(layouts="order")
    assert all(ask.presentation.labels == ask.presentation.order for ask in glued.asks(5))
    assert judged(glued, FIVE, first, lost=[1]).score == pytest.approx(3.0)
    printed = BalancedRubric(layouts="label")
    by_label = judged(printed, FIVE, lambda a: a.presentation.candidate_of_label(0), lost=[1])
    assert by_label.score == pytest.approx(3.0)
    every = BalancedRubric(layouts="all")
    assert judged(every, FIVE, first).score == pytest.approx(3.0)


def test_a_failed_call_or_no_answer_gives_no_verdict() -> None:
    calls = [call(FIVE, ask, 2) for ask in BALANCED.asks(5)]
    missing = BALANCED.decide(FIVE, calls[1:])
    assert (missing.choice, missing.score) == (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unread = judged(BALANCED, FIVE, lambda _: None)
    assert (unread.choice, unread.score, unread.confidence) == (None, None, None)


def test_levels_without_values_are_refused_with_the_item() -> None:
    item = Item(id="q7", prompt="?", candidates=("a", "b"))
    calls = [call(item, ask, 0) for ask in BALANCED.asks(2)]
    with pytest.raises(MethodError, match=r"q7: balanced-rubric needs the values"):
        BALANCED.decide(item, calls)


def test_average_gives_the_expected_value() -> None:
    probs = (0.1, 0.2, 0.4, 0.2, 0.1)
    tilted = (0.0, 0.1, 0.2, 0.3, 0.4)
    method = Average(orders="balanced")
    calls = [
        call(FIVE, ask, 2, tilted if at % 2 else probs) for at, ask in enumerate(method.asks(5))
    ]
    # expectations 3.0 and 4.0
    assert method.decide(FIVE, calls).score == pytest.approx(3.5)


def test_the_control_repeats_one_order_and_takes_the_mean() -> None:
    control = RepeatScore()
    asks = control.asks(5)
    assert len(asks) == len(BALANCED.asks(5))
    assert len({ask.presentation for ask in asks}) == 1
    assert [ask.sample for ask in asks] == list(range(1, 11))
    answers = iter([0, 4] * 5)
    verdict = judged(control, FIVE, lambda _: next(answers))
    assert (verdict.score, verdict.choice) == (3.0, 2)
    assert judged(control, FIVE, first).score == 1.0  # it keeps the whole bias
    assert len(parse_method("repeat-score:samples=4").asks(5)) == 4
    with pytest.raises(UsageError, match="at least 1"):
        parse_method("repeat-score:samples=0")
