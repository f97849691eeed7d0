"""Reading a sampled response: which label, in which form, after how much reasoning. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unswayed.parsing.labels import parse_label
from unswayed.training.recipe_parts import Prompt

__all__ = ["Reader", "Reading", "completion_text", "reader"]


class Reading(NamedTuple):
    """A response, read.

    Attributes:
        label: Label index, or None if the response names no label.
        well_formed: Whether the response is exactly of the form that was asked for.
        reasoning_chars: Characters of reasoning; 0 where none was asked for.
    """

    label: int | None
    well_formed: bool
    reasoning_chars: int


Reader = Callable[[str, Sequence[str]], Reading]
"""From a response and the label symbols to what it says."""


def reader(prompt: Prompt, *, answer_only: bool) -> Reader:
    """The reader of a prompt's responses.

    Args:
        prompt: The recipe's prompt, for its tags.
        answer_only: Whether the prompt asks for a label and nothing else.
    """

    def read_answer(text: str, symbols: Sequence[str]) -> Reading:
        label = _label(text, symbols)
        bare = text.strip().rstrip(".").strip("()[]*\"'` ")
        exact = label is not None and bare.casefold() == symbols[label].casefold()
        return Reading(label, exact, 0)

    def read_reasoning(text: str, symbols: Sequence[str]) -> Reading:
        label = _label(text, symbols)
        reasoning, answer = _parts(text, prompt)
        well_formed = label is not None and answer.casefold() == symbols[label].casefold()
        return Reading(label, well_formed, len(reasoning))

    return read_answer if answer_only else read_reasoning


def _label(text: str, symbols: Sequence[str]) -> int | None:
    """The label a response names. A declared tie names none: training asks for one candidate."""
    symbol = parse_label(text, symbols, allow_tie=False)
    return None if symbol is None else list(symbols).index(symbol)


def _parts(text: str, prompt: Prompt) -> tuple[str, str]:
    """Reasoning and answer of a response; the answer is empty unless the form is exact."""
    opening, closing = prompt.think_tags
    before, after = prompt.answer_tags
    whole = text.strip()
    head, closed, tail = whole.partition(closing)
    reasoning = head.removeprefix(opening).strip()
    rest = tail.strip()
    exact = (
        bool(closed)
        and head.startswith(opening)
        and opening not in reasoning
        and rest.startswith(before)
        and rest.endswith(after)
    )
    answer = rest[len(before) : len(rest) - len(after)].strip() if exact else ""
    return reasoning, answer


def completion_text(completion: object) -> str:
    """The text of a completion as trl hands it over: a string, or the messages of one turn.

    A chat template with a response schema splits reasoning off into a field of its own; it is put
    back in front, so that every model is read alike.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence) and completion and isinstance(completion[-1], dict):
        message = completion[-1]
        content = str(message.get("content") or "")
        thought = message.get("reasoning_content") or message.get("thinking")
        return f"<think>{thought}</think>{content}" if thought else content
    return ""
