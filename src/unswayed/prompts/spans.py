"""Places of the candidates' texts in a chat, from the pieces it was written of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

NO_CANDIDATE: Final = -1


class Span(NamedTuple):
    """`messages[message].content[start:end]`."""

    message: int
    start: int
    end: int


Spans = tuple[tuple[Span, ...], ...]
"""By candidate: every place where its text, or a turn of it, stands."""

Piece = tuple[str, int]
"""A part of a message, and the candidate whose text it is or NO_CANDIDATE."""


def spans_of(pieces: Iterable[Piece], n: int, *, place: int) -> Spans:
    """Find n candidates in the message that the pieces make, the `place`-th of its chat."""
    spans: list[tuple[Span, ...]] = [()] * n
    end = 0
    for text, candidate in pieces:
        start, end = end, end + len(text)
        if candidate != NO_CANDIDATE:
            spans[candidate] += (Span(place, start, end),)
    return tuple(spans)


class _Marked(str):
    """A candidate's text between marks; asked about itself, it answers as the bare text does."""

    __slots__ = ("bare", "candidate", "mark")

    bare: str
    candidate: int
    mark: str

    def __len__(self) -> int:
        return len(self.bare)

    def __eq__(self, other: object) -> bool:
        return self.bare == other

    def __ne__(self, other: object) -> bool:
        return self.bare != other

    def __hash__(self) -> int:
        return hash(self.bare)

    def strip(self, chars: str | None = None, /) -> str:
        return marked(self.bare.strip(chars), self.candidate, mark=self.mark)


def marked(text: str, candidate: int, *, mark: str) -> str:
    """Return the text of a candidate between marks (a character that no text has), which `unmarked` finds again."""
    whole = _Marked(f"{mark}{candidate}{mark}{text}{mark}{mark}")
    whole.bare, whole.candidate, whole.mark = text, candidate, mark
    return whole


def unmarked(text: str, mark: str) -> list[Piece]:
    """Return the pieces of a text with marked candidates in it; marks that do not pair are left in."""
    pieces: list[Piece] = []
    end = 0
    for match in re.finditer(f"{mark}([0-9]+){mark}([^{mark}]*){mark}{mark}", text):
        pieces += [(text[end : match.start()], NO_CANDIDATE), (match[2], int(match[1]))]
        end = match.end()
    return [*pieces, (text[end:], NO_CANDIDATE)]


def mark_beside(texts: Sequence[str]) -> str:
    """Return a character for private use that is in none of the texts."""
    marks = map(chr, range(0xE000, 0x110000))
    return next(mark for mark in marks if not any(mark in text for text in texts))
