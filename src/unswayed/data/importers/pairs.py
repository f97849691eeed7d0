"""Formats whose record is a pair of answers and what was said of it; why each is read so stands above it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.base.digests import digest
from unswayed.data.importers.protocol import (
    UNKNOWN,
    Part,
    Source,
    by_candidate,
    candidate_at,
    has,
    importer,
    named,
    pair_decision,
    read_as,
    short_name,
)
from unswayed.model.decisions import Choice
from unswayed.model.items import BadFieldError, Item, Message, Text
from unswayed.model.presentation import X0, X2

_A_B: Final = ("A", "B")

# JudgeBench: two judgments, the first of (response_A, response_B), the second of the swapped pair. Each `decision` is in
# *displayed* letters, so the second must be read the other way round; a judgment that is null is a call that failed. The
# group is the benchmark's bucket, told by the beginning of `source`; the source itself goes into `meta`.
# Source: ScalerLab/JudgeBench, `outputs/*.jsonl`.

_BUCKETS: Final = {
    "mmlu-pro": "Knowledge",
    "livebench-reasoning": "Reasoning",
    "livebench-math": "Math",
    "livecodebench": "Coding",
}
_BY_POSITION: Final[dict[str | None, Choice]] = {"A>B": 0, "B>A": 1, "A=B": "tie", None: None}
_DISPLAYED: Final = "A>B, B>A, A=B or null"


class _Recorded(msgspec.Struct):
    response: str | None = None
    scores: list[float] | None = None  # of a reward model, by position
    judge_model: Any = None


class _Judgment(msgspec.Struct):
    decision: str | None = None
    judgment: Any = None


class _JudgeBench(msgspec.Struct):
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


def _judgebench(row: _JudgeBench, source: Source) -> Iterator[Part]:
    if len(row.judgments) > 2:
        raise BadFieldError("judgments", f"expected 1 or 2, got {len(row.judgments)}")
    item = Item(
        id=row.pair_id,
        prompt=row.question,
        candidates=(row.response_A, row.response_B),
        gold=named(_BY_POSITION, row.label, "label", _DISPLAYED),
        group=next(
            (name for start, name in _BUCKETS.items() if row.source.startswith(start)), None
        ),
        meta={name: getattr(row, name) for name in ("source", "original_id", "response_model")},
    )
    yield item
    for place, (shown, judgment) in enumerate(zip((X0, X2), row.judgments, strict=False)):
        if judgment is None:
            yield "calls that failed (null), left out"
            continue
        given = judgment.judgment
        recorded = read_as(_Recorded, given) if isinstance(given, dict) else _Recorded()
        scores = recorded.scores or ()
        names = [str(name) for name in (row.judge_name, recorded.judge_model) if name]
        field = f"judgments[{place}].decision"
        yield pair_decision(
            item,
            shown,
            _A_B,
            candidate_at(shown, named(_BY_POSITION, judgment.decision, field, _DISPLAYED)),
            scores=by_candidate(shown.order, scores) if len(scores) == 2 else None,
            text=recorded.response or None,
            model="/".join(names) or None,
        )


JUDGEBENCH: Final = importer(
    "JudgeBench `outputs/*.jsonl`: pairs judged in both orders, four buckets as groups.",
    _JudgeBench,
    _judgebench,
    detects=has("pair_id", "response_A", "response_B", "judgments"),
    answer="judgments",
)

# FastChat (`gpt-4_pair.jsonl`): game 1 shows model_1 first, game 2 model_2. The winners are already by model ("model_1" in
# both games), so they must not be read as letters; "tie" is a draw and "error" an answer that named no winner. A judgment
# `$ERROR$` is a call that failed, which is no decision. Records whose two games are one separate rating of each model
# (`m1_score`) keep the scores. Questions and answers are in other files, so items have no text, and there is no gold.
# Source: lm-sys/FastChat, `fastchat/llm_judge`, `model_judgment/*_pair.jsonl`.

_MODELS: Final[dict[str, Choice]] = {"model_1": 0, "model_2": 1, "tie": "tie", "error": None}


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


def _of_models(row: _Match | _Table, *models: str, **more: Any) -> Item:
    return Item(
        id=f"{row.question_id};{row.turn or 1};{models[0]};{models[1]}",
        meta={"question_id": row.question_id, "turn": row.turn},
        unit=str(row.question_id),
        candidates_by=models,
        **more,
    )


def _fastchat(row: _Match, source: Source) -> Iterator[Part]:
    item = _of_models(
        row, row.model_1, row.model_2, prompt="", candidates=("", ""), group=row.category
    )
    yield item
    scores = None
    if row.m1_score is not None and row.m2_score is not None:
        scores = (row.m1_score, row.m2_score)
    model = "/".join(row.judge) if isinstance(row.judge, list) else row.judge
    games = ((X0, row.g1_winner, row.g1_judgment), (X2, row.g2_winner, row.g2_judgment))
    for number, (shown, winner, text) in enumerate(games, start=1):
        if text == "$ERROR$":
            yield "calls that failed ($ERROR$), left out"
            continue
        choice = named(_MODELS, winner, f"g{number}_winner", "model_1, model_2, tie or error")
        yield pair_decision(item, shown, _A_B, choice, scores=scores, text=text, model=model)


FASTCHAT: Final = importer(
    "FastChat `model_judgment/*_pair.jsonl`: models judged in pairs, both orders.",
    _Match,
    _fastchat,
    answer="g1_winner",
)

# MT-Bench judgments as a table: a row of GPT-4 is no call but what two calls in both orders came to: a model wins only if
# it won both, "tie" if both said so, and "tie (inconsistent)" if the orders disagreed. So the order of a call is not
# recorded, and what the two said where they disagree is not either: a row becomes one decision in the table's own order,
# counted as `order not recorded`, and its disagreements are ties, counted too. A file of single calls is FastChat's
# `gpt-4_pair.jsonl` (above). Votes of humans have the judge's name. A pair may stand there as (a, b) and as (b, a): these
# are two items. There is no gold.
# Source: lmsys/mt_bench_human_judgments (Hugging Face), splits `gpt4_pair` and `human`.

_INCONSISTENT: Final = "tie (inconsistent)"
_WINNERS: Final[dict[str, Choice]] = {
    "model_a": 0,
    "model_b": 1,
    "tie": "tie",
    _INCONSISTENT: "tie",
    "error": None,
}


class _Table(msgspec.Struct):
    question_id: int | str
    model_a: str
    model_b: str
    winner: str
    judge: Any = None
    turn: int | str | None = None
    conversation_a: Any = None
    conversation_b: Any = None


def _table(row: _Table, source: Source) -> Iterator[Part]:
    choice = named(_WINNERS, row.winner, "winner", ", ".join(_WINNERS))
    prompt, texts = _texts(row)
    item = _of_models(row, row.model_a, row.model_b, prompt=prompt, candidates=texts)
    yield item
    judge = "/".join(map(str, row.judge)) if isinstance(row.judge, list) else row.judge
    yield pair_decision(item, X0, _A_B, choice, model=None if judge is None else str(judge))
    yield f"order not recorded (verdicts over both orders): {UNKNOWN}"
    if row.winner == _INCONSISTENT:
        yield "orders that disagreed, recorded as a tie"


def _texts(row: _Table) -> tuple[str, tuple[Text, ...]]:
    """Return the first question, and each model's turns after it; empty where a table leaves them out."""
    try:
        talks = msgspec.convert((row.conversation_a, row.conversation_b), list[list[Message]])
    except msgspec.ValidationError:
        return "", ("", "")
    if not all(talks) or talks[0][0].role != "user":
        return "", ("", "")
    answers = [tuple(talk[1:]) for talk in talks]
    texts = tuple(turns[0].content if len(turns) == 1 else turns for turns in answers)
    return talks[0][0].content, texts


