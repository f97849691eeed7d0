"""MT-Bench's human judgments: answers of six models to 80 questions of two turns.

A row is one vote; a pair of models may be shown as (a, b) and as (b, a) and has several votes. Votes
on one question, turn and pair make one item: candidates in the alphabet's order of the models, gold
what more than half of the votes say, a tie where none has more than half. A vote on the second turn
is about the whole conversation.

Source: Zheng et al., arXiv 2306.05685; `lmsys/mt_bench_human_judgments`, split `human`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.model.items import BadFieldError, Item, Message, Text

CATEGORIES: Final = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
)
"""Of ten questions each; the first has number 81."""
_FIRST: Final = 81
_EACH: Final = 10
_TIES: Final = ("tie", "tie (inconsistent)")


class _Vote(msgspec.Struct):
    question_id: int
    model_a: str
    model_b: str
    winner: str
    conversation_a: list[Message]
    conversation_b: list[Message]
    turn: int
    judge: str = ""


def _items(votes: Sequence[_Vote], place: Place) -> Iterator[Item]:
    first = votes[0]
    models = tuple(sorted((first.model_a, first.model_b)))
    counts = Counter(_winner(vote) for vote in votes)
    spoken = {first.model_a: first.conversation_a, first.model_b: first.conversation_b}
    own, other = (spoken[model] for model in models)
    majority = (place for place, model in enumerate(models) if 2 * counts[model] > counts.total())
    yield Item(
        id=f"{first.question_id};{first.turn};{';'.join(models)}",
        prompt=_question(own),
        candidates=(_answer(own, first.turn), _answer(other, first.turn)),
        gold=next(majority, "tie"),
        group=category(first.question_id),
        unit=str(first.question_id),
        meta={
            "question_id": first.question_id,
            "turn": first.turn,
            "votes": [counts[models[0]], counts[models[1]], counts["tie"]],
        },
        candidates_by=models,
    )


def _winner(vote: _Vote) -> str:
    if vote.winner in _TIES:
        return "tie"
    if vote.winner not in ("model_a", "model_b"):
        raise BadFieldError("winner", f"{vote.winner!r} is not model_a, model_b or tie")
    return vote.model_a if vote.winner == "model_a" else vote.model_b


def _question(conversation: Sequence[Message]) -> str:
    if not conversation or conversation[0].role != "user":
        raise BadFieldError("conversation_a", "does not begin with the user's question")
    return conversation[0].content


def _answer(conversation: Sequence[Message], turn: int) -> Text:
    shown = conversation[1 : 2 * turn]
    if turn not in (1, 2) or len(shown) != 2 * turn - 1:
        raise BadFieldError("turn", f"{turn}: the conversation has {len(conversation)} messages")
    return shown[0].content if turn == 1 else tuple(shown)


def category(question: int) -> str | None:
    """Return the category of a question; None for a number that MT-Bench does not have."""
    number = (question - _FIRST) // _EACH
    return CATEGORIES[number] if 0 <= number < len(CATEGORIES) else None


MT_BENCH: Final = Benchmark(
    title="Pairs of answers in one and two turns, with human votes.",
    hub="huggingface",
    repository="lmsys/mt_bench_human_judgments",
    revision="8abf6044d02df0dd21be98003f1694f90a0dc01b",
    files={"human": ("data/human-*.parquet",), "gpt4": ("data/gpt4_pair-*.parquet",)},
    default=("human",),
    schema=_Vote,
    key=lambda vote: (vote.question_id, vote.turn, *sorted((vote.model_a, vote.model_b))),
    items=_items,
    task="pairwise",
    rows=3355,
    licence="CC BY 4.0",
    paper="2306.05685",
    note="Rows are votes; gold is what more than half of them say on a question, turn and pair.",
)
