"""The verdict of a JSON object that ends a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from unswayed.parsing.hedges import is_reported
from unswayed.parsing.symbols import NO_LABEL

__all__ = ["json_verdict"]

_KEYS: Final = (
    "verdict",
    "answer",
    "final_answer",
    "final_verdict",
    "choice",
    "winner",
    "label",
    "decision",
    "better",
    "better_answer",
    "best",
    "best_answer",
    "preference",
    "preferred",
    "chosen",
    "selection",
    "selected",
    "result",
)
_EARLIER: Final = re.compile(
    rf"\"(?:{'|'.join(_KEYS)})\"\s{{0,4}}:\s{{0,4}}\"([^\"\n]{{1,80}})\"", re.IGNORECASE
)


def json_verdict(text: str, read: Callable[[str], int]) -> tuple[int, bool]:
    """What a JSON object at the end of a reply says, and whether nothing else may be read.

    Args:
        text: The reply without reasoning.
        read: The code of a short text.

    Returns:
        The verdict's code, and True where the object is the whole reply or contradicts itself or
        an object before it.
    """
    body = text
    if text.endswith("```"):
        start = text.rfind("```", 0, -3)
        body = text[start + 3 : -3].strip().removeprefix("json").strip()
    if not body.endswith("}"):
        return NO_LABEL, False
    is_whole = len(body) == len(text)
    if not body.startswith("{"):
        body = body[body.rfind("{") :]
        is_whole = False
    try:
        pairs = json.loads(body, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return NO_LABEL, False
    if not isinstance(pairs, list) or not body.startswith("{"):
        return NO_LABEL, False
    verdicts = []
    for key, value in pairs:
        if key.casefold() in _KEYS and type(value) in {str, int}:
            code = read(str(value))
            if code != NO_LABEL:
                verdicts.append(code)
    if not verdicts:
        return NO_LABEL, is_whole
    start = text.rfind(body)
    if is_reported(text, start, start + len(body)):
        return NO_LABEL, True
    verdicts += [
        code for match in _EARLIER.finditer(text, 0, start) if (code := read(match[1])) != NO_LABEL
    ]
    return (verdicts[0] if len(set(verdicts)) == 1 else NO_LABEL), True
