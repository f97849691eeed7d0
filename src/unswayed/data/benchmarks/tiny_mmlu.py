"""TinyMMLU: 100 questions of MMLU that stand for all, chosen by an item-response model.

Source: Maia Polo et al., arXiv 2402.14992; `tinyBenchmarks/tinyMMLU`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from unswayed.data.benchmarks.benchmark import Benchmark
from unswayed.data.benchmarks.mmlu import MmluRow, questions

TINY_MMLU: Final = Benchmark(
    title="100 questions that stand for MMLU.",
    hub="huggingface",
    repository="tinyBenchmarks/tinyMMLU",
    revision="main",
    files={"test": ("all/test-*.parquet", "data/test-*.parquet")},
    schema=MmluRow,
    items=partial(questions, "tiny-mmlu"),
    task="mcq",
    rows=100,
    licence="not stated (MMLU's is MIT)",
    paper="2402.14992",
    note="Its estimate of MMLU needs the authors' weights; plain accuracy is that of 100 questions.",
)
