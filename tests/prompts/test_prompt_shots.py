"""Worked examples show their own gold, teach no position, and never show an item to be judged."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.base.errors import TemplateError
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X1, Ask
from unswayed.prompts import PromptSettings, check_prompts, render
from unswayed.prompts.shots import gold_of_shot, shot_presentations

JUDGED = Item(id="q", prompt="judged question", candidates=("x", "y"), gold=1)


def shots(count: int, n: int = 2, gold: object = 0) -> tuple[Item, ...]:
    return tuple(
        Item(
            id=f"shot{k}",
            task="pairwise" if n == 2 else "mcq",
            prompt=f"example {k}",
            candidates=tuple(f"right {k}" if c == gold else f"wrong {k}.{c}" for c in range(n)),
            gold=gold,  # type: ignore[arg-type]
        )
        for k in range(count)
    )


@settings(max_examples=30)
@given(
    n=st.integers(2, 6), rounds=st.integers(1, 4), golds=st.lists(st.integers(0, 5), min_size=24)
)
def test_gold_stands_equally_often_at_every_position_and_label(
    n: int, rounds: int, golds: list[int]
) -> None:
    examples = [
        Item(id=str(k), task="mcq", prompt="?", candidates=("x",) * n, gold=golds[k] % n)
        for k in range(n * rounds)
    ]
    shown = shot_presentations(examples)
    for look_up in ("position_of_candidate", "label_of_candidate"):
        counts = Counter(
            getattr(p, look_up)(gold_of_shot(shot)) for p, shot in zip(shown, examples, strict=True)
        )
        assert counts == dict.fromkeys(range(n), rounds)


def test_examples_are_equal_everywhere_and_show_their_gold() -> None:
    settings = PromptSettings(shots=shots(4))
    one, other = render(JUDGED, Ask(X0), settings), render(JUDGED, Ask(X1), settings)
    assert one.messages[:-1] == other.messages[:-1]
    roles = [message.role for message in one.messages]
    assert roles == ["system", *["user", "assistant"] * 4, "user"]
    for k in range(4):
        question, reply = one.messages[1 + 2 * k], one.messages[2 + 2 * k]
        assert f"===== Answer {reply.content} =====\nright {k}" in question.content
    assert Counter(message.content for message in one.messages[2::2]) == {"A": 2, "B": 2}
    for gold in (0, "tie", None):  # the judged item's own is not shown
        item = Item(id="q", prompt="judged question", candidates=("x", "y"), gold=gold)
        assert render(item, Ask(X0), settings) == one


def test_examples_of_a_reasoning_prompt_answer_in_tags() -> None:
    rendered = render(JUDGED, Ask(X0, "reasoning"), PromptSettings(shots=shots(2)))
    replies = {message.content for message in rendered.messages if message.role == "assistant"}
    assert {reply.rpartition("</think>")[2] for reply in replies} == {
        "<answer>A</answer>",
        "<answer>B</answer>",
    }


def test_an_example_that_is_to_be_judged_is_refused() -> None:
    settings = PromptSettings(shots=shots(2))
    leaked = settings.shots[0]
    with pytest.raises(TemplateError, match=r"shot0: .*gold"):
        check_prompts([leaked], settings)
    with pytest.raises(TemplateError, match=r"shot0: .*gold"):
        render(leaked, Ask(X0), settings)
    twin = Item(id="twin", prompt="example 1", candidates=settings.shots[1].candidates)
    with pytest.raises(TemplateError, match=r"shot1: .*\(as twin\)"):
        check_prompts([twin], settings)


@pytest.mark.parametrize(
    ("examples", "reason"),
    [
        (shots(1, gold="tie"), "shot0: an example needs one right candidate"),
        (shots(1, gold=None), "shot0: an example needs one right candidate"),
        (shots(3, n=3), "shot0: an example of task 'mcq'"),
    ],
)
def test_an_example_without_gold_or_of_another_task_is_refused(
    examples: tuple[Item, ...], reason: str
) -> None:
    with pytest.raises(TemplateError, match=reason):
        check_prompts([JUDGED], PromptSettings(shots=examples))


def test_unbalanced_examples_are_warned_about() -> None:
    (warning,) = check_prompts([JUDGED], PromptSettings(shots=shots(3)))
    assert "3 examples with 2 candidates" in warning
    assert "multiple of 2" in warning
