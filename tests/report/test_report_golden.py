"""The words of the report: any change fails here, and is written anew on purpose."""

import pytest
from golden_pages import FOLDER, PAGES, lines, text_of

from unswayed.report.findings import Finding, State

AGAIN = "the words changed; if that is meant: python tests/report/golden_pages.py"


@pytest.mark.parametrize("name", PAGES)
def test_page_and_terminal_say_what_they_said(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text_of(PAGES[name]()) == text, AGAIN


def test_sentences_say_what_they_said_in_every_variation() -> None:
    text = (FOLDER / "lines.txt").read_text(encoding="utf-8")
    assert "".join(f"{name}: {words}\n" for name, words in lines()) == text, AGAIN


def test_every_state_has_a_page() -> None:
    assert {Finding(run).state for runs in PAGES.values() for run in runs()} == set(State)


def test_no_file_is_left_over() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {*PAGES, "lines"}
