"""Benchmarks of multiple choice; what is particular about each stands above it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place, shuffled
from unswayed.data.importers.protocol import Record
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.items.referring_options import refer_to_each_other

# MMLU: 57 subjects, four options each. Some options speak of the others, which the item says (`permutable`); some
# items have the same text twice, so gold is a number, never a text. The group is the subject.
# Source: Hendrycks et al., arXiv 2009.03300; `cais/mmlu`, configuration `all`. The authors' own files are CSV without
# a header, one for each subject: question, four options, letter.

_LETTERS: Final = ("A", "B", "C", "D")
_OF_SUBJECT: Final = re.compile(r"(.+)_(?:test|val|dev)\.csv")


class _Mmlu(msgspec.Struct):
    """A row; the answer is a number on the hub and a letter in the authors' own files."""

    question: str
    choices: list[str]
    answer: int | str
    subject: str | None = None


def _mmlu(name: str, rows: Sequence[_Mmlu], place: Place) -> Iterator[Item]:
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
    schema=_Mmlu,
    items=partial(_mmlu, "mmlu"),
    task="mcq",
    rows=14042,
    header=("question", *_LETTERS, "answer"),
    republished=lambda row: (
        {**row, "choices": [row[letter] for letter in _LETTERS]} if "A" in row else row
    ),
    licence="MIT",
    paper="2009.03300",
    note="Items with options that refer to others keep their own order.",
)

# TinyMMLU: 100 questions of MMLU that stand for all, chosen by an item-response model.
# Source: Maia Polo et al., arXiv 2402.14992; `tinyBenchmarks/tinyMMLU`.

TINY_MMLU: Final = Benchmark(
    title="100 questions that stand for MMLU.",
    hub="huggingface",
    repository="tinyBenchmarks/tinyMMLU",
    revision="main",
    files={"test": ("all/test-*.parquet", "data/test-*.parquet")},
    schema=_Mmlu,
    items=partial(_mmlu, "tiny-mmlu"),
    task="mcq",
    rows=100,
    licence="not stated (MMLU's is MIT)",
    paper="2402.14992",
    note="Its estimate of MMLU needs the authors' weights; plain accuracy covers only 100 questions.",
)

# ARC-Challenge: school science, three to five options, labelled A, B, ... or 1, 2, ... `answerKey` is one of the
# labels of its own item, so it is looked up and never read as a letter.
# Source: Clark et al., arXiv 1803.05457; `allenai/ai2_arc`, configuration `ARC-Challenge`. The authors' own JSON
# Lines, with stem and choices inside `question`, are read from a local copy too.


class _Choices(msgspec.Struct):
    text: list[str]
    label: list[str]


class _Arc(msgspec.Struct):
    id: str
    question: str
    choices: _Choices
    answer: str = msgspec.field(name="answerKey")


def _arc_republished(record: Record) -> Record:
    """Return the authors' layout as the hub's; any other record as it is."""
    question = record.get("question")
    if not isinstance(question, Mapping):
        return record
    choices = question.get("choices")
    listed = [choice for choice in choices or () if isinstance(choice, Mapping)]
    return {
        **record,
        "question": question.get("stem"),
        "choices": {name: [choice.get(name) for choice in listed] for name in ("text", "label")},
    }


def _arc(rows: Sequence[_Arc], place: Place) -> Iterator[Item]:
    for row in rows:
        labels = row.choices.label
        if len(labels) != len(row.choices.text) or len(set(labels)) != len(labels):
            raise BadFieldError("choices", f"{labels} are not one label for each text")
        if row.answer not in labels:
            raise BadFieldError("answerKey", f"{row.answer!r} is not one of {', '.join(labels)}")
        yield Item(
            id=row.id,
            task=Task.MCQ,
            prompt=row.question,
            candidates=tuple(row.choices.text),
            gold=labels.index(row.answer),
            group=f"{len(labels)} options",
            permutable=not refer_to_each_other(row.choices.text),
            meta={"labels": labels},
        )


ARC_CHALLENGE: Final = Benchmark(
    title="School science that simple retrieval gets wrong; three to five options.",
    hub="huggingface",
    repository="allenai/ai2_arc",
    revision="210d026faf9955653af8916fad021475a3f00453",
    files={
        "test": ("ARC-Challenge/test-*.parquet", "ARC-Challenge-Test.jsonl"),
        "validation": ("ARC-Challenge/validation-*.parquet", "ARC-Challenge-Dev.jsonl"),
        "train": ("ARC-Challenge/train-*.parquet", "ARC-Challenge-Train.jsonl"),
    },
    default=("test",),
    schema=_Arc,
    items=_arc,
    republished=_arc_republished,
    task="mcq",
    rows=1172,
    licence="CC BY-SA 4.0",
    paper="1803.05457",
    note="Figures by position are given per number of options.",
)

# GPQA: questions of biology, physics and chemistry that a search does not answer. The right answer always comes
# first, so candidates get an order of our own. Space around texts is taken away: it would tell nothing but which
# answer was typed when.
# Source: Rein et al., arXiv 2311.12022; `Idavidrein/gpqa`, whose CSV files are gated.


class _Gpqa(msgspec.Struct):
    id: str = msgspec.field(name="Record ID")
    question: str = msgspec.field(name="Question")
    correct: str = msgspec.field(name="Correct Answer")
    incorrect_1: str = msgspec.field(name="Incorrect Answer 1")
    incorrect_2: str = msgspec.field(name="Incorrect Answer 2")
    incorrect_3: str = msgspec.field(name="Incorrect Answer 3")
    domain: str = msgspec.field(name="High-level domain")
    subdomain: str | None = msgspec.field(name="Subdomain", default=None)


def _gpqa(rows: Sequence[_Gpqa], place: Place) -> Iterator[Item]:
    for row in rows:
        answers = (row.correct, row.incorrect_1, row.incorrect_2, row.incorrect_3)
        order = shuffled(row.id, len(answers))
        candidates = tuple(answers[k].strip() for k in order)
        yield Item(
            id=row.id,
            task=Task.MCQ,
            prompt=row.question.strip(),
            candidates=candidates,
            gold=order.index(0),
            group=row.domain,
            permutable=not refer_to_each_other(candidates),
            meta={"subdomain": row.subdomain, "published_order": order},
        )


GPQA: Final = Benchmark(
    title="Graduate biology, physics and chemistry; four options.",
    hub="huggingface",
    repository="Idavidrein/gpqa",
    revision="633f5ee89ab8ad4522a9f850766b73f62147ffdd",
    files={
        "main": ("gpqa_main.csv",),
        "diamond": ("gpqa_diamond.csv",),
        "extended": ("gpqa_extended.csv",),
    },
    default=("main",),
    schema=_Gpqa,
    items=_gpqa,
    task="mcq",
    rows=448,
    licence="CC BY 4.0",
    paper="2311.12022",
    gated=True,
    shuffles=True,
    note="Do not publish rows in plain text or images (terms of the data set): neither items nor "
    "reports and run directories, which show them.",
)
