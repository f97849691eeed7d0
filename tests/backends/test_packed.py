"""Several questions in one request: the same answers, the probe, faults and resuming."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from decision_stub import DecisionStub, liking

import unswayed as us
from unswayed.store import CallStore

APIS = ("systemone", "decisions")
BOTH = pytest.mark.parametrize("api", APIS)


def rows(count: int = 30, n: int = 4) -> list[dict[str, Any]]:
    made = []
    for i in range(count):
        texts = [f"answer {i} {k}" for k in range(n)]
        best = max(range(n), key=lambda k: liking(texts[k]))
        made.append({"id": f"q{i}", "task": "mcq", "prompt": f"Question {i}?", "candidates": texts})
        made[-1]["gold"] = best
    return made


def audit(stub: DecisionStub, items: Any, out: Path, api: str = "systemone", **options: Any) -> Any:
    options = {"methods": "direct,average,pride", "resamples": 100, **options}
    return us.audit(f"{api}/stub", items, base_url=stub.url, out=out, **options)


def calls(folder: Path) -> dict[bytes, tuple[Any, ...]]:
    """Everything that is stored of each call but tokens, cost and time."""
    with CallStore.open(folder, read_only=True) as store:
        return {
            call.key: (call.request, call.response.text, call.response.top_logprobs)
            for call in store.calls()
        }


def tokens(folder: Path) -> int:
    with CallStore.open(folder, read_only=True) as store:
        return store.totals().input_tokens


@BOTH
def test_packed_and_single_audits_are_equal(api, tmp_path: Path) -> None:
    with DecisionStub() as stub:
        packed = audit(stub, rows(), tmp_path / "packed", api)
        requests, billed = len(stub.bodies), stub.input_tokens
        audit(stub, rows(), tmp_path / "single", api, pack=1)
    single = len(stub.bodies) - requests
    assert single == 120
    assert requests == 29 + 2 * 4 + 1
    assert packed.run["packing"] == {"pack": 16, "difference": 0.0, "noise": 0.0}
    one, other = ((tmp_path / name / "answers.json").read_bytes() for name in ("packed", "single"))
    assert one == other
    assert calls(tmp_path / "packed") == calls(tmp_path / "single")
    assert tokens(tmp_path / "packed") == billed
    assert "packing" not in json.loads((tmp_path / "single/run.json").read_text())


@BOTH
def test_mixed_questions_are_asked_alone(api, tmp_path: Path) -> None:
    with DecisionStub(mixes=2.0) as stub:
        result = audit(stub, rows(), tmp_path / "mixed", api)
        assert sorted({len(body["questions"]) for body in stub.bodies}) == [1, 4]
        assert sum(len(body["questions"]) > 1 for body in stub.bodies) == 1
        audit(stub, rows(), tmp_path / "single", api, pack=1)
    packing = result.run["packing"]
    assert packing["pack"] == 1
    assert packing["difference"] > 0.1
    assert packing["noise"] == 0.0
    assert any("differently" in text for text in result.run["warnings"])
    assert calls(tmp_path / "mixed") == calls(tmp_path / "single")


def test_noise_of_server_does_not_count_as_mixing(tmp_path: Path) -> None:
    with DecisionStub(noise=0.2) as stub:
        result = audit(stub, rows(), tmp_path / "run", max_connections=1)
    packing = result.run["packing"]
    assert packing["pack"] == 16
    assert 0.02 < packing["difference"] < 2 * packing["noise"]


def test_bad_question_costs_its_own_item_only(tmp_path: Path) -> None:
    items = [{**row, "prompt": "One state?"} for row in rows(16, n=2)]
    items[11]["candidates"] = ["fault:422", "fine"]
    with DecisionStub() as stub:
        result = audit(stub, items, tmp_path / "run", methods="direct")
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        failures = {call.failure.message.partition(":")[0] for call in store.failures()}
    assert result.metrics["calls"]["failed"] == 2
    assert failures == {"q11"}
    assert result.metrics["calls"]["made"] == 30


@pytest.mark.parametrize("fault", ["nan", "missing", "other-options"])
def test_wrong_answer_fails_alone_in_its_request(fault, tmp_path: Path) -> None:
    with DecisionStub() as stub:
        items = rows(6)
        items[3]["prompt"] = f"fault:{fault}"
        result = audit(stub, items, tmp_path / "run", methods="direct")
    failed = {"nan": 4, "missing": 1, "other-options": 4}[fault]
    assert result.metrics["calls"]["failed"] == failed


def test_failed_probe_packs_nothing(tmp_path: Path) -> None:
    with DecisionStub() as stub:
        items = rows(6)
        items[0]["prompt"] = "fault:422"
        result = audit(stub, items, tmp_path / "run", methods="direct")
        assert {len(body["questions"]) for body in stub.bodies} == {1}
    assert result.metrics["calls"]["failed"] == 4
    assert "packing" not in result.run


def test_interrupted_run_resumes_without_repeated_calls(tmp_path: Path) -> None:
    data, log = tmp_path / "items.jsonl", tmp_path / "log"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows(60)))
    with DecisionStub(latency_s=0.03, log=log) as stub:
        command = [
            sys.executable,
            "-m",
            "unswayed",
            "audit",
            str(data),
            "--out",
            str(tmp_path / "run"),
        ]
        command += ["--model", "systemone/stub", "--base-url", stub.url, "--max-connections", "1"]
        process = subprocess.Popen(command, env={**os.environ, "COLUMNS": "100"})
        while len(stub.bodies) < 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        done = len(calls(tmp_path / "run"))
        asked = stub.questions
        assert 20 < done < 240
        assert asked == done + 2 * 4  # the probe asks four questions twice more
        result = audit(stub, data, tmp_path / "run", methods="direct,vote,average")
    assert result.metrics["calls"]["cached"] == done
    assert result.metrics["calls"]["made"] == 240 - done
    left = 4 - done % 4  # questions about the state that the stop divided
    assert stub.questions - asked == 240 - done + 2 * (4 if left == 1 else left)


def test_judge_packs_questions_about_one_item() -> None:
    row = rows(1)[0]
    with (
        DecisionStub() as stub,
        us.Judge("systemone/stub", method="average", base_url=stub.url) as judge,
    ):
        first = judge.answer(row["prompt"], row["candidates"])
        again = judge.answer("Another question?", row["candidates"])
        assert [len(body["questions"]) for body in stub.bodies] == [1] * 8 + [4, 4]
    assert first.choice == row["gold"] == again.choice
