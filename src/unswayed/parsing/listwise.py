"""The JSON object of a listwise reply, by label."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["FLAGS", "ListwiseReading", "listwise_schema", "read_listwise"]

FLAGS: Final = ("major_error", "hallucinated_specificity", "calibrated_uncertainty")


@dataclass(frozen=True, slots=True)
class ListwiseReading:
    """What a reply says, by label index."""

    scores: tuple[float | None, ...]
    flags: dict[str, tuple[bool | None, ...]]
    ranking: tuple[int, ...] | None
    problems: tuple[str, ...] = ()


def read_listwise(
    text: str, symbols: Sequence[str], *, quoted: Iterable[str] = (), truncated: bool = False
) -> ListwiseReading:
    """Read one reply (strict; the tolerant reader replaces this)."""
    try:
        reply = json.loads(text[text.index("{") : text.rindex("}") + 1])
        marks = [reply["candidates"][symbol] for symbol in symbols]
        ranking = [list(symbols).index(symbol) for symbol in reply["ranking"]]
    except (ValueError, KeyError, TypeError):
        unknown = (None,) * len(symbols)
        return ListwiseReading(unknown, dict.fromkeys(FLAGS, unknown), None, ("no object",))
    return ListwiseReading(
        tuple(float(mark["score"]) for mark in marks),
        {flag: tuple(bool(mark[flag]) for mark in marks) for flag in FLAGS},
        tuple(ranking),
    )


def listwise_schema(labels: Sequence[str]) -> str:
    """The JSON schema of a reply."""
    return json.dumps({"type": "object"})
