"""Text of models and files cannot change a terminal's state."""

import pytest

from unswayed.visible import lines_of, one_line


@pytest.mark.parametrize("text", ["\x1b[31mred", "\x9b2J", "\u202etxt.exe", "a\rb", "\x07", "\x7f"])
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (one_line(text), lines_of(text)):
        assert shown
        assert all(character.isprintable() for character in shown)


def test_lines_stay_lines_and_names_become_one() -> None:
    assert lines_of("  a\n\tb") == "  a\n\tb"
    assert one_line(" a\n\tb ") == "a b"
