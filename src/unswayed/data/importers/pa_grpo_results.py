"""Results of PA-GRPO's evaluation: one JSON object with `results`, one entry per presentation.

`extracted_answer` is the displayed letter and must be taken through the entry's `permutation` (0 and 1 of
pairs, the letters of the original options in displayed order of questions). What `golden_answer` is
depends on the data: displayed too in the test sets, so it moves with the order; the letter of the original option in
files made of the multiple-choice training set. The entries of an item tell which: mapped back, displayed
letters agree; where only the bare letters do they are the original ones. `original_answer_idx` outranks both. An
answer that was not read counts as different from every letter in the project's own consistency of pairs, so a pair of
which one was not read is "consistent" there. Items that occur several times (several pairs of one question) are numbered in order of appearance.

Source: ECNU-Text-Computing/PA-GRPO, `evaluation/evaluate_models.py`, `eval_results/*/*_results.json`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.data.importers.pa_grpo import PAIR, QUESTION, shown_texts
from unswayed.data.importers.protocol import (
    Entry,
    Importer,
    ReadRecord,
    Record,
    Source,
    object_of,
    parts_of,
)
from unswayed.model.decisions import Decision
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.permutations import Order, invert

NO_PROBABILITIES: Final = "answer_probability that lacks a letter or is no probability, left out"
FAILED: Final = "a call that failed (error)"

_LETTERS: Final = "ABCDEFGHIJ"
_ORIGINAL: Final = "unswayed_original"
_TURN: Final = "unswayed_turn"
_NAMES: Final = ("original_question_id", "original_index", "pair_id", "question_id", "id", "index")
"""Where the question's name stands, the first that is there."""
_SUFFIX: Final = "_perm_"


class _Result(msgspec.Struct):
    extra_info: dict[str, Any] = {}
    extracted_answer: str | None = None
    golden_answer: str | None = None
    model_response: str | None = None
    user_question: str = ""
    data_source: str = ""
    row_index: int | None = None
    answer_probability: Any = None
    error: str | None = None
    original: bool = msgspec.field(name=_ORIGINAL, default=False)
    turn: int = msgspec.field(name=_TURN, default=0)


def _read(row: _Result, source: Source) -> ReadRecord:
    if row.error is not None:
        return ReadRecord(None, (), left_out=FAILED)
    order = _order(row.extra_info)
    if order is None:
        raise BadFieldError("extra_info.permutation", "is missing or not an order of the options")
    n = len(order)
    labels = tuple(_LETTERS[:n])
    name = _name(row.extra_info)
    if name is None:
        raise BadFieldError("extra_info", f"has none of {', '.join(_NAMES)}")
    texts = shown_texts(row.user_question, PAIR if n == 2 else QUESTION) or ("",) * (n + 1)
    by_candidate = dict(zip(order, texts[1:], strict=False))
    numbered = f"#{row.turn}" if row.turn else ""
    item = Item(
        id=f"{row.data_source or 'item'}/{name}{numbered}",
        task=Task.PAIRWISE if n == 2 else Task.MCQ,
        prompt=texts[0],
        candidates=tuple(by_candidate[c].rstrip() for c in range(n)),
        gold=_gold(row, order),
        group=row.data_source or None,
    )
    answer = (row.extracted_answer or "").strip().upper()
    decision = Decision(
        item_id=item.id,
        order=order,
        labels=labels,
        choice=order[labels.index(answer)] if answer in labels else None,
        probs=_probs(row.answer_probability, order),
        text=row.model_response,
        model=PurePath(source.file).parent.name or None,
    )
    is_unread = bool(row.answer_probability) and decision.probs is None
    return ReadRecord(item, (decision,), remarks=(NO_PROBABILITIES,) if is_unread else ())


