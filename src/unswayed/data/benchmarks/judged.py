"""Benchmarks of which judgments were recorded: their items are those of the importer of these, with the same ids.

So a recorded judge and the items belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.importers import IMPORTERS
from unswayed.data.importers.protocol import Source
from unswayed.model.items import Item


def _imported(
    name: str, rows: Sequence[msgspec.Struct], place: Place, **judged: object
) -> Iterator[Item]:
    """Yield the items of rows as an importer reads them; `judged` are the fields of a judgment, empty."""
    importer = IMPORTERS.load(name)
    for row in rows:
        record = {**msgspec.to_builtins(row), **judged}
        item = importer.convert(record, Source(place.file, place.number + 1)).item
        assert item is not None
        yield item


# Auto-J's pairwise test set: 58 scenarios, human labels with ties.
# Source: Li et al., arXiv 2310.05470; GAIR-NLP/auto-j, `data/test/testdata_pairwise.jsonl`.


class _AutoJ(msgspec.Struct):
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
    schema=_AutoJ,
    items=partial(_imported, "autoj"),
    task="pairwise",
    rows=1392,
    licence="not stated in the repository",
    paper="2310.05470",
    note="A quarter of the labels are ties, left out of accuracy unless --gold-ties class.",
)

# JudgeBench: pairs of answers to hard questions, one of them objectively right. The published overall score is over all
# pairs, not the average over buckets (`macro`).
# Source: Tan et al., arXiv 2410.12784; `ScalerLab/JudgeBench`.


class _JudgeBench(msgspec.Struct):
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
    schema=_JudgeBench,
    items=partial(_imported, "judgebench", judgments=[]),
    task="pairwise",
    rows=620,
    licence="MIT on the hub; the repository states none",
    paper="2410.12784",
    note="The published overall score counts all pairs alike; macro averages the four buckets.",
)

# LLMBar: pairs of which one follows the instruction, natural ones and traps. The group is the subset.
# Source: Zeng et al., arXiv 2310.07641; princeton-nlp/LLMBar, `Dataset/LLMBar`.

_SUBSETS: Final = (
    "Natural",
    "Adversarial/Neighbor",
    "Adversarial/GPTInst",
    "Adversarial/GPTOut",
    "Adversarial/Manual",
)


class _LlmBar(msgspec.Struct):
    input: str
    output_1: str
    output_2: str
    label: int


def _llmbar(rows: Sequence[_LlmBar], place: Place) -> Iterator[Item]:
    for item in _imported("llmbar", rows, place, results=[{}]):
        yield msgspec.structs.replace(item, group=place.part)


LLMBAR: Final = Benchmark(
    title="Pairs in which one answer follows the instruction; four subsets are traps.",
    hub="github",
    repository="princeton-nlp/LLMBar",
    revision="caa7bee794bfed74baed038b99229fa3f0c4c511",
    files={subset: (f"Dataset/LLMBar/{subset}/dataset.json",) for subset in _SUBSETS},
    schema=_LlmBar,
    items=_llmbar,
    task="pairwise",
    rows=419,
    licence="MIT",
    paper="2310.07641",
)

# Vicuna-Bench with Prometheus' scales: 80 questions, four answers each, a scale for each question; no human scores.
# Source: Kim et al., arXiv 2310.08491; prometheus-eval/prometheus-eval, `vicuna_eval.json`.


class _Vicuna(msgspec.Struct):
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
    schema=_Vicuna,
    items=partial(_imported, "prometheus", gpt4_score=[]),
    task="rubric",
    rows=320,
    licence="Apache-2.0; answers and scales are written by models",
    paper="2310.08491",
)
