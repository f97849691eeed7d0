"""MT-Bench judgments as a table: `gpt4_pair` (and `human`) of `lmsys/mt_bench_human_judgments`.

A row of GPT-4 is no call but what two calls in both orders came to: a model wins only if it won
both, "tie" if both said so, and "tie (inconsistent)" if the orders disagreed. So the order of a call is
not recorded, and what the two said where they disagree is not either: a row becomes one decision in the
table's own order, counted as `order not recorded`, and its disagreements are ties, counted too. A file
of single calls is FastChat's `gpt-4_pair.jsonl` (`fastchat`). Votes of humans have the judge's name.
A pair may stand there as (a, b) and as (b, a): these are two items. There is no gold.

Source: lmsys/mt_bench_human_judgments (Hugging Face), splits `gpt4_pair` and `human`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from unswayed.decisions import Choice
from unswayed.importers.protocol import Importer, Judged, Source, has, pair_decision
from unswayed.items import BadFieldError, Item, Message, Text
from unswayed.presentation import X0

LABELS: Final = ("A", "B")

ORDER_UNKNOWN: Final = "order not recorded (verdicts over both orders): figures by position mean nothing for these decisions"
DISAGREED: Final = "orders that disagreed, recorded as a tie"

_INCONSISTENT: Final = "tie (inconsistent)"
_WINNER: Final[dict[str, Choice]] = {
    "model_a": 0,
    "model_b": 1,
    "tie": "tie",
    _INCONSISTENT: "tie",
    "error": None,
}


class _Turn(msgspec.Struct):
    role: str
    content: str


class _Row(msgspec.Struct):
    question_id: int | str
    model_a: str
    model_b: str
    winner: str
    judge: Any = None
    turn: int | str | None = None
    conversation_a: Any = None
    conversation_b: Any = None


def _read(row: _Row, source: Source) -> Judged:
    """One verdict of one judge on a pair."""
    if row.winner not in _WINNER:
        raise BadFieldError("winner", f"{row.winner!r} is not {', '.join(_WINNER)}")
    prompt, answers = _texts(row)
    item = Item(
        id=f"{row.question_id};{row.turn or 1};{row.model_a};{row.model_b}",
        prompt=prompt,
        candidates=answers,
        meta={
            "question_id": row.question_id,
            "turn": row.turn,
            "models": [row.model_a, row.model_b],
        },
    )
    judge = "/".join(map(str, row.judge)) if isinstance(row.judge, list) else row.judge
    decision = pair_decision(
        item, X0, LABELS, _WINNER[row.winner], model=None if judge is None else str(judge)
    )
    disagreed = (DISAGREED,) if row.winner == _INCONSISTENT else ()
    return Judged(item, (decision,), remarks=(ORDER_UNKNOWN, *disagreed))


def _texts(row: _Row) -> tuple[str, tuple[Text, Text]]:
    """The first question, and each model's turns after it; empty where a table leaves them out."""
    try:
        first, second = (
            msgspec.convert(talk, list[_Turn]) for talk in (row.conversation_a, row.conversation_b)
        )
    except msgspec.ValidationError:
        return "", ("", "")
    if not first or not second or first[0].role != "user":
        return "", ("", "")
    return first[0].content, (_answers(first), _answers(second))


def _answers(talk: list[_Turn]) -> Text:
    turns = talk[1:]
    if len(turns) == 1:
        return turns[0].content
    return tuple(Message(turn.role, turn.content) for turn in turns)


FASTCHAT_TABLE: Final = Importer(
    title="MT-Bench table `gpt4_pair` or `human`: one verdict per pair and judge, order not recorded.",
    detects=has("question_id", "model_a", "model_b", "winner"),
    schema=_Row,
    read=_read,
)
