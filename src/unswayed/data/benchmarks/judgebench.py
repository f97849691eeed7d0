"""JudgeBench: pairs of answers to hard questions, one of them objectively right.

Items are those of the importer of recorded judges (same ids, labels `A>B`, buckets by the beginning
of `source`), so a recorded judge and these items belong together. The published overall score is
over all pairs, not the average over buckets (`macro`).

Source: Tan et al., arXiv 2410.12784; `ScalerLab/JudgeBench`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, imported


class _Row(msgspec.Struct):
    pair_id: str
    source: str
    question: str
    response_A: str  # noqa: N815 - the benchmark's own field names
    response_B: str  # noqa: N815
    label: str
    response_model: str
    original_id: str | int | None = None


JUDGEBENCH: Final = Benchmark(
    title="Pairs with one objectively right answer: knowledge, reasoning, mathematics, code.",
    hub="huggingface",
    repository="ScalerLab/JudgeBench",
    revision="main",
    files={
        "gpt": (
            "data/gpt-*.jsonl",
            "dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl",
        ),
        "claude": (
            "data/claude-*.jsonl",
            "dataset=judgebench,response_model=claude-3-5-sonnet-20240620.jsonl",
        ),
    },
    schema=_Row,
    items=partial(imported, "judgebench", judgments=[]),
    task="pairwise",
    rows=620,
    licence="MIT on the hub; the repository states none",
    paper="2410.12784",
    note="The published overall score counts all pairs alike; macro averages the four buckets.",
)
