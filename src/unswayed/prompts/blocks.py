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
from unswayed.prompts.styles import Wording

__all__ = ["Contents", "contents_of", "user_message"]

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


def user_message(
    contents: Contents,
    order: Sequence[int],
    symbols: Sequence[str],
    *,
    wording: Wording,
    closing: str,
) -> str:
    """The blocks of one item in display order.

    Args:
        contents: The texts, by candidate.
        order: `order[p]` = candidate at position p.
        symbols: `symbols[p]` = label printed at position p.
        wording: The task's wording.
        closing: The sentence at the end.
    """
    question, candidates, reference = contents
    bar = _bar(contents)
    parts: list[str] = []
    _add(parts, bar, "Question", question)
    if reference is not None:
        _add(parts, bar, "Reference", reference)
    if wording.heading is not None and all(
        isinstance(text, str) and len(text.splitlines()) < 2 for text in candidates
    ):
        lines = "\n".join(
            f"{symbol}. {candidates[candidate]}"
            for symbol, candidate in zip(symbols, order, strict=True)
        )
        parts.append(f"{bar} {wording.heading} {bar}\n{lines}")
    else:
        noun = wording.noun
        for symbol, candidate in zip(symbols, order, strict=True):
            _add(parts, bar, f"{noun} {symbol}", candidates[candidate])
    parts.append(f"{bar} Your reply {bar}\n{closing}")
    return "\n\n".join(parts)


def _add(parts: list[str], bar: str, title: str, text: Text) -> None:
    if isinstance(text, str):
        parts.append(f"{bar} {title} {bar}\n{text}")
        return
    if len(text) == 1:
        parts.append(f"{bar} {title} {bar}\n{text[0].content}")
        return
    for turn, message in enumerate(text, start=1):
        # A role is content too: only a plain word goes into a heading.
        role = message.role if _ROLE.fullmatch(message.role) else "other"
        parts.append(f"{bar} {title}, turn {turn} ({role}) {bar}\n{message.content}")


def _bar(contents: Contents) -> str:
    question, candidates, reference = contents
    longest = 0
    for text in (question, *candidates, reference or ""):
        for part in (text,) if isinstance(text, str) else [message.content for message in text]:
            if _RUN in part:
                longest = max(longest, *(len(run) for run in _RUNS.findall(part)))
    return "=" * max(len(_RUN), longest + 1)
