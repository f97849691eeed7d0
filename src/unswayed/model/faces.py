"""Items made of what one verdict is asked for, under a name of their content.

The methods of `Judge` that ask for one verdict have their arguments and their documentation from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from unswayed.model.items import BadFieldError, Item, Task, Text, check_item, made_id


def pair(
    prompt: Text,
    first: Text,
    second: Text,
    *,
    reference: str | None = None,
    group: str | None = None,
) -> Item:
    """Judge two answers to a prompt; `group` is for methods that learn by group.

    Raises:
        BackendError: If a call failed; there is no default verdict.
    """
    return _named(Task.PAIRWISE, prompt, (first, second), reference=reference, group=group)


def choice(prompt: Text, options: Sequence[str], *, group: str | None = None) -> Item:
    """Answer a multiple-choice question; `verdict.choice` indexes `options`.

    Raises:
        BackendError: If a call failed.
    """
    return _named(Task.MCQ, prompt, tuple(options), group=group)


def listing(
    prompt: Text,
    candidates: Sequence[Text],
    *,
    reference: str | None = None,
    group: str | None = None,
) -> Item:
    """Rank several answers to a prompt: `verdict.ranking`, best first, by `verdict.scores`.

    Raises:
        BackendError: If a call failed.
        ItemError: If there are fewer than two candidates.
    """
    return _named(Task.LISTWISE, prompt, tuple(candidates), reference=reference, group=group)


def rating(
    prompt: Text,
    response: str,
    levels: Mapping[float, str],
    *,
    reference: str | None = None,
    group: str | None = None,
) -> Item:
    """Score a response to a prompt on a scale: `verdict.score`, with `verdict.sd`.

    Args:
        prompt: What the response answers.
        response: The text that is scored.
        levels: What each score means, in words, by its value: `{1: "poor", 2: "fair"}`;
            `dict(enumerate(texts, start=1))` of a list. `verdict.choice` and
            `verdict.scores` count the levels in the order given.
        reference: A reference answer.
        group: For methods that learn by group.

    Raises:
        BackendError: If a call failed.
        ItemError: If the levels are no scale.
    """
    values, texts = scale_of(levels)
    more = {"values": values, "response": response, "reference": reference, "group": group}
    return _named(Task.RUBRIC, prompt, texts, **more)


def _named(task: Task, prompt: Text, candidates: tuple[Text, ...], **more: Any) -> Item:
    return named(Item(id="", task=task, prompt=prompt, candidates=candidates, **more))


def named(item: Item) -> Item:
    """Return the item under a name made from its content; an `ItemError` where it is malformed."""
    for text in item.candidates:
        if not isinstance(text, str | tuple):
            raise BadFieldError(
                "candidates", f"{text!r:.60} is neither text nor a tuple of Message"
            )
    check_item(renamed := msgspec.structs.replace(item, id=made_id(item)))
    return renamed


def scale_of(levels: Mapping[float, str]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return the values and the descriptions of a scale of two levels at least, in the order given."""
    if len(levels) < 2:
        raise BadFieldError("levels", f"a scale needs at least 2, got {len(levels)}")
    for value, text in levels.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise BadFieldError(
                "levels",
                f'{value!r} is not a number: give {{value: description}}, as {{1: "poor"}}',
            )
        if not isinstance(text, str) or not text.strip():
            raise BadFieldError("levels", f"{value:g} has no description in words: {text!r}")
    return tuple(map(float, levels)), tuple(levels.values())
