"""A rendered prompt cut at its candidates, so that each one can be seen moving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from unswayed.auditing.flips import Shown
from unswayed.base.visible import visible
from unswayed.report.numerals import count

LONGEST = 20_000
"""Characters of one text that are shown."""


class Part(NamedTuple):
    """A piece of a prompt."""

    kind: Literal["text", "role", "candidate"]
    text: str = ""  # the text; empty for a candidate that stands there as a whole
    candidate: int = -1  # the candidate it is, for kind "candidate"


def cut(text: str) -> str:
    """Return a text as it is shown: characters that can be written, at most 20,000 of them."""
    if len(text) <= LONGEST:
        return visible(text)
    return f"{visible(text[:LONGEST])} … {count(len(text) - LONGEST)} characters left out"


def parts_of(shown: Shown, candidates: Sequence[str]) -> tuple[Part, ...]:
    """Return the prompt as pieces; one plain text per turn where a candidate has no place in it.

    Without a recorded prompt, the labels and candidates in the order they were shown.
    """
    if not shown.messages:
        return tuple(
            part
            for label, candidate in zip(shown.labels, shown.order, strict=True)
            for part in (Part("text", visible(label)), Part("candidate", candidate=candidate))
        )
    marked = shown.spans[: len(candidates)] if all(shown.spans) else ()
    places = sorted((span, c) for c, spans in enumerate(marked) for span in spans)
    parts: list[Part] = []
    for number, message in enumerate(shown.messages):
        if len(shown.messages) > 1:
            parts.append(Part("role", visible(message.role)))
        own = [(span.start, span.end, c) for span, c in places if span.message == number]
        parts.extend(_pieces(message.content, own, candidates))
    return tuple(part for part in parts if part.kind != "text" or part.text)


def _pieces(
    content: str, places: Sequence[tuple[int, int, int]], candidates: Sequence[str]
) -> list[Part]:
    """One message cut at its candidates, given start, end and candidate of each.

    A candidate stands in a block of its own: line breaks beside it would show as empty lines.
    """
    parts: list[Part] = []
    at = 0
    for start, end, candidate in places:
        text = content[at:start].rstrip("\n")
        parts.append(Part("text", cut(text.lstrip("\n") if at else text)))
        text = content[start:end]
        parts.append(
            Part("candidate", "" if text == candidates[candidate] else cut(text), candidate)
        )
        at = end
    text = content[at:]
    parts.append(Part("text", cut(text.lstrip("\n") if at else text)))
    return parts
