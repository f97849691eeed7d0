"""JudgeBench outputs: every pair judged in both orders.

A record holds two judgments: the first of (response_A, response_B), the second of the swapped pair.
Each `decision` is in *displayed* letters, so the second must be read the other way round. The group
is the benchmark's bucket, told by the beginning of `source`; the source itself goes into `meta`.

Source: ScalerLab/JudgeBench, `outputs/*.jsonl`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.importers.protocol import (
    Importer,
    Judged,
    Source,
    candidate_at,
    has,
    pair_decision,
    read_as,
)
from unswayed.items import BadFieldError, Item
from unswayed.presentation import X0, X2

LABELS: Final = ("A", "B")

BUCKETS: Final = {
    "mmlu-pro": "Knowledge",
    "livebench-reasoning": "Reasoning",
    "livebench-math": "Math",
    "livecodebench": "Coding",
}
"""Bucket by the beginning of the source."""

_POSITION: Final[dict[str | None, Choice]] = {"A>B": 0, "B>A": 1, "A=B": "tie", None: None}


class _Recorded(msgspec.Struct):
    response: str | None = None
    scores: list[float] | None = None  # of a reward model, by position
    judge_model: Any = None


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


def _read(pair: _Pair, source: Source) -> Judged:
    """One pair and its judgments; a judgment that is null is a call that failed."""
    if len(pair.judgments) > 2:
        raise BadFieldError("judgments", f"expected 1 or 2, got {len(pair.judgments)}")
    buckets = (bucket for start, bucket in BUCKETS.items() if pair.source.startswith(start))
    item = Item(
        id=pair.pair_id,
        prompt=pair.question,
        candidates=(pair.response_A, pair.response_B),
        gold=_displayed(pair.label, "label"),
        group=next(buckets, None),
        meta={
            "source": pair.source,
            "original_id": pair.original_id,
            "response_model": pair.response_model,
        },
    )
    decisions = tuple(
        _decision(item, pair.judge_name, judgment, place)
        for place, judgment in enumerate(pair.judgments)
        if judgment is not None
    )
    failed = ("calls that failed (null), left out",) * (len(pair.judgments) - len(decisions))
    left_out = None if decisions else "no verdict was recorded"
    return Judged(item, decisions, left_out, remarks=failed)


def _displayed(decision: str | None, field: str) -> Choice:
    """The position that a decision names, "tie", or None."""
    if decision not in _POSITION:
        raise BadFieldError(field, f"{decision!r} is not A>B, B>A, A=B or null")
    return _POSITION[decision]


def _decision(item: Item, judge: str | None, judgment: _Judgment, place: int) -> Decision:
    shown = (X0, X2)[place]
    given = judgment.judgment
    recorded = read_as(_Recorded, given) if isinstance(given, dict) else _Recorded()
    scores = recorded.scores
    if scores is not None and len(scores) == 2:
        first, second = (scores[shown.position_of_candidate(c)] for c in (0, 1))
    names = [str(name) for name in (judge, recorded.judge_model) if name]
    return pair_decision(
        item,
        shown,
        LABELS,
        candidate_at(shown, _displayed(judgment.decision, f"judgments[{place}].decision")),
        scores=(first, second) if scores is not None and len(scores) == 2 else None,
        text=recorded.response or None,
        model="/".join(names) or None,
    )


JUDGEBENCH: Final = Importer(
    title="JudgeBench `outputs/*.jsonl`: pairs judged in both orders, four buckets as groups.",
    detects=has("pair_id", "response_A", "response_B", "judgments"),
    schema=_Pair,
    read=_read,
)
