"""The user message of the built-in prompts: headed blocks that no content can break out of.

A heading is a line between runs of equals signs, one longer than any run in the item's texts, so
that no text can contain a heading. Candidate text is inserted as it is, never altered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from unswayed.model.items import Item, Text, turns_of
from unswayed.model.permutations import Order
from unswayed.model.presentation import Presentation, Substitution
from unswayed.model.tasks import TaskSpec
from unswayed.prompts.spans import NO_CANDIDATE, Piece

_RUN: Final = "====="
_RUNS: Final = re.compile(r"={5,}")
_ROLE: Final = re.compile(r"[a-z_]{1,16}")


class Layout(NamedTuple):
    """Texts to print and their order: the item's own, or content-free ones in their place."""

    task: str  # name of the task
    question: Text  # the prompt
    candidates: tuple[Text, ...]  # by candidate
    reference: str | None  # the reference answer, if any
    response: str | None  # the text that is scored, if any
    labels: tuple[str, ...]  # the label set in canonical order
    order: Order  # `order[p]` = candidate at position p
    symbols: tuple[str, ...]  # `symbols[p]` = label printed at position p
    criteria: tuple[str, ...] = ()  # what is asked at once, in displayed order (`TaskSpec.points`)

    def strings(self) -> list[str]:
        """Every text of the item."""
        strings = [*self.criteria]
        for text in (self.question, *self.candidates, self.reference or "", self.response or ""):
            strings += turns_of(text)
        return strings


def layout_of(
    item: Item,
    shown: Presentation,
    labels: tuple[str, ...],
    substitute: Substitution | None = None,
    criteria: tuple[str, ...] = (),
) -> Layout:
    """Return the layout of an item.

    Where a content-free prompt is given it also stands in for the reference answer and for the
    text that is scored, so that nothing of the item is left.
    """
    question, reference, response = item.prompt, item.reference, item.response
    candidates = item.candidates if substitute is None else substitute.candidates
    if substitute is not None and substitute.prompt is not None:
        question = blank = substitute.prompt
        reference, response = (None if text is None else blank for text in (reference, response))
    texts = (question, candidates, reference, response)
    return Layout(str(item.task), *texts, labels, shown.order, shown.symbols(labels), criteria)


def user_pieces(layout: Layout, task: TaskSpec, closing: str) -> list[Piece]:
    """Return the blocks of one item in display order and the sentence at the end, cut at the candidates."""
    bar = _bar(layout)
    pieces = [*_block(bar, "Question", layout.question)]
    if layout.reference is not None:
        pieces += _block(bar, "Reference", layout.reference)
    if layout.response is not None:
        pieces += _block(bar, "Response", layout.response)
    noun = task.noun.capitalize()
    placed = zip(layout.symbols, layout.order, strict=True)
    if task.listed and are_lines(layout.candidates):
        pieces.append((f"{bar} {noun}s {bar}", NO_CANDIDATE))
        for symbol, candidate in placed:
            pieces.append((f"\n{symbol}. ", NO_CANDIDATE))
            pieces.append((str(layout.candidates[candidate]), candidate))
        pieces.append(("\n\n", NO_CANDIDATE))
    else:
        for symbol, candidate in placed:
            pieces += _block(bar, f"{noun} {symbol}", layout.candidates[candidate], candidate)
    if layout.criteria:
        lines = "".join(f"- {name}\n" for name in layout.criteria)
        pieces.append((f"{bar} Criteria {bar}\n{lines}\n", NO_CANDIDATE))
    pieces.append((f"{bar} Your reply {bar}\n{closing}", NO_CANDIDATE))
    return pieces


class Outline(NamedTuple):
    """The user message of all plain items that are shown alike, with holes for their texts."""

    parts: list[str]  # what is printed, first to last; nothing yet where a text of the item goes
    # `holes[k]` = part that text k of the item fills (as `plain_texts` orders them)
    holes: tuple[int, ...]

    def filled(self, texts: Sequence[str]) -> str:
        """Return the message about one item."""
        parts = self.parts.copy()
        for hole, text in zip(self.holes, texts, strict=True):
            parts[hole] = text
        return "".join(parts)


def outline_of(
    item: Item, shown: Presentation, labels: tuple[str, ...], task: TaskSpec, closing: str
) -> Outline:
    """Return the outline of all plain items that are shown as this one is."""
    space = " " if are_lines(item.candidates) else "\n"
    texts = [f"text{space}{number}" for number in range(len(plain_texts(item) or ()))]
    rest = iter(texts)
    blank = msgspec.structs.replace(
        item,
        prompt=next(rest),
        reference=None if item.reference is None else next(rest),
        response=None if item.response is None else next(rest),
        candidates=tuple(rest),
    )
    pieces = [piece for piece, _ in user_pieces(layout_of(blank, shown, labels), task, closing)]
    holes = [next(k for k, piece in enumerate(pieces) if piece is text) for text in texts]
    return Outline(["" if k in holes else piece for k, piece in enumerate(pieces)], tuple(holes))


def plain_texts(item: Item) -> list[str] | None:
    """Question, reference, response and candidates; None where one has turns or a heading's bar."""
    texts: list[str] = []
    for text in (item.prompt, item.reference, item.response, *item.candidates):
        if text is None:
            continue
        if not isinstance(text, str) or _RUN in text:
            return None
        texts.append(text)
    return texts


def are_lines(texts: Sequence[Text]) -> bool:
    """Return True if each is a text of one line, so that they can stand in a list."""
    return all(isinstance(text, str) and len(text.splitlines()) < 2 for text in texts)


def _block(bar: str, title: str, text: Text, candidate: int = NO_CANDIDATE) -> tuple[Piece, ...]:
    if isinstance(text, str) or len(text) == 1:
        (content,) = turns_of(text)
        return (
            (f"{bar} {title} {bar}\n", NO_CANDIDATE),
            (content, candidate),
            ("\n\n", NO_CANDIDATE),
        )
    pieces: list[Piece] = []
    for number, turn in enumerate(text, start=1):
        # A role is content too: only a plain word goes into a heading.
        role = turn.role if _ROLE.fullmatch(turn.role) else "other"
        pieces += _block(bar, f"{title}, turn {number} ({role})", turn.content, candidate)
    return tuple(pieces)


def _bar(layout: Layout) -> str:
    longest = 0
    for text in layout.strings():
        if _RUN in text:
            longest = max(longest, *(len(run) for run in _RUNS.findall(text)))
    return "=" * max(len(_RUN), longest + 1)
