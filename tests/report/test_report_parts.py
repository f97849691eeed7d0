"""A prompt is cut at its candidates, wherever their texts occur more than once."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from unswayed.auditing.flips import Shown
from unswayed.model.items import Item, Message, Text, blind, text_of
from unswayed.model.presentation import Ask, Presentation
from unswayed.prompts import PromptSettings, Span, candidate_spans, render
from unswayed.report.parts import LONGEST, Part, cut, parts_of


def shown(
    question: str, *candidates: Text, order: tuple[int, ...] = (0, 1), task: str = "mcq"
) -> tuple[Shown, tuple[str, ...]]:
    """An item as it is put to a judge, and its candidates' texts."""
    item = Item(id="q", prompt=question, candidates=candidates, gold=0, task=task)
    presentation = Presentation(order, tuple(range(len(order))))
    asked = blind(item), Ask(presentation), PromptSettings()
    rendered = render(*asked)
    labels = presentation.symbols(rendered.labels)
    view = Shown(order, labels, rendered.messages, choice=0, spans=candidate_spans(*asked))
    return view, tuple(map(text_of, candidates))


def candidates_of(parts: tuple[Part, ...]) -> list[int]:
    return [part.candidate for part in parts if part.kind == "candidate"]


def before(parts: tuple[Part, ...]) -> list[str]:
    """The last line before each candidate."""
    return [
        first.text.splitlines()[-1]
        for first, second in itertools.pairwise(parts)
        if second.kind == "candidate"
    ]


def joined(parts: tuple[Part, ...], candidates: tuple[str, ...]) -> str:
    texts = [
        part.text or candidates[part.candidate] if part.kind == "candidate" else part.text
        for part in parts
        if part.kind != "role"
    ]
    return "".join(texts)


def test_candidates_are_marked_in_the_order_shown() -> None:
    content = "Q?\nA: blue\nB: red"
    spans = ((Span(0, 14, 17),), (Span(0, 6, 10),))
    view = Shown((1, 0), ("A", "B"), (Message("user", content),), choice=0, spans=spans)
    assert parts_of(view, ("red", "blue")) == (
        Part("text", "Q?\nA: "),
        Part("candidate", candidate=1),
        Part("text", "B: "),
        Part("candidate", candidate=0),
    )


def test_text_that_occurs_in_the_question_is_marked_by_label() -> None:
    parts = parts_of(*shown("Which is larger, 4 or 40? A. 4 or B. 40?", "4", "40"))
    assert candidates_of(parts) == [0, 1]
    assert before(parts) == ["A. ", "B. "]


def test_a_text_inside_another_candidate_is_not_mistaken_for_it() -> None:
    parts = parts_of(*shown("Q?", "the cat sat on a mat", "the cat", order=(1, 0)))
    assert candidates_of(parts) == [1, 0]
    assert before(parts) == ["A. ", "B. "]


def test_equal_candidates_are_marked_at_their_own_places() -> None:
    parts = parts_of(*shown("Q?", "same", "same", order=(1, 0)))
    assert candidates_of(parts) == [1, 0]


def test_a_candidate_without_a_place_leaves_the_prompt_plain() -> None:
    message = Message("user", "A: red\nB: b…")
    for spans in ((), ((Span(0, 3, 6),), ())):
        view = Shown((0, 1), ("A", "B"), (message,), choice=0, spans=spans)
        assert parts_of(view, ("red", "blue")) == (Part("text", message.content),)


def test_a_candidate_in_other_characters_keeps_them() -> None:
    message = Message("user", "A: red\nB: x")
    spans = ((Span(0, 3, 6),), (Span(0, 10, 11),))
    view = Shown((0, 1), ("A", "B"), (message,), choice=0, spans=spans)
    parts = parts_of(view, (" red ", "x"))
    assert [part for part in parts if part.kind == "candidate"] == [
        Part("candidate", "red", 0),
        Part("candidate", candidate=1),
    ]


def test_turns_are_named_by_their_role() -> None:
    parts = parts_of(*shown("Q?", "red", "blue"))
    assert [part.text for part in parts if part.kind == "role"] == ["system", "user"]
    assert candidates_of(parts) == [0, 1]


def test_a_candidate_of_several_turns_is_marked_turn_by_turn() -> None:
    talk = (Message("user", "Hello"), Message("assistant", "Good day"))
    other = (Message("user", "Hello"), Message("assistant", "Go away"))
    parts = parts_of(*shown("Which?", talk, other, task="pairwise"))
    assert [(p.candidate, p.text) for p in parts if p.kind == "candidate"] == [
        (0, "Hello"),
        (0, "Good day"),
        (1, "Hello"),
        (1, "Go away"),
    ]


def test_without_a_recorded_prompt_the_layout_is_shown() -> None:
    bare = Shown(order=(1, 0), labels=("A", "B"), messages=(), choice=0)
    assert candidates_of(parts_of(bare, ("red", "blue"))) == [1, 0]


def test_a_long_text_is_cut_and_says_how_much_is_left_out() -> None:
    text = "x" * (LONGEST + 1234)
    assert cut(text).endswith(" … 1,234 characters left out")
    assert cut("x" * LONGEST) == "x" * LONGEST


@given(
    st.lists(st.text("abc ", min_size=1, max_size=6).map(str.strip), min_size=2, max_size=5),
)
def test_nothing_of_the_prompt_is_lost_or_invented(texts: list[str]) -> None:
    texts = [text or "x" for text in texts]
    view, candidates = shown("Question abc?", *texts, order=tuple(reversed(range(len(texts)))))
    whole = "".join(message.content for message in view.messages)
    # line breaks beside a candidate are left out: it stands in a block of its own
    assert joined(parts_of(view, candidates), candidates).replace("\n", "") == whole.replace(
        "\n", ""
    )
