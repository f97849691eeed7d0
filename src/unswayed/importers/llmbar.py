"""LLMBar evaluator results: `result.json`, every pair judged in both orders.

The `winner` is already by candidate ("1" is output_1 in both orders), so a displayed letter must be
derived from it and never the other way round; any other string is an answer that could not be read.
Evaluators that ask more than once (to synthesise, or for metrics and a reference answer first, kept as
`[text, finish reason]`) list several results, of which the last is the verdict. Evaluators that rate
each output by itself (`Rating…`) record two scores. They also record one win for each order if the scores are equal
(a tie) or if one could not be read (no answer); neither is a preference for a position. The files have no ids: an
item is named by a hash of its texts, so runs of several evaluators join.

Source: princeton-nlp/LLMBar, `Dataset/*/*/evaluators/*/*/result.json`.
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.decisions import Choice
from unswayed.digests import digest
from unswayed.importers.protocol import (
    Importer,
    Judged,
    Source,
    has,
    pair_decision,
    read_as,
    short_name,
)
from unswayed.items import BadFieldError, Item
from unswayed.presentation import X0, X2

LABELS: Final = ("a", "b")
"""The prompts call the answers Output (a) and Output (b)."""


class _Answer(msgspec.Struct):
    winner: str | int | None = None
    completion: Any = None


class _Result(msgspec.Struct):
    own: _Answer | None = msgspec.field(name="swap = False", default=None)
    swapped: _Answer | None = msgspec.field(name="swap = True", default=None)
    score_1: Any = None
    score_2: Any = None


class _Row(msgspec.Struct):
    input: str
    output_1: str
    output_2: str
    results: list[Any]
    label: int | None = None


def _read(row: _Row, source: Source) -> Judged:
    """One pair and its last result."""
    if not row.results:
        raise BadFieldError("results", "is empty")
    if row.label not in (1, 2, None):
        raise BadFieldError("label", f"{row.label} is not 1, 2 or null")
    if not isinstance(row.results[-1], dict):
        raise BadFieldError("results", "the last entry is no verdict")
    result = read_as(_Result, row.results[-1])
    subset, model = _place(source.file)
    item = Item(
        id=f"llmbar-{digest(row.input, row.output_1, row.output_2).hex()[:16]}",
        prompt=row.input,
        candidates=(row.output_1, row.output_2),
        gold=None if row.label is None else row.label - 1,
        group=subset,
    )
    decisions = tuple(
        pair_decision(
            item,
            shown,
            LABELS,
            _choice(answer, result),
            scores=_scores(result),
            text=_completion(answer.completion)[0],
            model=model,
            finish_reason=_reason(_completion(answer.completion), *_ratings(result)),
        )
        for shown, answer in ((X0, result.own), (X2, result.swapped))
        if answer is not None
    )
    left_out = None if decisions else "no verdict was recorded"
    return Judged(item, decisions, left_out=left_out)


def _place(file: str) -> tuple[str | None, str]:
    """The subset and the evaluator, as far as the path tells: .../SUBSET/evaluators/MODEL/PROMPT/."""
    parts = PurePath(file).parts
    if "evaluators" not in parts:
        return None, short_name(file)
    at = parts.index("evaluators")
    start = max((k for k in range(at) if parts[k] in ("LLMBar", "Processed")), default=at - 2)
    subset = "/".join(parts[start + 1 : at]) or None
    return subset, "/".join(parts[at + 1 : -1]) or short_name(file)


def _choice(answer: _Answer, result: _Result) -> Choice:
    """Return the winner, or the higher of two separate ratings; None if an unread rating splits the orders."""
    scores = _scores(result)
    if scores is not None:
        return "tie" if scores[0] == scores[1] else int(scores[1] > scores[0])
    answers = (result.own, result.swapped)
    winners = {str(given.winner).strip() for given in answers if given is not None}
    if result.score_1 is not None and winners == {"1", "2"}:
        return None
    return {"1": 0, "2": 1}.get(str(answer.winner).strip())


def _scores(result: _Result) -> tuple[float, float] | None:
    """The two ratings, where both are bare numbers."""
    try:
        first, second = (float(str(text)) for text, _ in _ratings(result))
    except ValueError:
        return None
    return (first, second) if math.isfinite(first) and math.isfinite(second) else None


def _ratings(result: _Result) -> list[tuple[str | None, str | None]]:
    """Return text and finish reason of each separate rating."""
    return [_completion(score) for score in (result.score_1, result.score_2)]


def _reason(*completions: tuple[str | None, str | None]) -> str | None:
    """Return the finish reason of an answer; among several completions, prefer one other than `stop`."""
    reasons = [reason for _, reason in completions if reason]
    return min(reasons, key="stop".__eq__, default=None)


def _completion(completion: object) -> tuple[str | None, str | None]:
    """The text and the finish reason of `[text, reason]`, or a bare text."""
    parts = completion if isinstance(completion, list) else [completion]
    texts = [part if isinstance(part, str) and part else None for part in (*parts, None, None)]
    return texts[0], texts[1]


LLMBAR: Final = Importer(
    title="LLMBar `result.json`: pairs judged in both orders by one evaluator.",
    detects=has("input", "output_1", "output_2", "results"),
    schema=_Row,
    read=_read,
)
