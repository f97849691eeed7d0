"""Text of models and files cannot change a terminal's state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.base.visible import lines_of, one_line, visible


@pytest.mark.parametrize("text", ["\x1b[31mred", "\x9b2J", "\u202etxt.exe", "a\rb", "\x07", "\x7f"])
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (one_line(text), lines_of(text)):
        assert shown
        assert all(character.isprintable() for character in shown)


def test_lines_stay_lines_and_names_become_one() -> None:
    assert lines_of("  a\n\tb") == "  a\n\tb"
    assert one_line(" a\n\tb ") == "a b"


def test_lone_surrogates_and_control_characters_become_visible() -> None:
    assert visible("a\ud800b\x1b[31m\x00") == "a\ufffdb\u241b[31m\u2400"
    assert visible("line\n\ttab") == "line\n\ttab"


@given(st.text(st.characters()))
def test_visible_text_can_always_be_written(text: str) -> None:
    visible(text).encode("utf-8")


def test_a_name_on_one_line_has_no_direction_overrides() -> None:
    assert one_line("a\u202eb\nc") == "ab c"
