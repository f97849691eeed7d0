"""GPQA: questions of biology, physics and chemistry that a search does not answer.

The right answer always comes first, so candidates get an order of our own. Space around texts is
taken away: it would tell nothing but which answer was typed when.

Source: Rein et al., arXiv 2311.12022; `Idavidrein/gpqa`, whose CSV files are gated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place, shuffled
from unswayed.data.benchmarks.mcq import refer_to_each_other
from unswayed.model.items import Item, Task


class _Row(msgspec.Struct):
    id: str = msgspec.field(name="Record ID")
    question: str = msgspec.field(name="Question")
    correct: str = msgspec.field(name="Correct Answer")
    incorrect_1: str = msgspec.field(name="Incorrect Answer 1")
    incorrect_2: str = msgspec.field(name="Incorrect Answer 2")
    incorrect_3: str = msgspec.field(name="Incorrect Answer 3")
    domain: str = msgspec.field(name="High-level domain")
    subdomain: str | None = msgspec.field(name="Subdomain", default=None)


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
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
    schema=_Row,
    items=_items,
    task="mcq",
    rows=448,
    licence="CC BY 4.0",
    paper="2311.12022",
    gated=True,
    shuffles=True,
    note="Do not publish rows in plain text or images (terms of the data set): neither items nor "
    "reports and run directories, which show them.",
)
