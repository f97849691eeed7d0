"""MMLU: 57 subjects, four options each.

Some options speak of the others, which the item says (`permutable`); some items have the same text
twice, so gold is a number, never a text. The group is the subject.

Source: Hendrycks et al., arXiv 2009.03300; `cais/mmlu`, configuration `all`. The authors' own files are CSV
without a header, one for each subject: question, four options, letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.benchmarks.mcq import refer_to_each_other
from unswayed.model.items import BadFieldError, Item, Task

_LETTERS: Final = ("A", "B", "C", "D")
_OF_SUBJECT: Final = re.compile(r"(.+)_(?:test|val|dev)\.csv")


class MmluRow(msgspec.Struct):
    """A row; the answer is a number on the hub and a letter in the authors' own files."""

    question: str
    choices: list[str]
    answer: int | str
    subject: str | None = None


def questions(name: str, rows: Sequence[MmluRow], place: Place) -> Iterator[Item]:
    """Yield the item of a row, called after the benchmark and the number of the row."""
    of_file = _OF_SUBJECT.match(place.file)
    for number, row in enumerate(rows, start=place.number):
        if len(row.choices) != len(_LETTERS):
            raise BadFieldError("choices", f"are {len(row.choices)}, not {len(_LETTERS)}")
        if row.answer not in (*range(len(_LETTERS)), *_LETTERS):
            raise BadFieldError("answer", f"{row.answer!r} is not 0 to 3 or A to D")
        gold = row.answer if isinstance(row.answer, int) else _LETTERS.index(row.answer)
        yield Item(
            id=f"{name}-{number}",
            task=Task.MCQ,
            prompt=row.question,
            candidates=tuple(row.choices),
            gold=gold,
            group=row.subject or (of_file[1] if of_file else None),
            permutable=not refer_to_each_other(row.choices),
        )


MMLU: Final = Benchmark(
    title="General knowledge: 57 subjects, four options.",
    hub="huggingface",
    repository="cais/mmlu",
    revision="c30699e8356da336a370243923dbaf21066bb9fe",
    files={
        "test": ("all/test-*.parquet", "test/*_test.csv"),
        "validation": ("all/validation-*.parquet", "val/*_val.csv"),
        "dev": ("all/dev-*.parquet", "dev/*_dev.csv"),
    },
    default=("test",),
    schema=MmluRow,
    items=partial(questions, "mmlu"),
    task="mcq",
    rows=14042,
    header=("question", *_LETTERS, "answer"),
    republished=lambda row: (
        {**row, "choices": [row[letter] for letter in _LETTERS]} if "A" in row else row
    ),
    licence="MIT",
    paper="2009.03300",
    note="Options that speak of other options are asked in their own order only.",
)