FASTCHAT_TABLE: Final = importer(
    "MT-Bench table `gpt4_pair` or `human`: one verdict per pair and judge, order not recorded.",
    _Table,
    _table,
    answer="winner",
)

# LLMBar (`result.json`): the `winner` is already by candidate ("1" is output_1 in both orders), so a displayed letter must
# be derived from it and never the other way round; any other string is an answer that could not be read. Evaluators that
# ask more than once (to synthesise, or for metrics and a reference answer first, kept as `[text, finish reason]`) list
# several results, of which the last is the verdict. Evaluators that rate each output by itself (`Rating…`) record two
# scores. They also record one win for each order if the scores are equal (a tie) or if one could not be read (no answer);
# neither is a preference for a position. The files have no ids: an item is named by a hash of its texts, so runs of several
# evaluators join. The prompts call the answers Output (a) and Output (b).
# Source: princeton-nlp/LLMBar, `Dataset/*/*/evaluators/*/*/result.json`.


class _Answer(msgspec.Struct):
    winner: str | int | None = None
    completion: Any = None


class _Result(msgspec.Struct):
    own: _Answer | None = msgspec.field(name="swap = False", default=None)
    swapped: _Answer | None = msgspec.field(name="swap = True", default=None)
    score_1: Any = None
    score_2: Any = None


