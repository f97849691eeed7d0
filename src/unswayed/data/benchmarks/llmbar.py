"""LLMBar: pairs of which one follows the instruction, natural ones and traps.

Items are those of the importer of recorded evaluators (named by a hash of their texts), so these
belong together. The group is the subset.

Source: Zeng et al., arXiv 2310.07641; princeton-nlp/LLMBar, `Dataset/LLMBar`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place, imported
from unswayed.model.items import Item

SUBSETS: Final = (
    "Natural",
    "Adversarial/Neighbor",
    "Adversarial/GPTInst",
    "Adversarial/GPTOut",
    "Adversarial/Manual",
)


class _Row(msgspec.Struct):
    input: str
    output_1: str
    output_2: str
    label: int


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
    for item in imported("llmbar", rows, place, results=[{}]):
        yield msgspec.structs.replace(item, group=place.part)


LLMBAR: Final = Benchmark(
    title="Pairs of which one follows the instruction; four subsets are traps.",
    hub="github",
    repository="princeton-nlp/LLMBar",
    revision="caa7bee794bfed74baed038b99229fa3f0c4c511",
    files={subset: (f"Dataset/LLMBar/{subset}/dataset.json",) for subset in SUBSETS},
    schema=_Row,
    items=_items,
    task="pairwise",
    rows=419,
    licence="MIT",
    paper="2310.07641",
)
