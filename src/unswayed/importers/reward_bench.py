"""RewardBench per-prompt results (`eval-set-scores/<org>/<model>.json`): columns of one object.

The chosen answer is always the first of a pair there, so "the first is right" would be a habit and no
judgment: candidates are put into an order drawn by a hash of the item's name. Which answer a generative
judge was shown first was drawn too and is not recorded; a reward model scores each text alone. So figures by
position mean nothing, and the import says so. `results` is 1 (chosen), 0 (rejected) or 0.5, which is a tie of
a reward model and an answer that could not be read of a judge; a reward model's own equal scores count as
0 there and are ties here. The second version has `scores` of four and more answers per prompt, the first
`num_correct` of which are right.

Source: allenai/reward-bench, `scripts/run_{rm,dpo,generative,v2}.py`; results in allenai/reward-bench-results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.digests import digest
from unswayed.importers.protocol import (
    Entry,
    Importer,
    Judged,
    Record,
    Source,
    decoded,
    pair_decision,
    parts_of,
)
from unswayed.items import BadFieldError, Item, Message, Task, Text
from unswayed.presentation import X0

LABELS: Final = ("A", "B")
ORDER_UNKNOWN: Final = "order not recorded (none was shown, or it was drawn): figures by position mean nothing for these decisions"

_COLUMNS: Final = (
    "results",
    "id",
    "subset",
    "prompt",
    "text_chosen",
    "text_rejected",
    "scores_chosen",
    "scores_rejected",
    "scores",
    "num_correct",
)
_FIELDS: Final = ("model", "model_type")


class _Row(msgspec.Struct):
    results: float | None = None
    id: int | str | None = None
    subset: str | None = None
    prompt: Any = None
    text_chosen: Any = None
    text_rejected: Any = None
    scores_chosen: Any = None
    scores_rejected: Any = None
    scores: Any = None
    num_correct: int | None = None
    model: str | list[str] | None = None
    model_type: str | None = None


def _unfold(record: Record, source: Source) -> Iterator[Entry]:
    """The rows of the columns of an object; a record that is a row already stays."""
    if not isinstance(record.get("results"), list | msgspec.Raw):
        yield source, record
        return
    columns: dict[str, Sequence[object]] = {}
    for name in _COLUMNS:
        column = record.get(name)
        if isinstance(column, list | msgspec.Raw):
            columns[name] = parts_of(column, name)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise BadFieldError("results", f"columns differ in length: {given}")
    fixed = {name: record[name] for name in _FIELDS if name in record}
    for number in range(lengths["results"]):
        place = Source(source.file, number + 1)
        try:
            row = {name: decoded(column[number], name) for name, column in columns.items()}
        except BadFieldError as error:
            yield place, error
        else:
            yield place, {**fixed, **row}


def _read(row: _Row, source: Source) -> Judged:
    """One prompt: a pair, or the answers of the second version."""
    name = f"{row.subset or 'all'}/{source.number if row.id is None else row.id}"
    model = "+".join(row.model) if isinstance(row.model, list) else row.model
    scores = _numbers(row.scores)
    if scores is not None and row.num_correct is not None:
        return _several(row, name, scores, row.num_correct, model)
    chosen = digest(name)[0] % 2
    texts = (_text(row.text_chosen), _text(row.text_rejected))
    item = Item(
        id=name,
        prompt=_text(row.prompt),
        candidates=texts if chosen == 0 else texts[::-1],
        gold=chosen,
        group=row.subset,
        meta={"chosen_at": chosen},
    )
    pair = (_number(row.scores_chosen), _number(row.scores_rejected))
    by_candidate = None
    if pair[0] is not None and pair[1] is not None:
        by_candidate = (pair[0], pair[1]) if chosen == 0 else (pair[1], pair[0])
    if row.results is None and by_candidate is None:
        return Judged(item, (), left_out="no result was recorded")
    choice = _choice(row, chosen, by_candidate)
    decision = pair_decision(item, X0, LABELS, choice, scores=by_candidate, model=model)
    return Judged(item, (decision,), remarks=(ORDER_UNKNOWN,))


def _choice(row: _Row, chosen: int, scores: tuple[float, float] | None) -> Choice:
    if scores is not None and scores[0] == scores[1]:
        return "tie"
    if row.results is None:
        assert scores is not None
        return int(scores[1] > scores[0])
    if row.results not in (0, 0.5, 1):
        raise BadFieldError("results", f"{row.results} is not 0, 0.5 or 1")
    if row.results == 0.5:
        return None if (row.model_type or "").startswith("Generative") else "tie"
    return chosen if row.results == 1 else 1 - chosen


def _several(row: _Row, name: str, scores: list[float], right: int, model: str | None) -> Judged:
    """A prompt of the second version: every answer has a score, the first ones are right."""
    n = len(scores)
    if not 1 <= right <= n:
        raise BadFieldError("num_correct", f"{right} of {n} answers")
    drawn = sorted(range(n), key=lambda k: digest(f"{name}/{k}"))
    gold = tuple(place for place, answer in enumerate(drawn) if answer < right)
    item = Item(
        id=name,
        task=Task.LISTWISE,
        prompt=_text(row.prompt),
        candidates=("",) * n,
        gold=gold[0] if len(gold) == 1 else gold,
        group=row.subset,
        meta={"answers": drawn},
    )
    by_candidate = tuple(scores[answer] for answer in drawn)
    best = [place for place, score in enumerate(by_candidate) if score == max(by_candidate)]
    labels = tuple(str(place + 1) for place in range(n))
    decision = Decision(
        item_id=name,
        order=tuple(range(n)),
        labels=labels,
        choice=best[0] if len(best) == 1 else "tie",
        scores=by_candidate,
        model=model,
    )
    return Judged(item, (decision,), remarks=(ORDER_UNKNOWN,))


def _number(value: object) -> float | None:
    """A score, bare or alone in a list; None where there is none."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(inner, bool) or not isinstance(inner, int | float):
        return None
    return float(inner) if abs(inner) <= sys.float_info.max else None


def _numbers(value: object) -> list[float] | None:
    numbers = [_number(part) for part in value] if isinstance(value, list) else []
    scores = [number for number in numbers if number is not None]
    return scores if len(scores) == len(numbers) and len(scores) > 1 else None


def _text(value: object) -> Text:
    """A text, or the messages of a conversation."""
    if isinstance(value, list):
        try:
            turns = msgspec.convert(value, list[Message])
        except msgspec.ValidationError:
            return ""
        return tuple(turns)
    return value if isinstance(value, str) else ""


def _detects(record: Record) -> bool:
    paired = {"text_chosen", "text_rejected"} <= record.keys()
    scored = {"scores", "num_correct"} <= record.keys()
    return "results" in record and "subset" in record and (paired or scored)


REWARD_BENCH: Final = Importer(
    title="RewardBench per-prompt results: the chosen answer is put at a drawn place, no order recorded.",
    detects=_detects,
    schema=_Row,
    read=_read,
    unfold=_unfold,
)
