"""Vicuna-Bench with Prometheus' scales: 80 questions, four answers each, a scale for each question.

Items are those of the importer of GPT-4's recorded scores (same ids), so these belong together. There
are no human scores.

Source: Kim et al., arXiv 2310.08491; prometheus-eval/prometheus-eval, `vicuna_eval.json`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, imported


class _Row(msgspec.Struct):
    idx: int | str
    response_source: str
    category: str
    instruction: str


VICUNA_BENCH: Final = Benchmark(
    title="Answers to 80 questions on scales written for each; no human scores.",
    hub="github",
    repository="prometheus-eval/prometheus-eval",
    revision="main",
    files={"test": ("eval/benchmark/data/vicuna_eval.json",)},
    schema=_Row,
    items=partial(imported, "prometheus", gpt4_score=[]),
    task="rubric",
    rows=320,
    licence="Apache-2.0; answers and scales are written by models",
    paper="2310.08491",
)
