"""JudgeBench outputs: every pair judged in both orders.

A record holds two judgments: the first of (response_A, response_B), the second of the swapped pair.
Each `decision` is in *displayed* letters, so the second must be read the other way round. The group
is the benchmark's bucket, told by the beginning of `source`; the source itself goes into `meta`.

Source: ScalerLab/JudgeBench, `outputs/*.jsonl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.importers.protocol import BadFieldError, Judged, Record, Source, read_as
from unswayed.items import Item
from unswayed.presentation import X0, X2

__all__ = ["JudgeBench", "bucket_of"]

LABELS: Final = ("A", "B")

BUCKETS: Final = {
    "mmlu-pro": "Knowledge",
    "livebench-reasoning": "Reasoning",
    "livebench-math": "Math",
    "livecodebench": "Coding",
}
"""Bucket by the beginning of the source."""

_POSITION: Final[dict[str | None, int | str | None]] = {
    "A>B": 0,
    "B>A": 1,
    "A=B": "tie",
    None: None,
}


class _Judgment(msgspec.Struct):
    decision: str | None = None
    judgment: Any = None


class _Pair(msgspec.Struct):
    pair_id: str
    question: str
    response_A: str  # noqa: N815 - the benchmark's own field names
    response_B: str  # noqa: N815
    judgments: list[_Judgment | None]
    label: str | None = None
    source: str = ""
    original_id: str | int | None = None
    response_model: str | None = None
    judge_name: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeBench:
    """JudgeBench `outputs/*.jsonl`: pairs judged in both orders, four buckets as groups."""

    def detects(self, record: Record) -> bool:
        """Pairs with a list of judgments."""
        return {"pair_id", "response_A", "response_B", "judgments"} <= record.keys()

    def convert(self, record: Record, source: Source) -> Judged:
        """One pair and its judgments; a judgment that is null is a call that failed."""
        pair = read_as(_Pair, record)
        if len(pair.judgments) > 2:
            raise BadFieldError("judgments", f"expected 1 or 2, got {len(pair.judgments)}")
        item = Item(
            id=pair.pair_id,
            prompt=pair.question,
            candidates=(pair.response_A, pair.response_B),
            gold=_displayed(pair.label, "label"),
            group=bucket_of(pair.source),
            meta={
                "source": pair.source,
                "original_id": pair.original_id,
                "response_model": pair.response_model,
            },
        )
        decisions = tuple(
            _decision(pair, judgment, swapped=bool(k))
            for k, judgment in enumerate(pair.judgments)
            if judgment is not None
        )
        return Judged(item, decisions)


def bucket_of(source: str) -> str | None:
    """The benchmark's bucket of a source; None for one it does not have."""
    return next((bucket for start, bucket in BUCKETS.items() if source.startswith(start)), None)


def _displayed(decision: str | None, field: str) -> Choice:
    """The position that a decision names, "tie", or None."""
    if decision not in _POSITION:
        raise BadFieldError(field, f"{decision!r} is not A>B, B>A, A=B or null")
    return _POSITION[decision]  # type: ignore[return-value]


def _decision(pair: _Pair, judgment: _Judgment, *, swapped: bool) -> Decision:
    shown = X2 if swapped else X0
    said = _displayed(judgment.decision, f"judgments[{int(swapped)}].decision")
    recorded = judgment.judgment if isinstance(judgment.judgment, dict) else {}
    by_position = recorded.get("scores")  # of a reward model
    scores = None
    if isinstance(by_position, list) and len(by_position) == 2:
        scores = tuple(float(by_position[shown.position_of_candidate(c)]) for c in (0, 1))
    judge = recorded.get("judge_model")
    return Decision(
        item_id=pair.pair_id,
        order=shown.order,
        labels=LABELS,
        label_set=LABELS,
        choice=shown.order[said] if isinstance(said, int) else said,
        scores=scores,
        text=recorded.get("response") or None,
        model="/".join(str(part) for part in (pair.judge_name, judge) if part) or None,
    )
