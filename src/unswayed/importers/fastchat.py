"""FastChat's pairwise judgments (`gpt-4_pair.jsonl`): every pair of models judged in both orders.

Game 1 shows model_1 first, game 2 model_2. The winners are already by model ("model_1" in both
games), so they must not be read as letters; "tie" is a draw and "error" an answer that named no winner.
A judgment `$ERROR$` is a call that failed, which is no decision. Records whose two games are one
separate rating of each model (`m1_score`) keep the scores. Questions and answers are in other files, so
items have no text, and there is no gold.

Source: lm-sys/FastChat, `fastchat/llm_judge`, `model_judgment/*_pair.jsonl`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from unswayed.decisions import Choice
from unswayed.importers.protocol import Importer, Judged, Source, has, pair_decision
from unswayed.items import BadFieldError, Item
from unswayed.presentation import X0, X2

LABELS: Final = ("A", "B")

_FAILED: Final = "$ERROR$"
_WINNER: Final[dict[str, Choice]] = {"model_1": 0, "model_2": 1, "tie": "tie", "error": None}


class _Match(msgspec.Struct):
    question_id: int | str
    model_1: str
    model_2: str
    g1_winner: str
    g2_winner: str
    judge: list[str] | str | None = None
    g1_judgment: str | None = None
    g2_judgment: str | None = None
    turn: int | None = None
    category: str | None = None
    m1_score: float | None = None
    m2_score: float | None = None


def _read(match: _Match, source: Source) -> Judged:
    """One match; a game whose call failed is counted, not kept."""
    item = Item(
        id=f"{match.question_id};{match.turn or 1};{match.model_1};{match.model_2}",
        prompt="",
        candidates=("", ""),
        group=match.category,
        meta={
            "question_id": match.question_id,
            "turn": match.turn,
            "models": [match.model_1, match.model_2],
        },
    )
    scores = None
    if match.m1_score is not None and match.m2_score is not None:
        scores = (match.m1_score, match.m2_score)
    games = (
        ("g1_winner", X0, match.g1_winner, match.g1_judgment),
        ("g2_winner", X2, match.g2_winner, match.g2_judgment),
    )
    decisions = tuple(
        pair_decision(
            item,
            shown,
            LABELS,
            _winner(winner, field),
            scores=scores,
            text=judgment,
            model="/".join(match.judge) if isinstance(match.judge, list) else match.judge,
        )
        for field, shown, winner, judgment in games
        if judgment != _FAILED
    )
    failed = ("calls that failed ($ERROR$), left out",) * (2 - len(decisions))
    left_out = None if decisions else "no verdict was recorded"
    return Judged(item, decisions, left_out, remarks=failed)


def _winner(name: str, field: str) -> Choice:
    if name not in _WINNER:
        raise BadFieldError(field, f"{name!r} is not model_1, model_2, tie or error")
    return _WINNER[name]


FASTCHAT: Final = Importer(
    title="FastChat `model_judgment/*_pair.jsonl`: models judged in pairs, both orders.",
    detects=has("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
    schema=_Match,
    read=_read,
)
