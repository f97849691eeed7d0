"""`POST /v1/judge`: the verdicts of `Judge` over HTTP."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from served import client_of

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.calls import shadow
from unswayed.serving.server import JudgeServer

MODEL = "simulated/judge?slot=0.6&label=0.4"
ITEM = {"prompt": "Which?", "candidates": ["one", "two"]}


def as_body(item: us.Item) -> dict[str, Any]:
    return {"id": item.id, "prompt": item.prompt, "candidates": list(item.candidates)}


@pytest.mark.parametrize("method", ["direct", "average"])
async def test_served_verdicts_equal_those_of_judge(method: str) -> None:
    items = [us.Item(**as_body(item)) for item in simulated_items(50)]
    with us.Judge(MODEL, method=method) as judge:
        wanted = [json.loads(msgspec.json.encode(verdict)) for verdict in judge.verdicts(items)]
    server = JudgeServer(us.Judge(MODEL, method=method))
    async with client_of(server) as post:
        bodies = [as_body(item) for item in items]
        replies = await asyncio.gather(*(post("v1/judge", body) for body in bodies))
        health = (await post("health")).json
        metrics = (await post("metrics")).raw.decode()
    assert [reply.json for reply in replies] == wanted
    assert {reply.status for reply in replies} == {200}
    assert health == {"model": server.judge.model, "method": method}
    assert "unswayed_serve_requests_total 50\n" in metrics
    flipped = sum(verdict.get("consistent") is False for verdict in wanted)
    assert f"unswayed_serve_flipped_total {flipped}\n" in metrics


@pytest.mark.parametrize("named", [True, False])
async def test_escalated_verdicts_ignore_the_order_of_the_candidates(
    tmp_path: Path, named: bool
) -> None:
    file, items, model = tmp_path / "fitted.json", simulated_items(212, 3), f"{MODEL}&noise=1"
    us.calibrate("escalate:share=0.1", items[:200], model, out=file)
    server = JudgeServer(us.Judge(model, method=us.load_method(file)))
    counts = []
    async with client_of(server) as post:
        for item in items[200:]:
            told = set()
            body = {**as_body(item), "task": "mcq", "id": item.id if named else ""}
            for given in itertools.permutations(item.candidates):
                verdict = (await post("v1/judge", {**body, "candidates": list(given)})).json
                sure = round(verdict["confidence"], 12)
                told.add((given[verdict["choice"]], verdict["n_calls"], sure))
            assert len(told) == 1
            counts.append(told.pop()[1])
        metrics = (await post("metrics")).raw.decode()
    assert len(set(counts)) > 1
    assert f"unswayed_serve_upstream_requests_total {sum(counts)}\n" in metrics
    assert f"unswayed_serve_choices_total {6 * len(counts)}\n" in metrics


async def test_shadow_finds_drift_of_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "WINDOW", 40)
    fitted, old = tmp_path / "fitted.json", tmp_path / "old.json"
    us.calibrate("pride", simulated_items(100), MODEL, out=fitted)
    content = json.loads(fitted.read_text())
    wrong = {"values": [0.5, 0.5], "low": [0.48, 0.48], "high": [0.52, 0.52]}
    content["method"]["priors"][0] |= wrong
    old.write_text(json.dumps(content))
    p_values = []
    for file in (fitted, old):
        judge = us.Judge(MODEL, method=us.load_method(file), shadow=1.0)
        async with client_of(JudgeServer(judge)) as post:
            for item in simulated_items(139)[100:]:
                await post("v1/judge", as_body(item))
                await post("v1/judge", as_body(item))  # recorded: it tells nothing new
            assert "shadow_p_value" not in (await post("metrics")).raw.decode()
            await post("v1/judge", as_body(simulated_items(140)[-1]))
            for item in simulated_items(140)[100:]:
                await post("v1/judge", as_body(item))
            metrics = (await post("metrics")).raw.decode()
        p_values.append(float(metrics.partition("shadow_p_value ")[2]))
        assert (judge.shadow.size, judge.shadow.looks.count) == (0, 1)
    assert p_values[1] < 0.001 < 0.01 < p_values[0]


async def test_item_without_id_is_named_by_its_content() -> None:
    async with client_of(JudgeServer(us.Judge(MODEL, method="direct"))) as post:
        ids = [(await post("v1/judge", ITEM)).json["item_id"] for _ in range(2)]
    assert ids[0] == ids[1]
    assert ids[0].startswith("item-")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "property name"),
        (b'{"prompt": "\xff"}', "utf-8"),
        (b'{"prompt": ' + b"[" * 100_000, "nested"),
        (b'{"prompt": "a", "prompt": "b", "candidates": ["one", "two"]}', "twice"),
        ({**ITEM, "gold": 1}, "gold"),
        ({"prompt": "Which?"}, "candidates"),
        ({**ITEM, "candidates": ["one"]}, "candidates"),
        ({**ITEM, "task": "mqc"}, "task"),
        ({**ITEM, "candidates": "one"}, "array"),
    ],
)
async def test_bad_item_is_400_with_its_field(body: Any, word: str) -> None:
    async with client_of(JudgeServer(us.Judge(MODEL, method="direct"))) as post:
        reply = await post("v1/judge", body)
    assert reply.status == 400
    assert word in reply.json["error"]["message"]


async def test_lines_are_answered_in_order() -> None:
    def judge(prompt: str, candidates: list[str]) -> int:
        if "broken" in prompt:
            raise RuntimeError("no judge today")
        return candidates.index(min(candidates))

    bodies = [{**ITEM, "id": f"i{k}"} for k in range(150)]
    bodies[70] = {**ITEM, "id": "x", "prompt": "broken"}
    bodies[80] = {**ITEM, "gold": 1}
    raw = "\n\n".join(map(json.dumps, bodies)).encode()
    async with client_of(JudgeServer(us.Judge(judge, method="direct"))) as post:
        headers = {"Content-Type": "application/x-ndjson"}
        reply = await post("v1/judge", raw, headers=headers)
        metrics = (await post("metrics")).raw.decode()
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    said = [json.loads(line) for line in reply.raw.splitlines()]
    assert set(said[70]) == {"item_id", "error"}
    assert "gold" in said[80]["error"]
    ids = [line.get("item_id") for line in said]
    assert ids == [None if k == 80 else body["id"] for k, body in enumerate(bodies)]
    assert {line["choice"] for line in said if "choice" in line} == {0}
    assert "unswayed_serve_choices_total 148\n" in metrics
    assert "unswayed_serve_upstream_requests_total 1\n" in metrics
    assert "unswayed_serve_failed_total 1\n" in metrics
    assert "unswayed_serve_refused_total 1\n" in metrics


async def test_failed_call_is_502_and_no_verdict() -> None:
    def broken(prompt: str, candidates: list[str]) -> int:
        raise RuntimeError("no judge today")

    async with client_of(JudgeServer(us.Judge(broken, method="direct"))) as post:
        reply = await post("v1/judge", ITEM)
    assert reply.status == 502
    assert set(reply.json) == {"error"}
    assert "no verdict" in reply.json["error"]["message"]


async def test_token_guards_judge() -> None:
    server = JudgeServer(us.Judge(MODEL, method="direct"), token="secret")
    async with client_of(server) as post:
        assert (await post("v1/judge", ITEM)).status == 401
        headers = {"Authorization": "Bearer secret"}
        assert (await post("v1/judge", ITEM, headers=headers)).status == 200
        assert json.loads((await post("health")).raw)["method"] == "direct"
