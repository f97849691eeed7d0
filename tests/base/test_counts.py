"""Counts with their nouns and verbs."""

import pytest

from unswayed.base.counts import agrees, plural


@pytest.mark.parametrize(
    ("number", "ties", "replies", "verb"),
    [
        (0, "0 ties", "0 replies", "are"),
        (1, "1 tie", "1 reply", "is"),
        (2, "2 ties", "2 replies", "are"),
    ],
)
def test_noun_and_verb_agree_with_count(number: int, ties: str, replies: str, verb: str) -> None:
    assert plural(number, "tie") == ties
    assert plural(number, "reply", "replies") == replies
    assert agrees(number, "is", "are") == verb


def test_large_counts_have_separators() -> None:
    assert plural(12_345, "call") == "12,345 calls"


def test_negative_count_is_rejected() -> None:
    with pytest.raises(ValueError, match="got -1"):
        plural(-1, "item")
