"""Text from models, servers and files, made safe to show: it cannot change a terminal's state."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_BIDI_CONTROL = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")
_BREAKS = re.compile("[ \t\r\n\f\v\x85\u2028\u2029]+")
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"}
_CONTROLS |= dict.fromkeys(range(0x7F, 0xA0), 0xFFFD)


_UNSEEN = re.compile(f"[\ud800-\udfff{''.join(map(chr, _CONTROLS))}]")
"""What neither writes nor shows; most texts have nothing of it, and searching is quicker."""


def visible(text: str) -> str:
    """Text in which every character can be written and seen.

    Control characters become their pictures, lone surrogates U+FFFD: neither can be encoded or
    change a terminal's state.

    >>> visible("one\\x07two")
    'one␇two'
    """
    if not _UNSEEN.search(text):
        return text
    return _SURROGATE.sub("\ufffd", text).translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return a name for places without markup: one line, no direction overrides.

    >>> one_line("a\\nname")
    'a name'
    """
    return visible(_BREAKS.sub(" ", _BIDI_CONTROL.sub("", text)).strip(" "))


def lines_of(text: str) -> str:
    """Lines for a terminal: no direction overrides, and nothing that goes back to a line's start."""
    return visible(_BIDI_CONTROL.sub("", text)).replace("\r", "\u240d")