class _LlmBar(msgspec.Struct):
    input: str
    output_1: str
    output_2: str
    results: list[Any]
    label: int | None = None


def _llmbar(row: _LlmBar, source: Source) -> Iterator[Part]:
    if not row.results:
        raise BadFieldError("results", "is empty")
    gold = named({1: 0, 2: 1, None: None}, row.label, "label", "1, 2 or null")
    if not isinstance(row.results[-1], dict):
        raise BadFieldError("results", "the last entry is not a verdict")
    result = read_as(_Result, row.results[-1])
    subset, model = _place(source.file)
    item = Item(
        id=f"llmbar-{digest(row.input, row.output_1, row.output_2).hex()[:16]}",
        prompt=row.input,
        candidates=(row.output_1, row.output_2),
        gold=gold,
        group=subset,
    )
    yield item
    calls = [(shown, call) for shown, call in ((X0, result.own), (X2, result.swapped)) if call]
    winners = [str(call.winner).strip() for _, call in calls]
    ratings = [_completion(score) for score in (result.score_1, result.score_2)]
    scores = _scores(*(text for text, _ in ratings))
    for (shown, call), winner in zip(calls, winners, strict=True):
        choice: Choice = {"1": 0, "2": 1}.get(winner)
        if scores is not None:
            choice = "tie" if scores[0] == scores[1] else int(scores[1] > scores[0])
        elif result.score_1 is not None and set(winners) == {"1", "2"}:
            choice = None
        text, reason = _completion(call.completion)
        reasons = [given for given in (reason, *(reason for _, reason in ratings)) if given]
        ended = min(reasons, key="stop".__eq__, default=None)  # one other than `stop` first
        yield pair_decision(
            item,
            shown,
            ("a", "b"),
            choice,
            scores=scores,
            text=text,
            model=model,
            finish_reason=ended,
        )


def _place(file: str) -> tuple[str | None, str]:
    parts = PurePath(file).parts
    if "evaluators" not in parts:
        return None, short_name(file)
    at = parts.index("evaluators")
    start = max((k for k in range(at) if parts[k] in ("LLMBar", "Processed")), default=at - 2)
    subset = "/".join(parts[start + 1 : at]) or None
    return subset, "/".join(parts[at + 1 : -1]) or short_name(file)


def _scores(*ratings: str | None) -> tuple[float, float] | None:
    """Return the two ratings, where both are bare numbers."""
    try:
        first, second = (float(str(text)) for text in ratings)
    except ValueError:
        return None
    return (first, second) if math.isfinite(first) and math.isfinite(second) else None


def _completion(completion: object) -> tuple[str | None, str | None]:
    parts = completion if isinstance(completion, list) else [completion]
    texts = [part if isinstance(part, str) and part else None for part in (*parts, None, None)]
    return texts[0], texts[1]


LLMBAR: Final = importer(
    "LLMBar `result.json`: pairs judged in both orders by one evaluator.",
    _LlmBar,
    _llmbar,
    answer="results",
)
