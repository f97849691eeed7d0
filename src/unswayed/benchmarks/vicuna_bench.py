"""Vicuna-Bench with Prometheus' scales: 80 questions, four answers each, a scale for each question.

Items are those of the importer of GPT-4's recorded scores (same ids), so these belong together. There
are no human scores.

Source: Kim et al., arXiv 2310.08491; prometheus-eval/prometheus-eval, `vicuna_eval.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.benchmarks.benchmark import Benchmark, Place
from unswayed.importers import IMPORTERS
from unswayed.items import Item


class _Row(msgspec.Struct):
    idx: int | str
    response_source: str
    category: str
    instruction: str


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
    importer = IMPORTERS.load("prometheus")
    for row in rows:
        record = {**msgspec.structs.asdict(row), "gpt4_score": []}
        item = importer.convert(record, place.source).item
        assert item is not None
        yield item


VICUNA_BENCH: Final = Benchmark(
    title="Answers to 80 questions on scales written for each; no human scores.",
    hub="github",
    repository="prometheus-eval/prometheus-eval",
    revision="main",
    files={"test": ("eval/benchmark/data/vicuna_eval.json",)},
    schema=_Row,
    items=_items,
    task="rubric",
    rows=320,
    licence="Apache-2.0; answers and scales are written by models",
    paper="2310.08491",
)
