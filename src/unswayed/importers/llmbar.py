"""LLMBar evaluator results: `result.json`, every pair judged in both orders.

The `winner` is already by candidate ("1" is output_1 in both orders), so a displayed letter must be
derived from it and never the other way round; any other string is an answer that could not be read.
Evaluators that ask twice and then synthesise list several results, of which the last counts. The
files have no ids: an item is named by a hash of its texts, so runs of several evaluators join.

Source: princeton-nlp/LLMBar, `Dataset/*/*/evaluators/*/*/result.json`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.decisions import Decision
from unswayed.importers.protocol import (
    BadRecordError,
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
    winner: str | int | None
    completion: Any = None


class _Both(msgspec.Struct):
    own: _Answer | None = msgspec.field(name="swap = False", default=None)
    swapped: _Answer | None = msgspec.field(name="swap = True", default=None)


class _Row(msgspec.Struct):
    input: str
    output_1: str
    output_2: str
    label: int | None
    results: list[_Both]


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
            raise BadRecordError("results", "is empty")
        if row.label not in (1, 2, None):
            raise BadRecordError("label", f"{row.label} is not 1, 2 or null")
        subset, model = _place(source.file)
        texts = "\x00".join((row.input, row.output_1, row.output_2))
        name = hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        item = Item(
            id=f"llmbar-{name}",
            prompt=row.input,
            candidates=(row.output_1, row.output_2),
            gold=None if row.label is None else row.label - 1,
            group=subset,
        )
        last = row.results[-1]
        decisions = tuple(
            _decision(item.id, shown, answer, model)
            for shown, answer in ((X0, last.own), (X2, last.swapped))
            if answer is not None
        )
        return Judged(item, decisions)


def _place(file: str) -> tuple[str | None, str]:
    """The subset and the evaluator, as far as the path tells: .../SUBSET/evaluators/MODEL/PROMPT/."""
    parts = PurePath(file).parts
    if "evaluators" not in parts:
        return None, short_name(file)
    at = parts.index("evaluators")
    start = max((k for k in range(at) if parts[k] in ("LLMBar", "Processed")), default=at - 2)
    subset = "/".join(parts[start + 1 : at]) or None
    return subset, "/".join(parts[at + 1 : -1]) or short_name(file)


def _decision(item_id: str, shown: Presentation, answer: _Answer, model: str) -> Decision:
    text, reason = _completion(answer.completion)
    return Decision(
        item_id=item_id,
        order=shown.order,
        labels=LABELS,
        label_set=LABELS,
        choice={"1": 0, "2": 1}.get(str(answer.winner).strip()),
        text=text,
        finish_reason=reason,
        model=model,
    )


def _completion(completion: object) -> tuple[str | None, str | None]:
    """The text and the finish reason of `[text, reason]`, or a bare text."""
    parts = completion if isinstance(completion, list) else [completion]
    texts = [part if isinstance(part, str) and part else None for part in (*parts, None, None)]
    return texts[0], texts[1]
