"""Several questions in one request: the same answers, the probe, faults and resuming."""

import asyncio
import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from decision_stub import BOTH, DecisionStub, rows

import unswayed as us
from fakes import failures
from forked import Forked, command
from unswayed.backends import BackendSettings, open_backend
from unswayed.calls import Caller, Question, RunSettings
from unswayed.calls.calibration import prompts_for
from unswayed.methods.names import parse_method
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore, Memory


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
        packed = audit(stub, rows(12), tmp_path / "packed", api)
        requests, billed = len(stub.bodies), stub.input_tokens
        audit(stub, rows(12), tmp_path / "single", api, pack=1)
    single = len(stub.bodies) - requests
    assert single == 48
    assert requests == 11 + 2 * 4 + 1
    assert packed.run["packing"] == {"pack": 16, "difference": 0.0, "noise": 0.0}
    one, other = ((tmp_path / name / "answers.json").read_bytes() for name in ("packed", "single"))
    assert one == other
    assert calls(tmp_path / "packed") == calls(tmp_path / "single")
    assert tokens(tmp_path / "packed") == billed
    assert "packing" not in json.loads((tmp_path / "single/run.json").read_text())


@BOTH
def test_mixed_questions_are_asked_alone(api, tmp_path: Path) -> None:
    with DecisionStub(mixes=2.0) as stub:
        result = audit(stub, rows(12), tmp_path / "mixed", api)
        assert sorted({len(body["questions"]) for body in stub.bodies}) == [1, 4]
        assert sum(len(body["questions"]) > 1 for body in stub.bodies) == 1
        audit(stub, rows(12), tmp_path / "single", api, pack=1)
    packing = result.run["packing"]
    assert packing["pack"] == 1
    assert packing["difference"] > 0.1
    assert packing["noise"] == 0.0
    assert any("differently" in text for text in result.run["warnings"])
    assert calls(tmp_path / "mixed") == calls(tmp_path / "single")
    one, other = ((tmp_path / name / "answers.json").read_bytes() for name in ("mixed", "single"))
    assert one == other


def test_noise_of_server_does_not_count_as_mixing(tmp_path: Path) -> None:
    with DecisionStub(noise=0.2) as stub:
        result = audit(stub, rows(30), tmp_path / "run", max_connections=1)
    packing = result.run["packing"]
    assert packing["pack"] == 16
    assert 0.02 < packing["difference"] < 2 * packing["noise"]


def test_bad_question_costs_its_own_item_only(tmp_path: Path) -> None:
    items = [{**row, "prompt": "One state?"} for row in rows(16, n=2)]
    items[11]["candidates"] = ["fault:422", "fine"]
    with DecisionStub() as stub:
        result = audit(stub, items, tmp_path / "run", methods="direct")
    with CallStore.open(tmp_path / "run", read_only=True) as store:
        named = {failure.message.partition(":")[0] for _, _, failure, _ in failures(store)}
    assert result.metrics["calls"]["failed"] == 2
    assert named == {"q11"}
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


def started(stub: DecisionStub, data: Path, folder: Path) -> Forked:
    """An audit of a file that asks one request after another."""
    reach = ("--model", "systemone/stub", "--base-url", stub.url, "--max-connections", 1)
    return command(folder, "audit", data, "--out", folder / "run", *reach)


def test_interrupted_run_resumes_without_repeated_calls(tmp_path: Path) -> None:
    data = tmp_path / "items.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows(60)))
    with DecisionStub(latency_s=0.03) as stub:
        process = started(stub, data, tmp_path)
        while len(stub.bodies) < 20 and process.is_alive:
            time.sleep(0.01)
        process.send(signal.SIGINT)
        assert process.code() == 130
        done = len(calls(tmp_path / "run"))
        asked = stub.questions
        assert 20 < done < 240
        assert asked == done + 2 * 4  # the probe asks four questions twice more
        result = audit(stub, data, tmp_path / "run", methods="direct,vote,average")
    assert result.metrics["calls"]["cached"] == done
    assert result.metrics["calls"]["made"] == 240 - done
    left = 4 - done % 4  # questions about the state that the stop divided
    assert stub.questions - asked == 240 - done + 2 * (4 if left == 1 else left)


