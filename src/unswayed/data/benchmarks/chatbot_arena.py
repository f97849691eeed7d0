"""Chatbot Arena: conversations of users with two models, and the users' votes.

A vote that both are bad is a tie, which `meta.both_bad` remembers. The group is the language.

Source: Zheng et al., arXiv 2306.05685; `lmsys/chatbot_arena_conversations`, which is gated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.model.items import BadFieldError, Gold, Item, Message, Text

BOTH_BAD: Final = "tie (bothbad)"
_GOLD: Final[Mapping[str, Gold]] = {"model_a": 0, "model_b": 1, "tie": "tie", BOTH_BAD: "tie"}


class _Battle(msgspec.Struct):
    question_id: str
    model_a: str
    model_b: str
    winner: str
    conversation_a: list[Message]
    conversation_b: list[Message]
    turn: int
    language: str | None = None


def _items(rows: Sequence[_Battle], place: Place) -> Iterator[Item]:
    for row in rows:
        if row.winner not in _GOLD:
            raise BadFieldError("winner", f"{row.winner!r} is not one of {', '.join(_GOLD)}")
        first = row.conversation_a[:1]
        if not first or first[0].role != "user":
            raise BadFieldError("conversation_a", "does not begin with the user's question")
        yield Item(
            id=row.question_id,
            prompt=first[0].content,
            candidates=(
                _answers(row.conversation_a, "conversation_a"),
                _answers(row.conversation_b, "conversation_b"),
            ),
            gold=_GOLD[row.winner],
            group=row.language,
            meta={"turns": row.turn, "both_bad": row.winner == BOTH_BAD},
            candidates_by=(row.model_a, row.model_b),
        )


def _answers(conversation: Sequence[Message], column: str) -> Text:
    rest = tuple(conversation[1:])
    if not rest:
        raise BadFieldError(column, "has no answer")
    return rest[0].content if len(rest) == 1 else rest


CHATBOT_ARENA: Final = Benchmark(
    title="Users' conversations with two models, and their votes.",
    hub="huggingface",
    repository="lmsys/chatbot_arena_conversations",
    revision="1b6335d42a1d2c7e34870c905d03ab964f7f2bd8",
    files={"train": ("data/train-*.parquet",)},
    schema=_Battle,
    items=_items,
    task="pairwise",
    rows=33000,
    licence="prompts CC BY 4.0, answers CC BY-NC 4.0",
    paper="2306.05685",
    gated=True,
    note="Some conversations are offensive. One vote each: gold is an opinion.",
)
