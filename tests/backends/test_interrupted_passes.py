"""Ctrl-C while a local model reads: the pass under way is kept, unless Ctrl-C comes again."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_asking import chat, opened, query

from forked import Forked, command
from unswayed.backends.local_passes import LabelScorer
from unswayed.model.items import Message
from unswayed.store import CallStore

pytest.importorskip("torch")
pytest.importorskip("transformers")

ITEMS = 30


@pytest.fixture
def audit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forked]:
    """An audit whose first pass has begun, and ends when the folder holds a file `go`."""
    data = tmp_path / "items.jsonl"
    data.write_text(
        "".join(
            f'{{"id": "q{at}", "prompt": "Which {at}?", "candidates": ["one", "two"], "gold": 0}}\n'
            for at in range(ITEMS)
        )
    )

    def slow(read: Any) -> Any:
        def reading(scorer: LabelScorer, body: Any, prompts: Any, *steps: Any) -> Any:
            if len(prompts) > 6:  # not the prompts that are tried when the model is loaded
                print("reading", flush=True)
                while not (tmp_path / "go").exists():
                    time.sleep(0.01)
            return read(scorer, body, prompts, *steps)

        return reading

    monkeypatch.setattr(LabelScorer, "_hidden", slow(LabelScorer._hidden))
    monkeypatch.setattr(LabelScorer, "_walked", slow(LabelScorer._walked))
    monkeypatch.setattr("unswayed.calls.caller.GRACE_S", 0.01)
    words = ["audit", data, "--model", f"hf/{folder}", "--device", "cpu", "--out", tmp_path / "run"]
    process = command(tmp_path, *words)
    process.wait_for("reading")
    process.send(signal.SIGINT)
    process.wait_for("Press Ctrl-C again")
    yield process
    process.kill()


def test_ctrl_c_stores_answers_of_running_pass(audit: Forked, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    complaints = audit.err.read_text
    assert audit.code() == 130, complaints()
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        recorded = len(store)
    assert 0 < recorded < 2 * ITEMS
    most = re.search(r"Finishing the running pass \(up to (\d+) prompts\)\.", complaints())
    assert most is not None
    assert recorded <= int(most[1]) <= 2 * ITEMS
    assert f"interrupted: {recorded} of 60 calls are recorded." in complaints()
    assert audit.out.read_text().count("reading") == 1


def test_second_ctrl_c_leaves_at_once(audit: Forked, tmp_path: Path) -> None:
    audit.send(signal.SIGINT)
    assert audit.code() == 130
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        assert len(store) == 0


def test_walk_of_tree_hands_over_answers_between_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = chat(300)[1].content
    texts = [f"{shown}\nItem {k}: {chat(60, start=k)[1].content}" for k in range(8)]
    system = Message("system", "Judge.")
    asked = [query((system, Message("user", text)), f"i{k}") for k, text in enumerate(texts)]
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
