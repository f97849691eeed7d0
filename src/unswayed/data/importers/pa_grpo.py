"""Training rows released with PA-GRPO: one JSON line per presentation, items with gold out.

Two files with two conventions. In the pairwise file (Chatbot Arena) `ground_truth` is the letter
that is *displayed* beside the better answer, so it flips with the order; in the multiple-choice
file (MMLU) it is the letter of the *original* option in all five rows. Every row is put back into
its item's original order, so the rows of an item must agree, and the item is then shown through this
package's own prompts. Recorded answers are not read: only items on which some model was
inconsistent were kept, and the multiple-choice file repeats one answer in all five rows.

Source: ECNU-Text-Computing/PA-GRPO, `dataset/train/*.parquet`, its rows written as JSON Lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from unswayed.data.importers.protocol import Importer, ReadRecord, Record, Source
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.permutations import Order

_LETTERS: Final = "ABCD"
_FIELDS: Final = frozenset(("data_source", "prompt", "reward_model", "extra_info"))
PAIR: Final = re.compile(
    r"###Query: (?:\\n|\n)(.*)(?:\\n|\n){2}###A Answer: (?:\\n|\n)(.*)(?:\\n|\n){2}"
    r"###B Answer:(?:\\n|\n)(.*)",
    re.DOTALL,
)
QUESTION: Final = re.compile(
    r"(.*)\n\nOptions:\nA\. (.*?)\nB\. (.*?)\nC\. (.*?)\nD\. (.*)", re.DOTALL
)
_HEADINGS: Final = ("###A Answer:", "###B Answer:", "\nB. ")
MOST_HEADINGS: Final = 100
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


class _Layout(NamedTuple):
    """Content of a row: the item's name and task, its order, and the right candidate."""

    name: str
    task: Task
    text: re.Pattern[str]
    order: Order
    gold: int


def _detects(record: Record) -> bool:
    """Rows of verl have these fields too; only permuted ones say their permutation."""
    extra = record.get("extra_info")
    return record.keys() >= _FIELDS and isinstance(extra, Mapping) and "permutation" in extra


def _read(row: _Row, source: Source) -> ReadRecord:
    layout = _pair(row) if row.extra_info.original_question_id is not None else _question(row)
    texts = shown_texts(row.prompt[-1].content if row.prompt else "", layout.text)
    if texts is None:
        raise BadFieldError("prompt", "does not show a question with its candidates")
    prompt, *by_position = texts
    by_candidate = dict(zip(layout.order, by_position, strict=True))
    item = Item(
        id=layout.name,
        task=layout.task,
        prompt=prompt,
        candidates=tuple(by_candidate[c].rstrip() for c in range(len(by_candidate))),
        gold=layout.gold,
        meta={"source": row.data_source},
    )
    return ReadRecord(item, ())


def shown_texts(prompt: str, layout: re.Pattern[str]) -> tuple[str, ...] | None:
    """Return the question and the candidates by position that a prompt shows; None if it does not."""
    if max(map(prompt.count, _HEADINGS)) > MOST_HEADINGS:
        raise BadFieldError("prompt", f"has a candidate's heading more than {MOST_HEADINGS} times")
    match = layout.fullmatch(prompt)
    return match.groups() if match else None


def _pair(row: _Row) -> _Layout:
    extra = row.extra_info
    if extra.permutation not in (0, 1):
        raise BadFieldError("extra_info.permutation", f"{extra.permutation!r} is not 0 or 1")
    order: Order = (0, 1) if extra.permutation == 0 else (1, 0)
    displayed = _letter(row, 2)
    return _Layout(
        f"arena/{extra.original_question_id}", Task.PAIRWISE, PAIR, order, order[displayed]
    )


def _question(row: _Row) -> _Layout:
    extra = row.extra_info
    if extra.original_index is None:
        raise BadFieldError("extra_info", "has neither original_question_id nor original_index")
    shown = str(extra.permutation)
    if sorted(shown) != list(_LETTERS):
        raise BadFieldError("extra_info.permutation", f"{shown!r} is not an order of {_LETTERS}")
    order = tuple(_LETTERS.index(letter) for letter in shown)
    original = _letter(row, len(_LETTERS))
    return _Layout(f"{row.data_source}/{extra.original_index}", Task.MCQ, QUESTION, order, original)


def _letter(row: _Row, n: int) -> int:
    truth = row.reward_model.ground_truth
    if len(truth) != 1 or truth not in _LETTERS[:n]:
        raise BadFieldError(
            "reward_model.ground_truth", f"{truth!r} is not one of {', '.join(_LETTERS[:n])}"
        )
    return _LETTERS.index(truth)


PA_GRPO: Final = Importer(
    title="PA-GRPO's released training rows: items with gold, to train on; no recorded calls.",
    detects=_detects,
    schema=_Row,
    read=_read,
)
