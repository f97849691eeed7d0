"""A rendered prompt cut at its candidates, so that each one can be seen moving.

The prompt is searched for the candidates' texts in the order they were shown. A text may occur more
than once (in the question, in another candidate): the places are chosen together so that as many as
possible stand behind their label and between word boundaries, and lie close together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from unswayed.items import Message
from unswayed.report.data import Shown
from unswayed.report.numerals import count
from unswayed.visible import visible

__all__ = ["LONGEST", "Part", "cut", "find_places", "parts_of"]

LONGEST = 20_000
"""Characters of one text that are shown."""

MOST_PLACES = 40
BEHIND_LABEL = 48
FLEXIBLE_UP_TO = 5_000
"""Longest text that is also searched with any white space between its words."""


class Part(NamedTuple):
    """A piece of a prompt.

    Attributes:
        text: The text; empty for a candidate that stands there as a whole.
        candidate: The candidate it is, for kind "candidate".
    """

    kind: Literal["text", "role", "candidate"]
    text: str = ""
    candidate: int = -1


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    score: int


def cut(text: str) -> str:
    """A text as it is shown: characters that can be written, at most 20,000 of them."""
    if len(text) <= LONGEST:
        return visible(text)
    return f"{visible(text[:LONGEST])} … {count(len(text) - LONGEST)} characters left out"


def parts_of(shown: Shown, candidates: Sequence[str]) -> tuple[Part, ...]:
    """The prompt as pieces; one plain text per turn where a candidate cannot be found.

    Without a recorded prompt, the labels and candidates in the order they were shown.
    """
    if not shown.messages:
        return tuple(
            part
            for label, candidate in zip(shown.labels, shown.order, strict=True)
            for part in (Part("text", visible(label)), Part("candidate", candidate=candidate))
        )
    whole = "\n".join(message.content for message in shown.messages)
    turns = _turns(shown.messages)
    spans = _located(whole, shown, candidates)
    if any(not _inside(span.start, span.end, turns) for span in spans):
        spans = []
    many = len(shown.messages) > 1
    parts: list[Part] = []
    for (start, end), message in zip(turns, shown.messages, strict=True):
        if many:
            parts.append(Part("role", visible(message.role)))
        inside = [span for span in spans if start <= span.start and span.end <= end]
        parts.extend(_pieces(whole, start, end, inside))
    return tuple(part for part in parts if part.kind != "text" or part.text)


class _Span(NamedTuple):
    start: int
    end: int
    candidate: int
    text: str


def _located(whole: str, shown: Shown, candidates: Sequence[str]) -> list[_Span]:
    """Where the candidates stand; candidates of several turns are searched turn by turn."""
    order = [candidate for candidate in shown.order if candidate < len(candidates)]
    places = find_places(whole, [candidates[c] for c in order], shown.labels)
    if places is not None:
        return [_Span(*place, c, "") for place, c in zip(places, order, strict=True)]
    turns = [
        (candidate, turn, label)
        for candidate, label in zip(order, shown.labels, strict=False)
        for turn in _contents(candidates[candidate])
    ]
    places = find_places(whole, [turn for _, turn, _ in turns], [label for *_, label in turns])
    if places is None:
        return []
    return [_Span(*place, c, cut(turn)) for place, (c, turn, _) in zip(places, turns, strict=True)]


_ROLE = re.compile(r"(?:\A|\n\n)(?:system|user|assistant|tool|developer): ")


def _contents(text: str) -> list[str]:
    """The turns of a conversation written as `role: content` paragraphs."""
    return [turn for turn in _ROLE.split(text) if turn.strip()]


def _pieces(whole: str, start: int, end: int, spans: Sequence[_Span]) -> list[Part]:
    """One message cut at its spans.

    A candidate stands in a block of its own: line breaks beside it would show as empty lines.
    """
    parts: list[Part] = []
    at = start
    for span in spans:
        text = whole[at : span.start].rstrip("\n")
        parts.append(Part("text", cut(text.lstrip("\n") if at > start else text)))
        parts.append(Part("candidate", span.text, span.candidate))
        at = span.end
    text = whole[at:end]
    parts.append(Part("text", cut(text.lstrip("\n") if at > start else text)))
    return parts


def _turns(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Where each message lies in the joined text."""
    turns, at = [], 0
    for message in messages:
        turns.append((at, at + len(message.content)))
        at += len(message.content) + 1
    return turns


def _inside(start: int, end: int, turns: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in turns)


def find_places(
    whole: str, texts: Sequence[str], labels: Sequence[str]
) -> list[tuple[int, int]] | None:
    """Start and end of each text, in increasing order; None if one cannot be found.

    Args:
        whole: The prompt.
        texts: The candidates' texts, first position first.
        labels: The symbols printed before them.
    """
    options: list[list[_Place]] = []
    for text, label in zip(texts, labels, strict=False):
        places = _places(whole, text, label)
        if not places:
            return None
        options.append(places)
    return _chain(options) if len(options) == len(texts) and options else None


def _places(whole: str, text: str, label: str) -> list[_Place]:
    text = text.strip()
    if not text:
        return []
    spans: list[tuple[int, int]] = []
    at = whole.find(text)
    while at >= 0 and len(spans) < MOST_PLACES:
        spans.append((at, at + len(text)))
        at = whole.find(text, at + 1)
    if not spans and len(text) <= FLEXIBLE_UP_TO:
        pattern = r"\s+".join(re.escape(word) for word in text.split())
        match = re.search(pattern, whole)
        spans = [match.span()] if match is not None else []
    behind = re.compile(rf"(?<!\w){re.escape(label)}(?!\w)")
    return [_Place(start, end, _score(whole, start, end, behind)) for start, end in spans]


def _score(whole: str, start: int, end: int, behind: re.Pattern[str]) -> int:
    free = not whole[start - 1 : start].isalnum() and not whole[end : end + 1].isalnum()
    labelled = behind.search(whole[max(0, start - BEHIND_LABEL) : start]) is not None
    return 2 * labelled + free


def _chain(options: Sequence[Sequence[_Place]]) -> list[tuple[int, int]] | None:
    """One place per text, in order and apart: the highest score, then the closest together."""
    best: list[tuple[int, int, list[_Place]]] = [(place.score, 0, [place]) for place in options[0]]
    for places in options[1:]:
        longer = []
        for place in places:
            before = [
                (score, spread - (place.start - chain[-1].end), chain)
                for score, spread, chain in best
                if chain[-1].end <= place.start
            ]
            if before:
                score, spread, chain = max(before, key=lambda chain: chain[:2])
                longer.append((score + place.score, spread, [*chain, place]))
        best = longer
    if not best:
        return None
    chosen = max(best, key=lambda chain: chain[:2])[2]
    return [(place.start, place.end) for place in chosen]
