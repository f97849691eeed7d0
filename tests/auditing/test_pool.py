"""The pool: streamed decisions as columns, sampled probabilities, remembered readings."""

from collections.abc import Iterable, Iterator

import pytest

from unswayed.auditing.design import strata_of
from unswayed.auditing.pool import Remembered, sampled, with_answers
from unswayed.calls import Question
from unswayed.model.decisions import Decision
from unswayed.model.items import Item
from unswayed.model.presentation import X0, Ask, Presentation

ITEMS = [Item(id=name, prompt="p", candidates=("x", "y"), gold=0) for name in ("a", "b", "c")]


def decision(
    item: str, shown: Presentation = X0, choice: int | None = 0, sample: int = 0, **fields: object
) -> Decision:
    return Decision(
        item_id=item,
        order=shown.order,
        labels=shown.symbols("AB"),
        label_set=("A", "B"),
        choice=choice,
        sample=sample,
        **fields,  # type: ignore[arg-type]
    )


def test_content_free_decisions_stay_out_of_the_pool() -> None:
    strata = strata_of(ITEMS, orders="swap", protocols=("coupled",), seed=0)
    (stratum,) = with_answers(strata, [decision("a", substitute=("N/A", "N/A"))])
    assert stratum.table.asks == ()


def test_sampled_probabilities_are_laplace_shares() -> None:
    # candidate 0 named 3 times, 1 once, one sample unparsed: (3 + 1/2) / 5 and (1 + 1/2) / 5
    choices = [0, 0, 1, None, 0]
    samples = [decision("a", sample=k, choice=c) for k, c in enumerate(choices, start=1)]
    *passed, greedy = sampled([decision("a", choice=1), *samples], 5)
    assert passed == samples
    assert greedy.probs == pytest.approx((0.7, 0.3))
    assert greedy.choice == 1  # the greedy answer stays what it was


def test_repeated_samples_count_once_and_unparsed_give_none() -> None:
    samples = [decision("a", sample=1, choice=0)] * 3
    assert list(sampled([decision("a"), *samples], 5))[-1].probs == pytest.approx((0.75, 0.25))
    unread = [decision("b", sample=k, choice=None) for k in (1, 2)]
    assert list(sampled([decision("b", probs=(0.9, 0.1)), *unread], 5))[-1].probs is None


def test_a_remembered_question_is_read_once() -> None:
    read: list[str] = []

    def source(questions: Iterable[Question]) -> Iterator[Decision]:
        for question in questions:
            read.append(question.item.id)
            yield decision(question.item.id)

    known = [Question(ITEMS[0], Ask(X0))]
    again = Remembered(source, known)
    assert len(list(again.noting(source(known)))) == 1
    both = [*known, Question(ITEMS[1], Ask(X0))]
    assert sorted(found.item_id for found in again(both)) == ["a", "b"]
    assert sorted(found.item_id for found in again(known)) == ["a"]
    assert read == ["a", "b"]


def test_samples_beyond_those_asked_for_do_not_count() -> None:
    # `repeat` may have drawn more: of 0, 0, 1 the first two count, (2 + 1/2) / 3
    made = [decision("a"), *(decision("a", X0, k // 3, sample=k) for k in (1, 2, 3))]
    (greedy,) = (one for one in sampled(made, 2) if one.sample == 0)
    assert greedy.probs == pytest.approx((2.5 / 3, 0.5 / 3))
