"""A real model answers ten questions: recorded, resumed, and read as trees or one prompt at a time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from local_asking import CPU, answered, logprobs, opened, query

import unswayed as us
from unswayed.model.calls import Query
from unswayed.model.presentation import Ask, presentations
from unswayed.prompts import PromptSettings, render

FOLDER = Path(os.environ.get("UNSWAYED_REAL_MODEL", "no-model"))
pytestmark = pytest.mark.skipif(
    not (FOLDER / "config.json").is_file(),
    reason="needs a real model: python benchmarks/real/models.py smollm2-135m FOLDER (0.5 GB), "
    "then UNSWAYED_REAL_MODEL=FOLDER",
)

EXACT = 1e-4
"""Most that a label's log-probability may differ from that of the prompt alone, in float32."""

SETTINGS = PromptSettings()
QUESTIONS = {
    "Which animal lays eggs?": ("hen", "cow", "dog", "cat"),
    "Which month follows March?": ("April", "June", "May", "July"),
    "What is two plus three?": ("five", "six", "four", "nine"),
    "Which city is the capital of France?": ("Paris", "Rome", "Madrid", "Berlin"),
    "What falls from clouds?": ("rain", "sand", "iron", "milk"),
    "Which colour is grass?": ("green", "red", "blue", "black"),
    "Which tool cuts paper?": ("scissors", "spoon", "hammer", "pillow"),
    "What do bees make?": ("honey", "bread", "wool", "glass"),
    "Which of these is a planet?": ("Mars", "Oak", "Rhine", "Violin"),
    "How many days has a week?": ("seven", "ten", "five", "twelve"),
}
ITEMS = [
    us.Item(id=f"q{number}", task=us.Task.MCQ, prompt=question, candidates=answers, gold=0)
    for number, (question, answers) in enumerate(QUESTIONS.items())
]


def test_real_model_records_every_call_and_resumes(tmp_path: Path) -> None:
    first, again = (
        us.audit(f"hf/{FOLDER}", ITEMS, methods=["direct", "average"], device="cpu", out=tmp_path)
        for _ in range(2)
    )
    made = 4 * len(ITEMS)
    assert (first.run["calls"]["made"], first.run["calls"]["cached"]) == (made, 0)
    assert (again.run["calls"]["made"], again.run["calls"]["cached"]) == (0, made)
    assert first.metrics["methods"] == again.metrics["methods"]
    assert first["average"].consistency.value == 1.0


def test_trees_of_a_real_model_match_its_rows() -> None:
    backend = opened(FOLDER, CPU)
    queries = [
        Query(item, ask, query(render(item, ask, SETTINGS).messages, labels=tuple("ABCD")).request)
        for item in ITEMS
        for ask in map(Ask, presentations("cyclic", 4))
    ]
    trees = answered(backend, queries)
    assert any("read as trees" in remark for remark in backend.remarks)
    loaded = backend._load()
    backend._loaded = replace(loaded, plan=replace(loaded.plan, trees=False))
    rows = answered(backend, queries)
    for tree, row in zip(map(logprobs, trees), map(logprobs, rows), strict=True):
        assert tree == pytest.approx(row, abs=EXACT)
