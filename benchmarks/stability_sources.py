"""Recordings of published judges for stability.py, with the question of each item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import evidence_table  # noqa: F401 - puts docs on the path
from unswayed.data.importers import Imported

# isort: split
from published_judges import audited, read

__all__ = ["FAMILIES", "LEFT_OUT", "Family", "Recording", "audited", "recordings"]


@dataclass(frozen=True)
class Family:
    """Recordings of one project, found by the names of their files.

    Attributes:
        data: What to call the items; `{data}` stands for a group of `name`.
        files: Glob under the folder of recordings.
        name: Expression for a file's name whose group `judge` names the judge. Files with the same
            judge and data are samples of one recording.
        judge: Name of the judge where the file does not tell it.
    """

    data: str
    files: str
    name: str
    judge: str = "{judge}"


FAMILIES = (
    Family(
        "JudgeBench, answers of {data}",
        "judgebench/outputs_*.jsonl*",
        r"resp=(?P<data>[\w.-]+?)_judge=(?:arena_hard|reward_model)_(?P<judge>.+)\.jsonl",
    ),
    Family(
        "LLMBar {data}",
        "llmbar/*.json*",
        r"(?P<data>[A-Z][\w-]*?)_(?P<judge>(?!dataset).+)\.json",
    ),
    Family("Auto-J", "autoj/*.jsonl*", r"pairs_with_judge", "Auto-J"),
    Family(
        "MT-Bench",
        "mtbench/position_bias_*.jsonl*",
        r"position_bias_(?P<judge>.+)_\d+\.",
    ),
    Family(
        "MT-Bench, repeated",
        "mtbench/repetition*.tsv*",
        r"repetition\d_(?P<judge>.+)_\d+\.",
    ),
    Family(
        "AlpacaEval, {data}",
        "alpaca_eval/*.jsonl*",
        r"(?P<judge>weighted_gpt4_turbo)_(?P<data>[\w-]+)\.",
    ),
    Family(
        "MT-Bench rubrics",
        "mtbench_rubric/*.json*",
        r"mt_bench_eval",
        "gpt-4",
    ),
    Family("Vicuna rubrics", "vicuna_bench/*.json*", r"vicuna_eval", "gpt-4"),
)
LEFT_OUT = (
    ("`pagrpo_train/chatbot_arena…`", "holds only pairs that its judge flips"),
    ("`pagrpo_train/mmlu…`", "holds items to train on, no decisions"),
    ("`pandalm/gpt-3.5-turbo-testset-v1`", "was asked in one order, always the same"),
    ("`hanna/…`", "holds means over tries, without orders"),
    ("`rubrics/…`, `misc/…`", "no importer reads them"),
)


@dataclass(frozen=True)
class Recording:
    """Decisions of one judge about one set.

    Attributes:
        judge: Its name.
        data: Name of the set.
        made: Items and decisions.
        files: Where they were read.
    """

    judge: str
    data: str
    made: Imported
    files: tuple[Path, ...]


def recordings(data: Path, only: str) -> Iterator[Recording]:
    """Read every recording under a folder whose judge and data match `only`."""
    for family in FAMILIES:
        found: dict[tuple[str, str], list[Path]] = {}
        for file in sorted(data.glob(family.files)):
            if told := re.search(family.name, file.name):
                groups = {"judge": "", "data": "", **told.groupdict()}
                name = (family.judge.format(**groups), family.data.format(**groups))
                found.setdefault(name, []).append(file)
        for (judge, of), files in found.items():
            if re.search(only, f"{judge}, {of}"):
                made = read(*files)
                yield Recording(judge, of, made, tuple(files))
