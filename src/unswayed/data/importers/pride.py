"""The PriDe project's probability files: every question in all (or the cyclic) orders of its options.

A line holds one question: `options` and `ideal` in the original order, and one row of `probs` per order.
Which order a row is stands nowhere: as many rows as there are orders are all of them, sorted by index
(of four options 24 rows), as many rows as options are the rotations (row k shows option k first). The
columns are *displayed* labels, so P(candidate) must be taken through the order, and `ideal` is not the letter that
was right in a row. Files of a chat model hold `observed` instead: how often each letter came in a hundred
samples, read here as shares. A flat `probs` is the own order. Without label ids (`noid`) and with shuffled
ones (`shuffle_both`) the rows are no label probabilities of a known order: left out, as are calls that broke.

Source: chujiezheng/LLM-MCQ-Bias, `code/results_*/<shots>s_<model>/<task>_<setting>/<subject>.jsonl`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.data.importers.protocol import (
    Importer,
    ReadRecord,
    Record,
    Source,
    by_candidate,
    decision,
    read_as,
    short_name,
)
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.permutations import Order
from unswayed.model.tasks.listwise import best_candidate

_LETTERS: Final = "ABCDEFGHIJ"
_RUN: Final = re.compile(r"\d+s_(.+)")
"""The folder of a run: the number of examples shown, then the model."""
_UNKNOWN: Final = {
    "noid": "options were shown without labels",
    "shuffle_both": "labels were shuffled, and the order is not recorded",
}
"""Settings that say nothing about an order, by the end of their folder's name."""
_MASS: Final = 1e-3


class _Line(msgspec.Struct):
    type: str
    data: dict[str, Any]


class _Question(msgspec.Struct):
    idx: int | str
    options: list[Any]
    ideal: str | None = None
    probs: list[Any] | None = None
    observed: list[Any] | None = None
    sampled: str | None = None
    losses: Any = None


def orders_of(rows: int, n: int) -> Sequence[Order] | None:
    """Return the orders that so many rows of `n` options stand for; None if it is none of the project's sets."""
    if rows == n:
        return tuple(tuple((start + k) % n for k in range(n)) for start in range(n))
    if rows == 1:
        return (tuple(range(n)),)
    if n <= 6 and rows == math.factorial(n):
        return tuple(permutations(range(n)))
    return None


def _read(line: _Line, source: Source) -> ReadRecord:
    if line.type == "metric":
        return ReadRecord(None, (), left_out="a summary of the file, not a question")
    if line.type != "result":
        return ReadRecord(None, (), left_out=f"a call that failed ({line.type})")
    question = read_as(_Question, line.data)
    n = len(question.options)
    if not 2 <= n <= len(_LETTERS):
        raise BadFieldError("data.options", f"{n} options have no letters")
    labels = tuple(_LETTERS[:n])
    item = Item(
        id=f"{short_name(source.file)}-{question.idx}",
        task=Task.MCQ,
        prompt="",
        candidates=tuple(map(str, question.options)),
        gold=_gold(question.ideal, labels),
    )
    setting = PurePath(source.file).parent.name
    for end, reason in _UNKNOWN.items():
        if setting.endswith(end) or (end == "noid" and question.losses is not None):
            return ReadRecord(item, (), left_out=reason)
    runs = (_RUN.fullmatch(part) for part in PurePath(source.file).parts)
    model = next((run[1] for run in runs if run), None)
    field = "observed" if question.probs is None else "probs"
    rows = question.observed if question.probs is None else question.probs
    if rows is None and question.sampled is not None:
        letter = question.sampled.strip()[:1]
        own = labels.index(letter) if letter in labels else None
        call = decision(item, tuple(range(n)), labels, choice=own, model=model)
        return ReadRecord(item, (call,))
    if not rows:
        raise BadFieldError("data.probs", "is missing, and so is data.observed")
    rows = rows if isinstance(rows[0], list) else [rows]
    orders = orders_of(len(rows), n)
    if orders is None:
        reason = f"{len(rows)} rows for {n} options are neither all orders nor the rotations"
        raise BadFieldError(f"data.{field}", reason)
    calls = []
    for k, (order, row) in enumerate(zip(orders, rows, strict=True)):
        shares = _row(row, n, f"data.{field}[{k}]", counts=field == "observed")
        probs = None if shares is None else by_candidate(order, shares)
        choice = best_candidate(probs or (None,), None)
        calls.append(decision(item, order, labels, choice=choice, probs=probs, model=model))
    return ReadRecord(item, tuple(calls))


def _row(row: object, n: int, field: str, *, counts: bool) -> tuple[float, ...] | None:
    """Shares by position; None where no label was ever given."""
    try:
        values = msgspec.convert(row, list[float])
    except msgspec.ValidationError:
        raise BadFieldError(field, "is not a list of numbers") from None
    total = sum(values)
    if len(values) != n or min(values, default=-1.0) < 0 or not math.isfinite(total):
        raise BadFieldError(field, f"is not {n} shares")
    if total == 0:
        return None
    if not counts and abs(total - 1) > _MASS:
        raise BadFieldError(field, f"sums to {total:.4g}, not to 1")
    return tuple(value / total for value in values)


def _gold(ideal: str | None, labels: tuple[str, ...]) -> int | None:
    if ideal is None:
        return None
    if ideal not in labels:
        raise BadFieldError("data.ideal", f"{ideal!r} is not one of {', '.join(labels)}")
    return labels.index(ideal)


def _detects(record: Record) -> bool:
    data = record.get("data")
    return (
        record.keys() == {"type", "data"}
        and isinstance(data, Mapping)
        and (record["type"] == "metric" or data.keys() >= {"idx", "options"})
    )


PRIDE_FILES: Final = Importer(
    title="PriDe project's result files: label probabilities in all 24 orders, the rotations or one.",
    detects=_detects,
    schema=_Line,
    read=_read,
    answer="data.sampled",
)
