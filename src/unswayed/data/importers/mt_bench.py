"""Pairwise judgments of the Position-Bias-Analyzer: one record per order, raw text.

The candidates are a reference model and another, told apart by name; which of them stood first is in
the record. The verdict is the letter in the column `extracted` (N: none was read). Without that column it is the
first [[A]], [[B]] or [[C]] (tie) of the text, or in DevBench the letter after "Choice:", as in the study's own
code. There is no gold.

The public tables (`record_<judge>.tsv`) have the texts and name the judge in the head of the column of its
texts; two turns become messages. `consistent_cmp.tsv` and `inconsistent_cmp.tsv` hold the same calls, split by
consistency. Of files called `Repetition<n>` the nth holds sample n - 1.
JSON Lines made of the study's pickles (`model_shown_as_A`, `raw`) have no texts.

Source: Slimshilin/Position-Bias-Analyzer, `judgment_data`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from unswayed.data.importers.protocol import (
    Part,
    Record,
    Source,
    candidate_at,
    importer,
    pair_decision,
    read_as,
)
from unswayed.model.decisions import Choice
from unswayed.model.items import BadFieldError, Item, Message, Text
from unswayed.model.presentation import X0, X2

REFERENCE: Final = "vicuna-13b-v1.3"
"""The model that is candidate 0; without it the first name in the alphabet is."""

_VERDICT: Final = re.compile(r"\[\[([A-D])\]\]")
_CHOICE: Final = re.compile(r"Choice:\W*([A-D])\b")
"""DevBench's prompt asks for this form."""
_POSITION: Final[Mapping[str, Choice]] = {"A": 0, "B": 1, "C": "tie"}
"""Choice by letter; D gives no verdict."""
_PICKLE: Final = {"question_id", "model_shown_as_A", "model_shown_as_B", "raw"}
_ONE_TURN: Final = {"cmp_index", "A", "B", "question", "answer1", "answer2"}
_TWO_TURNS: Final = {"cmp_index", "A", "B"} | {
    f"{name}_{turn}" for name in ("question", "answer1", "answer2") for turn in (1, 2)
}
_LAYOUTS: Final = (_PICKLE, _ONE_TURN, _TWO_TURNS)
_REFERENCES: Final = ("reference_answer", "reference_answer_1", "reference_answer_2")
_COLUMNS: Final = (
    _ONE_TURN | _TWO_TURNS | {*_REFERENCES, "task", "evaluating_guidance", "extracted"}
)
"""Columns of the public tables; one more has the name of the judge."""
_REPETITION: Final = re.compile(r"repetition(\d+)", re.IGNORECASE)


class _Row(msgspec.Struct):
    question_id: int | str
    model_shown_as_A: str  # noqa: N815 - the study's own field names
    model_shown_as_B: str  # noqa: N815
    raw: str
    judge: str | None = None


def _read(record: dict[str, Any], source: Source) -> Iterator[Part]:
    if "raw" not in record:
        return _of_table(record, source)
    row = read_as(_Row, record)
    models, letter = (row.model_shown_as_A, row.model_shown_as_B), _letter(_VERDICT, row.raw)
    return _parts(row.question_id, models, letter, text=row.raw, model=row.judge)


def _parts(
    question: int | str,
    models: tuple[str, str],
    letter: str | None,
    answers: tuple[Text, Text] = ("", ""),
    *,
    prompt: str = "",
    reference: str | None = None,
    group: str | None = None,
    **call: Any,
) -> Iterator[Part]:
    """One call and its pair of models; models and answers by displayed position."""
    names = sorted(models, key=lambda name: (name != REFERENCE, name))
    shown = X0 if names[0] == models[0] else X2
    item = Item(
        id=f"{question};{names[0]};{names[1]}",
        prompt=prompt,
        candidates=tuple(answers[shown.position_of_candidate(c)] for c in (0, 1)),
        reference=reference,
        group=group,
        meta={"question_id": question},
        unit=str(question),
        candidates_by=tuple(names),
    )
    yield item
    choice = candidate_at(shown, _POSITION.get(letter or ""))
    yield pair_decision(item, shown, ("A", "B"), choice, **call)


def _letter(pattern: re.Pattern[str], text: str) -> str | None:
    verdict = pattern.search(text)
    return verdict[1] if verdict else None


def _of_table(record: Record, source: Source) -> Iterator[Part]:
    row = {name: str(cell) for name, cell in record.items()}
    judge = next((name for name in reversed(row) if name not in _COLUMNS), None)
    if judge is None:
        raise BadFieldError("row", "no column is called after a judge and holds its text")
    turns = "question_2" in row
    needed = _TWO_TURNS if turns else _ONE_TURN
    if not needed <= row.keys():
        raise BadFieldError("row", f"has no column {', '.join(sorted(needed - row.keys()))}")
    references = [row[name] for name in _REFERENCES if row.get(name) not in (None, "", "nan")]
    repetition = _REPETITION.search(source.file)
    return _parts(
        row["cmp_index"].partition(";")[0],
        (row["A"], row["B"]),
        row.get("extracted") or _letter(_VERDICT if turns else _CHOICE, row[judge]),
        (_answer(row, 1), _answer(row, 2)),
        prompt=row["question_1" if turns else "question"],
        reference="\n\n".join(references) or None,
        group=row.get("task") or None,
        text=row[judge],
        model=judge,
        sample=int(repetition[1]) - 1 if repetition else 0,
    )


def _answer(row: Mapping[str, str], place: int) -> Text:
    """Return the answer shown at a place, from 1: one text, or the messages of two turns."""
    if "question_2" not in row:
        return row[f"answer{place}"]
    return (
        Message("assistant", row[f"answer{place}_1"]),
        Message("user", row["question_2"]),
        Message("assistant", row[f"answer{place}_2"]),
    )


MT_BENCH: Final = importer(
    "Position-Bias-Analyzer (MT-Bench, DevBench): pairs in both orders, verdicts read from the text.",
    dict[str, Any],
    _read,
    detects=lambda record: any(record.keys() >= names for names in _LAYOUTS),
)
