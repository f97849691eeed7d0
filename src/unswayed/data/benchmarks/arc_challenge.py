"""ARC-Challenge: school science, three to five options, labelled A, B, ... or 1, 2, ...

`answerKey` is one of the labels of its own item, so it is looked up and never read as a letter.

Source: Clark et al., arXiv 1803.05457; `allenai/ai2_arc`, configuration `ARC-Challenge`. The
authors' own JSON Lines, with stem and choices inside `question`, are read from a local copy too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.benchmarks.mcq import refer_to_each_other
from unswayed.data.importers.protocol import Record
from unswayed.model.items import BadFieldError, Item, Task


class _Choices(msgspec.Struct):
    text: list[str]
    label: list[str]


class _Row(msgspec.Struct):
    id: str
    question: str
    choices: _Choices
    answer: str = msgspec.field(name="answerKey")


def _republished(record: Record) -> Record:
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


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
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
    schema=_Row,
    items=_items,
    republished=_republished,
    task="mcq",
    rows=1172,
    licence="CC BY-SA 4.0",
    paper="1803.05457",
    note="Order quantities come per number of options.",
)
