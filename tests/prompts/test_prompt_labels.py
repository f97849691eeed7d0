"""Which labels are printed, and which label sets are refused."""

import pytest

from unswayed.base.errors import TemplateError
from unswayed.model.items import Item, Message
from unswayed.prompts import PromptSettings, check_prompts, label_set_of


def test_labels_are_letters_up_to_26_and_numbers_beyond() -> None:
    settings = PromptSettings()
    assert label_set_of(2, settings) == ("A", "B")
    assert label_set_of(26, settings)[-1] == "Z"
    assert label_set_of(27, settings) == tuple(str(k) for k in range(1, 28))
    assert label_set_of(2, PromptSettings(label_set=("X", "Y", "Z"))) == ("X", "Y")


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (("A",), "2 candidates need 2 labels"),
        (("A", "A"), "occurs twice"),
        (("A", ""), "empty label"),
        (("A", "  "), "empty label"),
        (("A", " B"), "white space"),
        (("A", "B\nC"), "line break"),
        (("A", "<B>"), "bracket"),
        (("A", "Tie"), "tie"),
        (("A", "\uff21"), "occurs twice"),  # full-width A looks like A
        (("A", "\ud800"), "unprintable"),
    ],
)
def test_a_bad_label_set_is_refused_with_the_reason(labels: tuple[str, ...], reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        label_set_of(2, PromptSettings(label_set=labels))


def test_too_few_labels_name_the_item() -> None:
    items = [
        Item(id="two", task="mcq", prompt="?", candidates=("x", "y")),
        Item(id="three", task="mcq", prompt="?", candidates=("x", "y", "z")),
    ]
    with pytest.raises(TemplateError, match="three: 3 candidates need 3 labels"):
        check_prompts(items, PromptSettings(label_set=("A", "B")))


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "Ask alice about it"},
        {"candidates": ("x", "I met Alice.")},
        {"reference": "ALICE"},
        {"prompt": (Message("user", "?"), Message("user", "Alice?"))},
    ],
)
def test_multi_letter_labels_in_content_are_refused_by_item(fields: dict[str, object]) -> None:
    fine = Item(id="q1", prompt="?", candidates=("malice", "y"))  # part of a longer word
    item = Item(**{"id": "q7", "prompt": "?", "candidates": ("x", "y"), **fields})  # type: ignore[arg-type]
    settings = PromptSettings(label_set=("Alice", "Bob"))
    assert check_prompts([fine], settings) == []
    with pytest.raises(TemplateError, match=r"q7: the label '(?i:alice)' occurs"):
        check_prompts([fine, item], settings)
    (warning,) = check_prompts([fine], PromptSettings(label_set=("m", "M")))
    assert "case" in warning


def test_single_letters_that_stand_as_labels_are_counted() -> None:
    items = [
        Item(id="q1", prompt="A good question about a plan", candidates=("x", "y")),
        Item(id="q2", prompt="Choose:\n(A) cats\n(B) dogs", candidates=("x", "y")),
        Item(id="q3", prompt="?", candidates=("x", "So the answer is B")),
        Item(id="q4", prompt="?", candidates=("A. first\nB. second", "y")),
        Item(id="q5", prompt="The better choice: **A", candidates=("word", "y")),
        Item(id="q6", prompt="Take B\n.", candidates=("A plan of the USA", "PLAN B")),
    ]
    (warning,) = check_prompts(items, PromptSettings())
    assert warning.startswith("4 of 6 items")
    assert "such as q2" in warning
