"""Plain verdicts in about 35 languages are read, whichever label they name."""

from pathlib import Path
from typing import Final

import pytest

from unswayed.model.parsing.labels import read_label
from unswayed.model.parsing.places import DECLARED_TIE
from unswayed.model.parsing.symbols import symbols_of

SENTENCES: Final = (
    Path(__file__)
    .with_name("verdict_sentences.txt")
    .read_text(encoding="utf-8")
    .split("Score: X\n")
)
LETTERS: Final = SENTENCES[0].splitlines()
LEVELS: Final = ["Score: X", *SENTENCES[1].splitlines()]


@pytest.mark.parametrize("sentence", LETTERS)
def test_letter_is_read_whichever_it_is(sentence: str) -> None:
    symbols = symbols_of(("A", "B", "C", "D", "E"))
    for code, label in enumerate(symbols.labels):
        assert read_label(sentence.replace("X", label), symbols) == code


@pytest.mark.parametrize("sentence", [line for line in LEVELS if "X" in line])
def test_level_is_read_whichever_it_is(sentence: str) -> None:
    symbols = symbols_of(("1", "2", "3", "4", "5"))
    for code, label in enumerate(symbols.labels):
        assert read_label(sentence.replace("X", label), symbols, scale=True) == code


@pytest.mark.parametrize("sentence", [line for line in LEVELS if "X" not in line])
def test_tie_is_read(sentence: str) -> None:
    assert read_label(sentence, symbols_of(("A", "B"))) == DECLARED_TIE
