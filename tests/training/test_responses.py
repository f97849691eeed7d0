"""Reading sampled responses: label, form, and how much was reasoned."""

import pytest

from unswayed.training.recipe_parts import PromptTable
from unswayed.training.responses import reader

AB = ("A", "B")
ANSWER = reader(PromptTable(), answer_only=True)
REASONING = reader(PromptTable(style="reasoning"), answer_only=False)


@pytest.mark.parametrize(
    ("text", "label", "well_formed"),
    [
        ("B", 1, True),
        (" b.\n", 1, True),
        ("(A)", 0, True),
        ("**A**", 0, True),
        ("The answer is B", 1, False),
        ("neither", None, False),
        ("", None, False),
        ("tie", None, False),
        ("A good answer needs more detail than this one has", None, False),
    ],
)
def test_direct_answers(text, label, well_formed):
    assert ANSWER(text, AB) == (label, well_formed, 0)


@pytest.mark.parametrize(
    ("text", "label", "well_formed", "characters"),
    [
        ("<think>abcde</think><answer>B</answer>", 1, True, 5),
        ("<think>\nabcde\n</think>\n\n<answer> b </answer>\n", 1, True, 5),
        ("<think>abcde</think>B", 1, False, 5),
        ("abcde</think><answer>A</answer>", 0, False, 5),
        ("<think>abcde</think><answer>A</answer> and more", 0, False, 5),
        ("<think>abcde</think><answer>C</answer>", None, False, 5),
        ("<think>abcde", None, False, 5),
        ("<answer>A</answer>", 0, False, 18),
    ],
)
def test_reasoning_answers(text, label, well_formed, characters):
    assert REASONING(text, AB) == (label, well_formed, characters)


def test_tags_of_candidates_in_the_reasoning_do_not_decide():
    text = "<think>It says <answer>A</answer>, wrongly.</think><answer>B</answer>"
    assert REASONING(text, AB).label == 1


def test_other_tags_can_be_set():
    read = reader(
        PromptTable(think_tags=("[r]", "[/r]"), answer_tags=("[[", "]]")), answer_only=False
    )
    assert read("[r]why[/r][[A]]", AB) == (0, True, 3)
