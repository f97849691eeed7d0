"""Auto-J's pairwise test set: 58 scenarios, human labels with ties.

Items are those of the importer of its recorded outputs (same ids), so these belong together.

Source: Li et al., arXiv 2310.05470; GAIR-NLP/auto-j, `data/test/testdata_pairwise.jsonl`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, imported


class _Row(msgspec.Struct):
    scenario: str
    label: int
    prompt: str
    response_1: str = msgspec.field(name="response 1")
    response_2: str = msgspec.field(name="response 2")
    row: int | str | None = None


AUTO_J: Final = Benchmark(
    title="Pairs of answers in 58 scenarios, with human labels and ties.",
    hub="github",
    repository="GAIR-NLP/auto-j",
    revision="2ae17a3965d933232e9cd50302aa0f176249c83b",
    files={"test": ("data/test/testdata_pairwise.jsonl",)},
    schema=_Row,
    items=partial(imported, "autoj"),
    task="pairwise",
    rows=1392,
    licence="not stated in the repository",
    paper="2310.05470",
    note="A quarter of the labels are ties, left out of accuracy unless --gold-ties class.",
)