def _order(extra: Mapping[str, Any]) -> Order | None:
    letters = str(extra.get("permutation"))
    if letters in ("0", "1"):
        return (0, 1) if letters == "0" else (1, 0)
    if len(letters) > 1 and sorted(letters) == list(_LETTERS[: len(letters)]):
        return tuple(map(_LETTERS.index, letters))
    return None


def _name(extra: Mapping[str, Any]) -> str | None:
    names = (extra[name] for name in _NAMES if extra.get(name) is not None)
    first = next(names, None)
    return None if first is None else str(first).partition(_SUFFIX)[0]


def _gold(row: _Result, order: Order) -> int | None:
    index = row.extra_info.get("original_answer_idx")
    if isinstance(index, int) and 0 <= index < len(order):
        return index
    if not row.golden_answer:
        return None
    place = _LETTERS.find(row.golden_answer) if len(row.golden_answer) == 1 else -1
    if not 0 <= place < len(order):
        raise BadFieldError(
            "golden_answer", f"{row.golden_answer!r} is not a letter of {len(order)}"
        )
    return place if row.original else order[place]


def _probs(given: object, order: Order) -> tuple[float, ...] | None:
    """Probabilities by candidate; None where they are not given for every letter."""
    try:
        by_letter = msgspec.convert(given, dict[str, float])
        by_place = [by_letter[letter] for letter in _LETTERS[: len(order)]]
    except (msgspec.ValidationError, KeyError):
        return None
    total = sum(by_place)
    if min(by_place) < 0 or not 0 < total < 1 + 1e-3:
        return None
    return tuple(by_place[place] / total for place in invert(order))


def _unfold(record: Record, source: Source) -> Iterator[Entry]:
    """Yield the entries of `results`; an entry by itself stays."""
    results = record.get("results")
    if results is None:
        yield source, record
        return
    for number, part in enumerate(parts_of(results, "results"), start=1):
        yield Source(source.file, number), object_of(part, "results")


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """All entries, each with what a file's letters mean and which occurrence of its question it is."""
    for _, entries in files:
        part = list(entries)
        original = _golds_are_original([r for _, r in part if not isinstance(r, BadFieldError)])
        seen: Counter[tuple[str, str | None, Order | None]] = Counter()
        for source, record in part:
            if isinstance(record, BadFieldError):
                yield source, record
                continue
            extra = _extra(record)
            key = (str(record.get("data_source")), _name(extra), _order(extra))
            yield source, {**record, _ORIGINAL: original, _TURN: seen[key]}
            seen[key] += 1


def _golds_are_original(records: Sequence[Record]) -> bool:
    """Return True if gold letters name original options: they agree bare, and not when mapped back."""
    bare: defaultdict[str, set[str]] = defaultdict(set)
    mapped: defaultdict[str, set[int]] = defaultdict(set)
    for record in records:
        extra = _extra(record)
        name, order, letter = _name(extra), _order(extra), record.get("golden_answer")
        if name is None or order is None or not isinstance(letter, str) or len(letter) != 1:
            continue
        place = _LETTERS.find(letter)
        if 0 <= place < len(order):
            bare[name].add(letter)
            mapped[name].add(order[place])
    contradicting = [name for name, golds in mapped.items() if len(golds) > 1]
    return bool(contradicting) and all(len(letters) == 1 for letters in bare.values())


def _extra(record: Record) -> Mapping[str, Any]:
    extra = record.get("extra_info")
    return extra if isinstance(extra, Mapping) else {}


def _detects(record: Record) -> bool:
    if "results" in record and "metadata" in record:
        metadata = record["metadata"]
        return isinstance(metadata, Mapping) and metadata.keys() >= {"dataset", "num_options"}
    return record.keys() >= {"extracted_answer", "golden_answer", "extra_info"}


PA_GRPO_RESULTS: Final = Importer(
    title="PA-GRPO evaluation results: one answer per presentation, letters taken through its order.",
    detects=_detects,
    schema=_Result,
    read=_read,
    join=_join,
    unfold=_unfold,
    answer="extracted_answer",
)
