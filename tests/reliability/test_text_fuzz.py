"""The parser on fuzzed texts, in the form of a few seconds."""

import random
from collections import Counter

import pytest

from reliability import text_fuzz
from reliability.text_fuzz import KINDS, check, fuzz, text_of
from unswayed.parsing import labels


def test_thousands_of_fuzzed_texts_break_no_law() -> None:
    outcome = fuzz(3_000, seed=7)
    assert outcome.faults == []
    assert outcome.texts == dict.fromkeys(KINDS, 500)
    assert outcome.read["nested"] > 0  # some say something
    assert outcome.read["nested"] < 500


def test_a_text_can_be_made_again_from_its_seed() -> None:
    replies = ["The better answer is B.", "A\nB"]
    for kind in KINDS:
        twins = [text_of(kind, random.Random("7/1"), replies) for _ in range(2)]
        assert twins[0] == twins[1]


def test_a_crash_and_a_broken_law_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_label(text: str, symbols: tuple[str, ...]) -> str:
        return symbols[0]

    monkeypatch.setattr(text_fuzz, "parse_label", first_label)
    broken = check("B", ("A", "B"), random.Random(1))[1]
    assert any(law.startswith("swap") for law in broken)

    def crash(text: str, symbols: tuple[str, ...]) -> str:
        if text.startswith("Hard to say"):
            return "A"  # the pattern's first use
        raise RecursionError("too deep")

    monkeypatch.setattr(text_fuzz, "parse_label", crash)
    faults = Counter("RecursionError" in fault for fault in fuzz(6, seed=7).faults)
    assert faults == {True: 6}
    assert labels.parse_label("B", ("A", "B")) == "B"
