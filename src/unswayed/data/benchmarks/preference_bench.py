"""Preference-Bench: pairs of answers, each judged by a criterion of its own.

The criterion decides who is better, so it stands in the question.

Source: Kim et al., arXiv 2405.01535; `prometheus-eval/Preference-Bench`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.model.items import BadFieldError, Item

_LETTERS: Final = ("A", "B")


class _Row(msgspec.Struct):
    instruction: str = msgspec.field(name="orig_instruction")
    criterion: str = msgspec.field(name="orig_criteria")
    response_a: str = msgspec.field(name="orig_response_A")
    response_b: str = msgspec.field(name="orig_response_B")
    preference: str = msgspec.field(name="orig_preference")
    reference: str | None = msgspec.field(name="orig_reference_answer", default=None)
    score_a: str | int | None = msgspec.field(name="orig_score_A", default=None)
    score_b: str | int | None = msgspec.field(name="orig_score_B", default=None)


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
    for number, row in enumerate(rows, start=place.number):
        if row.preference not in _LETTERS:
            raise BadFieldError("orig_preference", f"{row.preference!r} is not A or B")
        yield Item(
            id=f"preference-bench-{number}",
            prompt=f"{row.instruction}\n\nWhat counts: {row.criterion}",
            candidates=(row.response_a, row.response_b),
            gold=_LETTERS.index(row.preference),
            reference=row.reference or None,
            group=f"{row.score_a} against {row.score_b}" if row.score_a and row.score_b else None,
            meta={"criterion": row.criterion},
        )


PREFERENCE_BENCH: Final = Benchmark(
    title="Pairs of answers, each judged by a criterion of its own.",
    hub="huggingface",
    repository="prometheus-eval/Preference-Bench",
    revision="c8e74045f2137ccbf894ba8301d7b3b949131d5a",
    files={"train": ("data/train-*.parquet",)},
    schema=_Row,
    items=_items,
    task="pairwise",
    rows=1998,
    licence="not stated on the hub",
    paper="2405.01535",
    note="Gold comes of scores by GPT-4, not of humans. The only split is called train.",
)
