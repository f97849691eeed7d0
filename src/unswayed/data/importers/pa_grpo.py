"""PA-GRPO's released files: rows to train on, and results of its evaluation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.data.importers.protocol import (
    Entry,
    Importer,
    ReadRecord,
    Record,
    Source,
    by_candidate,
    changed,
    elements,
    readable,
)
from unswayed.model.decisions import Decision
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.permutations import Order

# Training rows released with PA-GRPO: one JSON line per presentation, items with gold out. Two files with two
# conventions. In the pairwise file (Chatbot Arena) `ground_truth` is the letter that is *displayed* beside the better
# answer, so it flips with the order; in the multiple-choice file (MMLU) it is the letter of the *original* option in
# all five rows. Every row is put back into its item's original order, so the rows of an item must agree, and the item
# is then shown through this package's own prompts. Recorded answers are not read: only items on which some model was
# inconsistent were kept, and the multiple-choice file repeats one answer in all five rows.
# Source: ECNU-Text-Computing/PA-GRPO, `dataset/train/*.parquet`, its rows written as JSON Lines.

_TO_J: Final = "ABCDEFGHIJ"
_LETTERS: Final = _TO_J[:4]
_FIELDS: Final = frozenset(("data_source", "prompt", "reward_model", "extra_info"))
_PAIR: Final = re.compile(
    r"###Query: (?:\\n|\n)(.*)(?:\\n|\n){2}###A Answer: (?:\\n|\n)(.*)(?:\\n|\n){2}"
    r"###B Answer:(?:\\n|\n)(.*)",
    re.DOTALL,
)
_QUESTION: Final = re.compile(
    r"(.*)\n\nOptions:\nA\. (.*?)\nB\. (.*?)\nC\. (.*?)\nD\. (.*)", re.DOTALL
)
_HEADINGS: Final = ("###A Answer:", "###B Answer:", "\nB. ")
_MOST_HEADINGS: Final = 100
"""Above it the patterns, which look for the last of each, would take seconds for one row."""


class _Turn(msgspec.Struct):
    content: str


class _Truth(msgspec.Struct):
    ground_truth: str


class _Shown(msgspec.Struct):
    permutation: int | str
    original_question_id: str | None = None
    original_index: int | None = None


class _Row(msgspec.Struct):
    data_source: str
    prompt: list[_Turn]
    reward_model: _Truth
    extra_info: _Shown


def _is_training_row(record: Record) -> bool:
    """Rows of verl have these fields too; only permuted ones say their permutation."""
    extra = record.get("extra_info")
    return record.keys() >= _FIELDS and isinstance(extra, Mapping) and "permutation" in extra


def _training_row(row: _Row, source: Source) -> ReadRecord:
    extra = row.extra_info
    if extra.original_question_id is not None:
        name, task, layout = f"arena/{extra.original_question_id}", Task.PAIRWISE, _PAIR
        if extra.permutation not in (0, 1):
            raise BadFieldError("extra_info.permutation", f"{extra.permutation!r} is not 0 or 1")
        order: Order = (0, 1) if extra.permutation == 0 else (1, 0)
        gold = order[_letter(row, 2)]
    elif extra.original_index is not None:
        name, task, layout = f"{row.data_source}/{extra.original_index}", Task.MCQ, _QUESTION
        shown = str(extra.permutation)
        if sorted(shown) != list(_LETTERS):
            reason = f"{shown!r} is not an order of {_LETTERS}"
            raise BadFieldError("extra_info.permutation", reason)
        order = tuple(map(_LETTERS.index, shown))
        gold = _letter(row, len(_LETTERS))
    else:
        raise BadFieldError("extra_info", "has neither original_question_id nor original_index")
    texts = _shown_texts(row.prompt[-1].content if row.prompt else "", layout)
    if texts is None:
        raise BadFieldError("prompt", "does not show a question with its candidates")
    prompt, *by_position = texts
    item = Item(
        id=name,
        task=task,
        prompt=prompt,
        candidates=tuple(map(str.rstrip, by_candidate(order, by_position))),
        gold=gold,
        meta={"source": row.data_source},
    )
    return ReadRecord(item, ())


def _shown_texts(prompt: str, layout: re.Pattern[str]) -> tuple[str, ...] | None:
    """Return the question and the candidates by position that a prompt shows; None if it does not."""
    if max(map(prompt.count, _HEADINGS)) > _MOST_HEADINGS:
        raise BadFieldError("prompt", f"has a candidate's heading more than {_MOST_HEADINGS} times")
    match = layout.fullmatch(prompt)
    return match.groups() if match else None


def _letter(row: _Row, n: int) -> int:
    truth = row.reward_model.ground_truth
    if len(truth) != 1 or truth not in _LETTERS[:n]:
        raise BadFieldError(
            "reward_model.ground_truth", f"{truth!r} is not one of {', '.join(_LETTERS[:n])}"
        )
    return _LETTERS.index(truth)


PA_GRPO: Final = Importer(
    title="PA-GRPO's released training rows: items with gold, to train on; no recorded calls.",
    detects=_is_training_row,
    schema=_Row,
    read=_training_row,
)

# Results of PA-GRPO's evaluation: one JSON object with `results`, one entry per presentation. `extracted_answer` is the
# displayed letter and must be taken through the entry's `permutation` (0 and 1 of pairs, the letters of the original
# options in displayed order of questions). What `golden_answer` is depends on the data: displayed too in the test sets,
# so it moves with the order; the letter of the original option in files made of the multiple-choice training set. The
# entries of an item tell which: mapped back, displayed letters agree; where only the bare letters do they are the
# original ones. `original_answer_idx` outranks both. An answer that was not read counts as different from every letter
# in the project's own consistency of pairs, so a pair of which one was not read is "consistent" there. Items that occur
# several times (several pairs of one question) are numbered in order of appearance.
# Source: ECNU-Text-Computing/PA-GRPO, `evaluation/evaluate_models.py`, `eval_results/*/*_results.json`.

_NO_PROBABILITIES: Final = "answer_probability without a letter or not a probability, left out"
_FAILED: Final = "a call that failed (error)"

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
    answer_probability: Any = None
    error: str | None = None
    original: bool = msgspec.field(name=_ORIGINAL, default=False)
    turn: int = msgspec.field(name=_TURN, default=0)


def _result(row: _Result, source: Source) -> ReadRecord:
    if row.error is not None:
        return ReadRecord(None, (), left_out=_FAILED)
    order = _order(row.extra_info)
    if order is None:
        raise BadFieldError("extra_info.permutation", "is missing or not an order of the options")
    n = len(order)
    labels = tuple(_TO_J[:n])
    name = _name(row.extra_info)
    if name is None:
        raise BadFieldError("extra_info", f"has none of {', '.join(_NAMES)}")
    texts = _shown_texts(row.user_question, _PAIR if n == 2 else _QUESTION) or ()
    prompt, *by_position = texts if len(texts) > n else ("",) * (n + 1)
    numbered = f"#{row.turn}" if row.turn else ""
    item = Item(
        id=f"{row.data_source or 'item'}/{name}{numbered}",
        task=Task.PAIRWISE if n == 2 else Task.MCQ,
        prompt=prompt,
        candidates=tuple(map(str.rstrip, by_candidate(order, by_position))),
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
    return ReadRecord(item, (decision,), remarks=(_NO_PROBABILITIES,) if is_unread else ())


def _order(extra: Mapping[str, Any]) -> Order | None:
    letters = str(extra.get("permutation"))
    if letters in ("0", "1"):
        return (0, 1) if letters == "0" else (1, 0)
    if len(letters) > 1 and sorted(letters) == list(_TO_J[: len(letters)]):
        return tuple(map(_TO_J.index, letters))
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
    place = _TO_J.find(row.golden_answer) if len(row.golden_answer) == 1 else -1
    if not 0 <= place < len(order):
        raise BadFieldError(
            "golden_answer", f"{row.golden_answer!r} is not a letter of {len(order)}"
        )
    return place if row.original else order[place]


def _probs(given: object, order: Order) -> tuple[float, ...] | None:
    """Probabilities by candidate; None where they are not given for every letter."""
    try:
        by_letter = msgspec.convert(given, dict[str, float])
        by_place = [by_letter[letter] for letter in _TO_J[: len(order)]]
    except (msgspec.ValidationError, KeyError):
        return None
    total = sum(by_place)
    if min(by_place) < 0 or not 0 < total < 1 + 1e-3:
        return None
    return by_candidate(order, [share / total for share in by_place])


def _entries(record: Record, source: Source) -> Iterator[Entry]:
    """Return the entries of `results`; an entry by itself stays."""
    if record.get("results") is None:
        return iter([(source, record)])
    return elements(record, "results", source)


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    return chain.from_iterable(_of_file(list(entries)) for _, entries in files)


def _of_file(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield entries with what the letters of their file mean and which occurrence of its question each is."""
    original = _golds_are_original(readable(entries))
    seen: defaultdict[tuple[str, str | None, Order | None], count[int]] = defaultdict(count)

    def marked(record: Record) -> Record:
        extra = _extra(record)
        turn = next(seen[str(record.get("data_source")), _name(extra), _order(extra)])
        return {**record, _ORIGINAL: original, _TURN: turn}

    return changed(entries, marked)


