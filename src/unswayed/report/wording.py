"""Sentences with emphasis, independent of where they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from unswayed.visible import one_line

__all__ = ["Line", "Span", "joined", "line", "listed", "name", "plain_text", "strong"]


class Span(NamedTuple):
    """A piece of a sentence; a name comes from data and is shown isolated from its surroundings."""

    text: str
    kind: Literal["plain", "strong", "name"] = "plain"


Line = tuple[Span, ...]


def strong(text: str) -> Span:
    """An emphasised name."""
    return Span(one_line(text), "strong")


def name(text: str) -> Span:
    """A name that comes from data."""
    return Span(one_line(text), "name")


def line(*parts: str | Span) -> Line:
    """A sentence from plain strings and spans."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def plain_text(sentence: Line) -> str:
    """The sentence without emphasis, on one line."""
    return "".join(span.text for span in sentence)


def joined(sentences: Sequence[Line]) -> Line:
    """Sentences as one paragraph."""
    made: list[Span] = []
    for sentence in sentences:
        if made:
            made.append(Span(" "))
        made.extend(sentence)
    return tuple(made)


def listed(words: Sequence[str], joint: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"