class HoldingStub(DecisionStub):
    """A stub that holds one request until it may go on."""

    def __init__(self, held: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.held, self.is_held, self.go_on = held, threading.Event(), threading.Event()

    def answer(self, api: str, body: dict[str, Any], number: int) -> tuple[int, Any]:
        if number == self.held:
            self.is_held.set()
            self.go_on.wait(60)
        return super().answer(api, body, number)


def asked(bodies: list[dict[str, Any]]) -> set[str]:
    """State and question of all questions in some requests."""
    return {json.dumps([b["state"], q]) for b in bodies for q in b["questions"].values()}


def test_kill_between_requests_repeats_no_recorded_call(tmp_path: Path) -> None:
    data, out = tmp_path / "items.jsonl", tmp_path / "run"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows(30)))
    with HoldingStub(25) as stub:
        process = started(stub, data, tmp_path)
        assert stub.is_held.wait(60)
        before = asked(stub.bodies[:24])
        end = time.monotonic() + 30
        while len(calls(out)) < len(before) and time.monotonic() < end:
            time.sleep(0.05)
        process.send(signal.SIGKILL)
        process.code()
        stub.go_on.set()
        assert len(calls(out)) == len(before) == 64
        result = audit(stub, data, out, methods="direct,vote,average")
        after = asked(stub.bodies[25:])
    assert not before & after
    assert len(before | after) == 120
    assert result.metrics["calls"]["cached"] == 64
    assert result.metrics["calls"]["made"] == 56


@pytest.mark.parametrize(("mixes", "pack"), [(0.0, 16), (2.0, 1)])
def test_run_and_fitted_file_keep_packing_without_new_call(
    mixes: float, pack: int, tmp_path: Path
) -> None:
    file = tmp_path / "pride.json"
    with DecisionStub(mixes=mixes) as stub:
        runs = [audit(stub, rows(6), tmp_path / "run").run["packing"] for _ in range(2)]
        files = []
        for _ in range(2):
            us.calibrate("pride", rows(20), "systemone/stub", base_url=stub.url, out=file)
            files.append(file.read_bytes())
        n_asked = stub.questions
        assert (runs[0], files[0]) == (runs[1], files[1])
        us.calibrate("pride", rows(20), "systemone/stub", base_url=stub.url, out=file)
        assert stub.questions == n_asked
        assert us.load_method(file).pack == runs[0]["pack"] == pack
        us.calibrate(
            "pride", rows(20), "systemone/stub", base_url=stub.url, out=tmp_path / "x.json", pack=1
        )
    assert "pack" not in json.loads((tmp_path / "x.json").read_bytes())


def test_budget_covers_probe(tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('as_of = "x"\n[models."systemone/stub"]\ninput = 1.0\noutput = 0.0\n')

    class DearStub(DecisionStub):
        tokens = 0

        def answer(self, api: str, body: dict[str, Any], number: int) -> tuple[int, Any]:
            status, said = super().answer(api, body, number)
            said["usage"]["input_tokens"] = self.tokens * len(body["questions"]) or None
            return status, said

    item = us.Item(**rows(1)[0])
    questions = [Question(item, ask) for ask in parse_method("average").asks(4)]
    with DearStub() as stub:

        def caller(budget: float | None) -> Caller:
            backend = open_backend(
                "systemone/stub", BackendSettings(base_url=stub.url, prices=table)
            )
            prompts = prompts_for(backend, PromptSettings())
            return Caller(backend, Memory(), RunSettings(prompts=prompts, budget_usd=budget))

        most = caller(None).price(questions).most_cost_usd
        assert most is not None
        stub.tokens = int(1e6 * most / 12)  # of four questions, each of which may be probed
        for share, made in ((0.99, 4), (0.2, 0), (1.0, 4)):
            asked_before = stub.questions
            counts = asyncio.run(caller(share * most).ask(questions))
            assert (stub.questions - asked_before) * stub.tokens / 1e6 <= share * most
            assert counts.made == made
        stub.tokens = 0  # the server counts none
        counts = asyncio.run(caller(most).ask(questions))
        assert counts.cost_usd == pytest.approx(most)
        assert counts.unknown_usage == 4


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
