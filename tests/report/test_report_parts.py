"""A prompt is cut at its candidates, wherever their texts occur more than once."""

from hypothesis import given
from hypothesis import strategies as st

from unswayed.items import Message, text_of
from unswayed.report.data import Shown
from unswayed.report.parts import LONGEST, Part, cut, find_places, parts_of


def shown(*contents: str, order: tuple[int, ...] = (0, 1), roles: str = "user") -> Shown:
    names = roles.split()
    messages = tuple(Message(role, content) for role, content in zip(names, contents, strict=True))
    labels = tuple("ABCDEFGH"[: len(order)])
    return Shown(order=order, labels=labels, messages=messages, choice=0)


def candidates_of(parts: tuple[Part, ...]) -> list[int]:
    return [part.candidate for part in parts if part.kind == "candidate"]


def joined(parts: tuple[Part, ...], candidates: tuple[str, ...]) -> str:
    return "".join(
        part.text or candidates[part.candidate] if part.kind == "candidate" else part.text
        for part in parts
    )


def test_candidates_are_marked_in_the_order_shown() -> None:
    parts = parts_of(shown("Q?\nA: blue\nB: red", order=(1, 0)), ("red", "blue"))
    assert parts == (
        Part("text", "Q?\nA: "),
        Part("candidate", candidate=1),
        Part("text", "B: "),
        Part("candidate", candidate=0),
    )


def test_a_text_that_occurs_in_the_question_is_found_behind_its_label() -> None:
    prompt = "Which is larger, 4 or 40?\nA. 4\nB. 40\nAnswer with 4 or 40 letters."
    found = find_places(prompt, ["4", "40"], ["A", "B"])
    assert found is not None
    assert [prompt[:start][-3:] for start, _ in found] == ["A. ", "B. "]


def test_a_text_inside_another_candidate_is_not_mistaken_for_it() -> None:
    prompt = "A: the cat sat on a mat\nB: the cat"
    assert find_places(prompt, ["the cat sat on a mat", "the cat"], ["A", "B"]) == [
        (3, 23),
        (27, 34),
    ]


def test_equal_candidates_are_found_at_their_own_places() -> None:
    parts = parts_of(shown("A: same\nB: same"), ("same", "same"))
    assert candidates_of(parts) == [0, 1]


def test_a_candidate_that_is_not_there_leaves_the_prompt_plain() -> None:
    assert parts_of(shown("A: red\nB: blue"), ("red", "green")) == (
        Part("text", "A: red\nB: blue"),
    )


def test_other_white_space_does_not_hide_a_candidate() -> None:
    assert candidates_of(parts_of(shown("A: one\n  two\nB: x"), ("one two", "x"))) == [0, 1]


def test_turns_are_named_by_their_role() -> None:
    parts = parts_of(shown("Judge well.", "A: red\nB: blue", roles="system user"), ("red", "blue"))
    assert [part.text for part in parts if part.kind == "role"] == ["system", "user"]
    assert candidates_of(parts) == [0, 1]


def test_a_candidate_of_several_turns_is_marked_turn_by_turn() -> None:
    talk = text_of((Message("user", "Hello"), Message("assistant", "Good day")))
    other = text_of((Message("user", "Hello"), Message("assistant", "Go away")))
    prompt = "= A, turn 1 =\nHello\n= A, turn 2 =\nGood day\n= B, turn 1 =\nHello\n= B, turn 2 =\nGo away"
    parts = parts_of(shown(prompt), (talk, other))
    assert candidates_of(parts) == [0, 0, 1, 1]
    assert [p.text for p in parts if p.kind == "candidate"] == [
        "Hello",
        "Good day",
        "Hello",
        "Go away",
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
    st.randoms(use_true_random=False),
)
def test_nothing_of_the_prompt_is_lost_or_invented(texts: list[str], random: object) -> None:
    texts = [text or "x" for text in texts]
    order = tuple(reversed(range(len(texts))))
    prompt = "Question abc? " + " ".join(
        f"[{label}] {texts[c]}" for label, c in zip("ABCDE", order, strict=False)
    )
    candidates = tuple(texts)
    parts = parts_of(shown(prompt, order=order), candidates)
    assert joined(parts, candidates) == prompt
