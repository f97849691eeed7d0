"""Benchmarks of pairs that somebody preferred one of: humans by votes, or GPT-4 by scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.model.items import BadFieldError, Gold, Item, Message, Text

# MT-Bench's human judgments: answers of six models to 80 questions of two turns. A row is one vote; a pair of models
# may be shown as (a, b) and as (b, a) and has several votes. Votes on one question, turn and pair make one item:
# candidates in the alphabet's order of the models, gold what more than half of the votes say, a tie where none has
# more than half. A vote on the second turn is about the whole conversation.
# Source: Zheng et al., arXiv 2306.05685; `lmsys/mt_bench_human_judgments`, split `human`.

_CATEGORIES: Final = (
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
_FIRST_QUESTION: Final = 81
_PER_CATEGORY: Final = 10
_TIES: Final = ("tie", "tie (inconsistent)")


class _Vote(msgspec.Struct):
    question_id: int
    model_a: str
    model_b: str
    winner: str
    conversation_a: list[Message]
    conversation_b: list[Message]
    turn: int


def _mt_bench(votes: Sequence[_Vote], place: Place) -> Iterator[Item]:
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
    number = (question - _FIRST_QUESTION) // _PER_CATEGORY
    return _CATEGORIES[number] if 0 <= number < len(_CATEGORIES) else None


MT_BENCH: Final = Benchmark(
    title="Pairs of answers in one and two turns, with human votes.",
    hub="huggingface",
    repository="lmsys/mt_bench_human_judgments",
    revision="8abf6044d02df0dd21be98003f1694f90a0dc01b",
    files={"human": ("data/human-*.parquet",), "gpt4": ("data/gpt4_pair-*.parquet",)},
    default=("human",),
    schema=_Vote,
    key=lambda vote: (vote.question_id, vote.turn, *sorted((vote.model_a, vote.model_b))),
    items=_mt_bench,
    task="pairwise",
    rows=3355,
    licence="CC BY 4.0",
    paper="2306.05685",
    note="Rows are votes; gold is what more than half of them say on a question, turn and pair.",
)

# Chatbot Arena: conversations of users with two models, and the users' votes. A vote that both are bad is a tie,
# which `meta.both_bad` remembers. The group is the language.
# Source: Zheng et al., arXiv 2306.05685; `lmsys/chatbot_arena_conversations`, which is gated.

_BOTH_BAD: Final = "tie (bothbad)"
_VOTES: Final[Mapping[str, Gold]] = {"model_a": 0, "model_b": 1, "tie": "tie", _BOTH_BAD: "tie"}


class _Battle(msgspec.Struct):
    question_id: str
    model_a: str
    model_b: str
    winner: str
    conversation_a: list[Message]
    conversation_b: list[Message]
    turn: int
    language: str | None = None


def _arena(rows: Sequence[_Battle], place: Place) -> Iterator[Item]:
    for row in rows:
        if row.winner not in _VOTES:
            raise BadFieldError("winner", f"{row.winner!r} is not one of {', '.join(_VOTES)}")
        yield Item(
            id=row.question_id,
            prompt=_question(row.conversation_a),
            candidates=(
                _answers(row.conversation_a, "conversation_a"),
                _answers(row.conversation_b, "conversation_b"),
            ),
            gold=_VOTES[row.winner],
            group=row.language,
            meta={"turns": row.turn, "both_bad": row.winner == _BOTH_BAD},
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
    items=_arena,
    task="pairwise",
    rows=33000,
    licence="prompts CC BY 4.0, answers CC BY-NC 4.0",
    paper="2306.05685",
    gated=True,
    note="Some conversations are offensive. One vote each: gold is an opinion.",
)

# Preference-Bench: pairs of answers, each judged by a criterion of its own. The criterion decides who is better, so
# it stands in the question.
# Source: Kim et al., arXiv 2405.01535; `prometheus-eval/Preference-Bench`.

_A_B: Final = ("A", "B")


class _Preference(msgspec.Struct):
    instruction: str = msgspec.field(name="orig_instruction")
    criterion: str = msgspec.field(name="orig_criteria")
    response_a: str = msgspec.field(name="orig_response_A")
    response_b: str = msgspec.field(name="orig_response_B")
    preference: str = msgspec.field(name="orig_preference")
    reference: str | None = msgspec.field(name="orig_reference_answer", default=None)
    score_a: str | int | None = msgspec.field(name="orig_score_A", default=None)
    score_b: str | int | None = msgspec.field(name="orig_score_B", default=None)


def _preference_bench(rows: Sequence[_Preference], place: Place) -> Iterator[Item]:
    for number, row in enumerate(rows, start=place.number):
        if row.preference not in _A_B:
            raise BadFieldError("orig_preference", f"{row.preference!r} is not A or B")
        yield Item(
            id=f"preference-bench-{number}",
            prompt=f"{row.instruction}\n\nWhat counts: {row.criterion}",
            candidates=(row.response_a, row.response_b),
            gold=_A_B.index(row.preference),
            reference=row.reference or None,
            group=f"{row.score_a} against {row.score_b}" if row.score_a and row.score_b else None,
            meta={"criterion": row.criterion},
        )


PREFERENCE_BENCH: Final = Benchmark(
    title="Pairs of answers, each judged by a criterion of its own.",
    hub="huggingface",
    repository="prometheus-eval/Preference-Bench",
    revision="c8e74045f2137ccbf894ba8301d7b3b949131d5a",
    files={"train": ("data/train-*.parquet",)},
    schema=_Preference,
    items=_preference_bench,
    task="pairwise",
    rows=1998,
    licence="not stated on the hub",
    paper="2405.01535",
    note="Gold comes from scores by GPT-4, not by humans. The only split is called train.",
)
