"""LLMBar evaluator results: `result.json`, every pair judged in both orders.

The `winner` is already by candidate ("1" is output_1 in both orders), so a displayed letter must be
derived from it and never the other way round; any other string is an answer that could not be read.
Evaluators that ask more than once (to synthesise, or for metrics and a reference answer first, kept as
`[text, finish reason]`) list several results, of which the last is the verdict. Evaluators that rate
each output by itself (`Rating…`) record two scores, and a draw as one win for each order: that is a
tie, not a preference for a position. The files have no ids: an item is named by a hash of its texts, so
runs of several evaluators join.

Source: princeton-nlp/LLMBar, `Dataset/*/*/evaluators/*/*/result.json`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.digests import digest
from unswayed.importers.protocol import (
    BadFieldError,
    Judged,
    Record,
    Source,
    read_as,
    short_name,
)
from unswayed.items import Item
from unswayed.presentation import X0, X2, Presentation

__all__ = ["LLMBar"]

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


@dataclass(frozen=True, slots=True)
class LLMBar:
    """LLMBar `result.json`: pairs judged in both orders by one evaluator."""

    def detects(self, record: Record) -> bool:
        """Two outputs and a list of results for both orders."""
        return {"input", "output_1", "output_2", "results"} <= record.keys()

    def convert(self, record: Record, source: Source) -> Judged:
        """One pair and its last result."""
        row = read_as(_Row, record)
        if not row.results:
            raise BadFieldError("results", "is empty")
        if row.label not in (1, 2, None):
            raise BadFieldError("label", f"{row.label} is not 1, 2 or null")
        subset, model = _place(source.file)
        name = digest(row.input, row.output_1, row.output_2).hex()[:16]
        item = Item(
            id=f"llmbar-{name}",
            prompt=row.input,
            candidates=(row.output_1, row.output_2),
            gold=None if row.label is None else row.label - 1,
            group=subset,
        )
        if not isinstance(row.results[-1], dict):
            raise BadFieldError("results", "the last entry is no verdict")
        last = read_as(_Result, row.results[-1])
        decisions = tuple(
            _decision(item.id, shown, answer, last, model)
            for shown, answer in ((X0, last.own), (X2, last.swapped))
            if answer is not None
        )
        return Judged(item, decisions, left_out=None if decisions else "no verdict was recorded")


def _place(file: str) -> tuple[str | None, str]:
    """The subset and the evaluator, as far as the path tells: .../SUBSET/evaluators/MODEL/PROMPT/."""
    parts = PurePath(file).parts
    if "evaluators" not in parts:
        return None, short_name(file)
    at = parts.index("evaluators")
    start = max((k for k in range(at) if parts[k] in ("LLMBar", "Processed")), default=at - 2)
    subset = "/".join(parts[start + 1 : at]) or None
    return subset, "/".join(parts[at + 1 : -1]) or short_name(file)


def _decision(
    item_id: str, shown: Presentation, answer: _Answer, result: _Result, model: str
) -> Decision:
    text, reason = _completion(answer.completion)
    return Decision(
        item_id=item_id,
        order=shown.order,
        labels=LABELS,
        label_set=LABELS,
        choice=_choice(answer, result),
        scores=_scores(result),
        text=text,
        finish_reason=reason,
        model=model,
    )


def _choice(answer: _Answer, result: _Result) -> Choice:
    """The winner; a draw where two separate ratings made the orders disagree."""
    rated = result.score_1 is not None and result.score_2 is not None
    winners = {str(one.winner).strip() for one in (result.own, result.swapped) if one is not None}
    if rated and winners == {"1", "2"}:
        return "tie"
    return {"1": 0, "2": 1}.get(str(answer.winner).strip())


def _scores(result: _Result) -> tuple[float, float] | None:
    """The two ratings, where both are bare numbers."""
    texts = [_completion(score)[0] for score in (result.score_1, result.score_2)]
    try:
        first, second = (float(str(text)) for text in texts)
    except ValueError:
        return None
    return (first, second) if math.isfinite(first) and math.isfinite(second) else None


def _completion(completion: object) -> tuple[str | None, str | None]:
    """The text and the finish reason of `[text, reason]`, or a bare text."""
    parts = completion if isinstance(completion, list) else [completion]
    texts = [part if isinstance(part, str) and part else None for part in (*parts, None, None)]
    return texts[0], texts[1]
