"""The parser on fuzzed texts, in the form of a few seconds."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reliability import text_fuzz
from reliability.text_fuzz import KINDS, READERS, check, check_listwise, fuzz, text_of
from unswayed.model.parsing import labels
from unswayed.model.parsing.listwise import ListwiseReading, read_listwise


def test_thousands_of_fuzzed_texts_break_no_law() -> None:
    outcome = fuzz(3_000, seed=7)
    assert outcome.faults == []
    assert outcome.texts == dict.fromkeys(KINDS, 500)
    assert outcome.read["nested"] > 0  # some say something
    assert outcome.read["nested"] < 500


def test_thousands_of_fuzzed_listwise_replies_break_no_law() -> None:
    outcome = fuzz(1_800, seed=7, reader=READERS["listwise"])
    assert outcome.faults == []
    assert outcome.texts == dict.fromkeys(KINDS, 300)
    assert 0 < outcome.read["mutated"] < 300


def test_listwise_laws_notice_a_reader_that_breaks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"candidates": {"A": {"score": 1}, "B": {"score": 2}}, "ranking": ["B", "A"]}'
    assert check_listwise(text, ("A", "B"), random.Random(1)) == ("read", [])

    def laws_broken_by(reader: Callable[..., ListwiseReading]) -> set[str]:
        monkeypatch.setattr(text_fuzz, "read_listwise", reader)
        reports = [check_listwise(text, ("A", "B"), random.Random(k))[1] for k in range(8)]
        return {report.partition(":")[0] for laws in reports for report in laws}

    def drafting(text: str, *more: Any, **options: Any) -> ListwiseReading:
        draft = text.removeprefix("<think>").partition("</think>\n")[0]
        return read_listwise(draft, *more, **options)

    def believing(text: str, *more: Any, quoted: object = (), **options: Any) -> ListwiseReading:
        return read_listwise(text, *more, **options)

    def in_order(*more: Any, **options: Any) -> ListwiseReading:
        scores = read_listwise(*more, **options).scores
        return ListwiseReading(scores, {}, tuple(range(len(scores))))

    def unbounded(*more: Any, **options: Any) -> ListwiseReading:
        return ListwiseReading((101.0, None), {}, (0, 0))

    assert laws_broken_by(drafting) == {"think"}
    assert laws_broken_by(believing) == {"quote"}
    assert laws_broken_by(in_order) == {"order", "think", "quote"}
    assert laws_broken_by(unbounded) >= {"value", "think"}


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
