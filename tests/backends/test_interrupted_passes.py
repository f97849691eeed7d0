"""Ctrl-C while a local model reads: the pass under way is kept, unless Ctrl-C comes again."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from local_asking import chat, opened, query

from unswayed.model.items import Item, Message
from unswayed.store import CallStore

pytest.importorskip("torch")
pytest.importorskip("transformers")

ITEMS = 30
SLOW = """
import sys, time
from unswayed.backends.local_passes import LabelScorer
from unswayed.cli import main

hidden, walked = LabelScorer._hidden, LabelScorer._walked

def slow(read):
    def reading(scorer, body, prompts, *steps):
        if len(prompts) > 6:  # not the prompts that are tried when the model is loaded
            print("reading", flush=True)
            time.sleep(float(sys.argv[1]))
        return read(scorer, body, prompts, *steps)
    return reading

LabelScorer._hidden, LabelScorer._walked = slow(hidden), slow(walked)
import unswayed.calls.caller
unswayed.calls.caller.GRACE_S = 0.01
sys.exit(main(sys.argv[2:]))
"""


def start(folder: Path, tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    """An audit whose first pass takes so many seconds, once it has begun."""
    data = tmp_path / "items.jsonl"
    data.write_text(
        "".join(
            f'{{"id": "q{at}", "prompt": "Which {at}?", "candidates": ["one", "two"], "gold": 0}}\n'
            for at in range(ITEMS)
        )
    )
    words = ["audit", data, "--model", f"hf/{folder}", "--device", "cpu", "--out", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(seconds), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    return process


def test_ctrl_c_stores_answers_of_running_pass(folder: Path, tmp_path: Path) -> None:
    process = start(folder, tmp_path, 5)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, complaints
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        recorded = len(store)
    assert 0 < recorded < 2 * ITEMS
    most = re.search(r"Finishing the running pass \(up to (\d+) prompts\)\.", complaints)
    assert most is not None
    assert recorded <= int(most[1]) <= 2 * ITEMS
    assert f"interrupted: {recorded} of 60 calls are recorded." in complaints
    assert said.count("reading") == 0  # the line that was read before is the only one


def test_second_ctrl_c_leaves_at_once(folder: Path, tmp_path: Path) -> None:
    process = start(folder, tmp_path, 3600)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("Press Ctrl-C again" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        assert len(store) == 0


def test_walk_of_tree_hands_over_answers_between_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = chat(300)[1].content
    asked = []
    for number in range(8):
        text = f"{shown}\nItem {number}: {chat(60, start=number)[1].content}"
        one = query((Message("system", "Judge."), Message("user", text)))
        asked.append(one._replace(item=Item(id=f"i{number}", prompt="p", candidates=("a", "b"))))
    backend = opened(folder)
    batches = []
    run = backend._run
    monkeypatch.setattr(backend, "_run", lambda *batch: batches.append(batch) or run(*batch))

    async def stopped_after_first() -> tuple[int, int]:
        answers = backend.answer(asked)
        await anext(answers)
        left = backend.running
        await answers.aclose()
        return left, len(batches[0][0])

    left, whole = asyncio.run(stopped_after_first())
    assert 0 < left < whole
    assert len(batches) == 1