def _golds_are_original(records: Iterable[Record]) -> bool:
    """Return True if gold letters name original options: they agree bare, and not when mapped back."""
    bare: defaultdict[str, set[str]] = defaultdict(set)
    mapped: defaultdict[str, set[int]] = defaultdict(set)
    for record in records:
        extra = _extra(record)
        name, order, letter = _name(extra), _order(extra), record.get("golden_answer")
        if name is None or order is None or not isinstance(letter, str) or len(letter) != 1:
            continue
        place = _TO_J.find(letter)
        if 0 <= place < len(order):
            bare[name].add(letter)
            mapped[name].add(order[place])
    contradicting = [name for name, golds in mapped.items() if len(golds) > 1]
    return bool(contradicting) and all(len(letters) == 1 for letters in bare.values())


def _extra(record: Record) -> Mapping[str, Any]:
    extra = record.get("extra_info")
    return extra if isinstance(extra, Mapping) else {}


def _are_results(record: Record) -> bool:
    if "results" in record and "metadata" in record:
        metadata = record["metadata"]
        return isinstance(metadata, Mapping) and metadata.keys() >= {"dataset", "num_options"}
    return record.keys() >= {"extracted_answer", "golden_answer", "extra_info"}


PA_GRPO_RESULTS: Final = Importer(
    title="PA-GRPO evaluation results: one answer per presentation, letters taken through its order.",
    detects=_are_results,
    schema=_Result,
    read=_result,
    join=_join,
    unfold=_entries,
    answer="extracted_answer",
)
