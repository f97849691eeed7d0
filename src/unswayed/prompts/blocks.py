"""The user message of the built-in prompts: headed blocks that no content can break out of.

A heading is a line between runs of equals signs, one longer than any run in the item's texts, so
that no text can contain a heading. Candidate text is inserted as it is, never altered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from unswayed.items import Item, Text
from unswayed.presentation import Substitution
from unswayed.prompts.spans import NO_CANDIDATE, Piece
from unswayed.tasks import TaskSpec

__all__ = ["Contents", "contents_of", "user_pieces"]

_RUN: Final = "====="
_RUNS: Final = re.compile(r"={5,}")
_ROLE: Final = re.compile(r"[a-z_]{1,16}")


class Contents(NamedTuple):
    """What is printed: the item's own texts, or content-free ones in their place.

    Attributes:
        question: The prompt.
        candidates: By candidate.
        reference: The reference answer, if any.
    """

    question: Text
    candidates: tuple[Text, ...]
    reference: str | None


def contents_of(item: Item, substitute: Substitution | None) -> Contents:
    """The texts to show.

    Where a content-free prompt is given it also stands in for the reference answer, so that
    nothing of the item is left.
    """
    if substitute is None:
        return Contents(item.prompt, item.candidates, item.reference)
    if substitute.prompt is None:
        return Contents(item.prompt, substitute.candidates, item.reference)
    reference = None if item.reference is None else substitute.prompt
    return Contents(substitute.prompt, substitute.candidates, reference)


def user_pieces(
    contents: Contents,
    order: Sequence[int],
    symbols: Sequence[str],
    *,
    task: TaskSpec,
    closing: str,
) -> list[Piece]:
    """The blocks of one item in display order, cut at the candidates' texts.

    Args:
        contents: The texts, by candidate.
        order: `order[p]` = candidate at position p.
        symbols: `symbols[p]` = label printed at position p.
        task: What is asked about them.
        closing: The sentence at the end.
    """
    question, candidates, reference = contents
    bar = _bar(contents)
    pieces = _block(bar, "Question", question)
    if reference is not None:
        pieces += _block(bar, "Reference", reference)
    if task.listed and all(
        isinstance(text, str) and len(text.splitlines()) < 2 for text in candidates
    ):
        pieces.append((f"{bar} {task.noun.capitalize()}s {bar}", NO_CANDIDATE))
        for symbol, candidate in zip(symbols, order, strict=True):
            pieces.append((f"\n{symbol}. ", NO_CANDIDATE))
            pieces.append((str(candidates[candidate]), candidate))
        pieces.append(("\n\n", NO_CANDIDATE))
    else:
        noun = task.noun.capitalize()
        for symbol, candidate in zip(symbols, order, strict=True):
            pieces += _block(bar, f"{noun} {symbol}", candidates[candidate], candidate)
    pieces.append((f"{bar} Your reply {bar}\n{closing}", NO_CANDIDATE))
    return pieces


def _block(bar: str, title: str, text: Text, candidate: int = NO_CANDIDATE) -> list[Piece]:
    if isinstance(text, str) or len(text) == 1:
        content = text if isinstance(text, str) else text[0].content
        return [
            (f"{bar} {title} {bar}\n", NO_CANDIDATE),
            (content, candidate),
            ("\n\n", NO_CANDIDATE),
        ]
    pieces: list[Piece] = []
    for turn, message in enumerate(text, start=1):
        # A role is content too: only a plain word goes into a heading.
        role = message.role if _ROLE.fullmatch(message.role) else "other"
        pieces += [
            (f"{bar} {title}, turn {turn} ({role}) {bar}\n", NO_CANDIDATE),
            (message.content, candidate),
            ("\n\n", NO_CANDIDATE),
        ]
    return pieces


def _bar(contents: Contents) -> str:
    question, candidates, reference = contents
    longest = 0
    for text in (question, *candidates, reference or ""):
        for part in (text,) if isinstance(text, str) else [message.content for message in text]:
            if _RUN in part:
                longest = max(longest, *(len(run) for run in _RUNS.findall(part)))
    return "=" * max(len(_RUN), longest + 1)
