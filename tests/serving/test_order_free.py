"""Answers of the decision server: equal for every order of the options, in both APIs."""

import json
import random
from typing import Any

import aiohttp
import pytest
from decision_stub import DecisionStub, liking, softmax
from served import (
    APIS,
    MODEL,
    TEXTS,
    body_of,
    choice,
    client_of,
    decision_server,
    probabilities,
)

from unswayed.backends.typed_apis import SystemOne, TypedOption, TypedQuestion, figures

PAIRS = [(ours, theirs) for ours in APIS for theirs in APIS]


@pytest.mark.parametrize(("api", "upstream"), PAIRS)
@pytest.mark.parametrize("n", range(2, 9))
async def test_answers_do_not_depend_on_order(
    api: str, upstream: str, n: int, stub: DecisionStub
) -> None:
    names = list(TEXTS)[:n]
    async with client_of(decision_server(stub.url, upstream)) as post:
        random_orders = random.Random(n)
        first = None
        for _ in range(200 if api == upstream else 20):
            random_orders.shuffle(names)
            reply = await post(f"v1/{api}", body_of(api, names))
            assert reply.status == 200
            found = probabilities(api, reply.json)
            assert list(found) == names
            assert sum(found.values()) == pytest.approx(1)
            first = first or found
            assert max(abs(first[name] - found[name]) for name in names) == 0.0
            assert choice(api, reply.json) == max(found, key=found.__getitem__)
    sent = {json.dumps(body["questions"]) for body in stub.bodies if len(body["questions"]) > n}
    assert len(sent) == 1


def test_answers_of_stub_depend_on_order() -> None:
    with DecisionStub() as stub:
        options = list(TEXTS.items())[:3]
        assert stub.probabilities(options)[0] > stub.probabilities(options[::-1])[-1] + 0.1


@pytest.mark.parametrize(("orders", "count"), [("cyclic", 3), ("reverse", 2), ("all", 6)])
async def test_mean_is_of_the_orders_that_were_asked(
    orders: Any, count: int, stub: DecisionStub
) -> None:
    names = ["billing", "sales", "support"]
    async with client_of(decision_server(stub.url, orders=orders)) as post:
        reply = await post("v1/systemone", body_of("systemone", names[::-1]))
    asked = stub.bodies[-1]["questions"]
    rows = [asked[f"q\x1f{k}"]["criteria"] for k in range(count)]
    assert [list(row) for row in rows][:1] == [names]
    probs = [dict(zip(row, stub.probabilities(list(row.items())), strict=True)) for row in rows]
    found = probabilities("systemone", reply.json)
    assert found == pytest.approx(
        {name: sum(p[name] for p in probs) / count for name in names}, abs=1e-15
    )
    best = max(found.values())
    assert reply.json["answers"]["q"]["confidence"] == pytest.approx((best - 1 / 3) / (2 / 3))
    assert reply.json["answers"]["n"] == {
        "type": "noul",
        "noul": pytest.approx(stub.probabilities([("true", "true"), ("false", "false")])[0]),
    }


async def test_log_mean_recovers_content_exactly(stub: DecisionStub) -> None:
    """Where the bias adds to the score, the log mean over a Latin square is the content's softmax."""
    names = ["billing", "legal", "sales", "support"]
    async with client_of(decision_server(stub.url, mean="log")) as post:
        reply = await post("v1/systemone", body_of("systemone", names))
    content = softmax([2 * liking(TEXTS[name]) for name in names])
    found = probabilities("systemone", reply.json)
    assert list(found.values()) == pytest.approx(content, abs=1e-8)


@pytest.mark.parametrize("api", APIS)
async def test_request_without_choice_passes_byte_for_byte(api: str, stub: DecisionStub) -> None:
    raw = {
        "systemone": b'{"model":"stub-1",  "state":"s","questions":{"n":{"type":"noul","instructions":"?"}}}',
        "decisions": b'{"model":"stub-1",  "input":"s","questions":[{"type":"predicate","instructions":"?"}]}',
    }[api]
    async with client_of(decision_server(stub.url, api)) as post:
        reply = await post(f"v1/{api}", raw)
        metrics = await post("metrics")
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{stub.url}/{api}", data=raw) as direct,
    ):
        assert (reply.status, reply.raw) == (direct.status, await direct.read())
        assert reply.headers["content-type".title()] == direct.headers["content-type"]
    assert b"unswayed_serve_passed_through_total 1\n" in metrics.raw


@pytest.mark.parametrize("api", APIS)
async def test_orders_none_changes_nothing(api: str, stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, api, orders="none")) as post:
        body = body_of(api, ["support", "billing"])
        reply = await post(f"v1/{api}", json.dumps(body, indent=3).encode())
    assert stub.bodies == [body]
    assert reply.json == stub.answer(api, body, 1)[1]


@pytest.mark.parametrize("api", APIS)
async def test_orders_none_is_translated_in_its_own_order(api: str, stub: DecisionStub) -> None:
    upstream = next(other for other in APIS if other != api)
    names = ["support", "billing"]
    async with client_of(decision_server(stub.url, upstream, orders="none")) as post:
        reply = await post(f"v1/{api}", body_of(api, names))
    assert len(stub.bodies) == 1
    probs = stub.probabilities([(name, TEXTS[name]) for name in names])
    wanted = dict(zip(names, probs, strict=True))
    assert probabilities(api, reply.json) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("kind", "probs", "sure"),
    [
        ("choice", [1.0], 1.0),
        ("choice", [0.25, 0.75], 0.5),
        ("choice", [0.5, 0.5], 0.0),
        ("score", [1.0], 1.0),
        ("score", [0.0, 1.0, 0.0], 1.0),
        ("score", [0.2, 0.6, 0.2], 0.4),  # 1 - 0.4 / (2/3)
    ],
)
def test_confidence_is_that_of_system_one(kind: str, probs: list[float], sure: float) -> None:
    options = tuple(TypedOption(str(k), None, None) for k in range(len(probs)))
    question = TypedQuestion(SystemOne(), kind, options, {})
    assert figures(question, probs)["confidence"] == pytest.approx(sure)


@pytest.mark.parametrize("api", APIS)
async def test_split_request_has_equal_answers(
    api: str, monkeypatch: pytest.MonkeyPatch, stub: DecisionStub
) -> None:
    found = []
    for most in (64, 3):
        monkeypatch.setattr("unswayed.serving.proxy.MOST_QUESTIONS", most)
        async with client_of(decision_server(stub.url, api)) as post:
            reply = await post(f"v1/{api}", body_of(api, list(TEXTS)))
        assert reply.status == 200
        found.append(reply.json["answers"])
    assert found[0] == found[1]
    assert stub.questions > 2 * len(TEXTS)


@pytest.mark.parametrize("api", APIS)
async def test_mixed_questions_are_asked_one_by_one(api: str) -> None:
    with DecisionStub(mixes=2.0) as stub, DecisionStub() as plain:
        answers = []
        for mixes in (stub, plain):
            async with client_of(decision_server(mixes.url, api)) as post:
                reply = await post(f"v1/{api}", body_of(api, list(TEXTS)[:4]))
            answers.append(reply.json["answers"])
        assert answers[0] == answers[1]
        assert [len(body["questions"]) for body in stub.bodies][-5:] == [1] * 5
        assert [len(body["questions"]) for body in plain.bodies][-1] == 5


@pytest.mark.parametrize(("api", "upstream"), PAIRS)
async def test_score_is_asked_forwards_and_backwards(api: str, upstream: str) -> None:
    levels = ["poor", "fair", "good"]
    question = {
        "systemone": {"type": "score", "instructions": "How good?", "criteria": levels},
        "decisions": {
            "type": "score",
            "instructions": "How good?",
            "levels": [{"label": level} for level in levels],
        },
    }[api]
    with DecisionStub(mixture=0.4) as stub:
        async with client_of(decision_server(stub.url, upstream)) as post:
            body = {
                "systemone": {"model": MODEL, "state": "s", "questions": {"q": question}},
                "decisions": {"model": MODEL, "input": "s", "questions": [question]},
            }[api]
            said = (await post(f"v1/{api}", body)).json["answers"]
        found = said["q"] if api == "systemone" else said[0]
        values = found["probabilities"]
        probs = list(values.values()) if api == "systemone" else [p["probability"] for p in values]
        own = softmax([2 * liking(level) for level in levels])
        line = [3 / 6, 2 / 6, 1 / 6]
        even = [0.6 * p + 0.4 * (a + b) / 2 for p, a, b in zip(own, line, line[::-1], strict=True)]
        assert probs == pytest.approx(even, abs=1e-12)
        assert found["score"] == pytest.approx(sum(k * p for k, p in enumerate(even)))
        if api == "systemone":
            assert found["legend"] == {"0": "poor", "1": "fair", "2": "good"}
        else:
            assert [(p["value"], p["label"]) for p in values] == list(enumerate(levels))


async def test_polarity_removes_yes_bias(stub: DecisionStub) -> None:
    sides = {"true": "The text is friendly.", "false": "The text is hostile."}
    question = {"type": "noul", "instructions": "?", "criteria": sides}
    body = {"model": MODEL, "state": "s", "questions": {"q": question}}
    found = []
    for polarity in (True, False):
        async with client_of(decision_server(stub.url, polarity=polarity)) as post:
            found.append((await post("v1/systemone", body)).json["answers"]["q"]["noul"])
    own = stub.probabilities(list(sides.items()))
    turned = stub.probabilities(list(zip(sides, reversed(sides.values()), strict=True)))
    assert found == pytest.approx([(own[0] + 1 - turned[0]) / 2, own[0]])


@pytest.mark.parametrize(
    ("upstream", "given"),
    [("decisions", ["support", True, "true"]), ("systemone", ["support", True, "True"])],
)
async def test_values_keep_their_kind_and_names_stay_null(
    upstream: str, given: list[Any], stub: DecisionStub
) -> None:
    body = body_of("decisions", given)
    del body["questions"][0]["name"]
    async with client_of(decision_server(stub.url, upstream)) as post:
        said = (await post("v1/decisions", body)).json
    values = [p["value"] for p in said["answers"][0]["probabilities"]]
    assert [(type(value), value) for value in values] == [(type(value), value) for value in given]
    assert [answer["name"] for answer in said["answers"]] == [None, None]


@pytest.mark.parametrize("api", APIS)
async def test_equal_options_are_decided_by_their_name(api: str) -> None:
    with DecisionStub(named=0.0) as stub:
        async with client_of(decision_server(stub.url, api)) as post:
            found = set()
            for names in (["sales", "legal"], ["legal", "sales"]):
                body = body_of(api, names)
                raw = json.dumps(body).replace("Contracts", "same").replace(TEXTS["sales"], "same")
                found.add(choice(api, (await post(f"v1/{api}", raw.encode())).json))
            assert len(found) == 1


async def test_usage_is_the_sum_over_requests(
    monkeypatch: pytest.MonkeyPatch, stub: DecisionStub
) -> None:
    monkeypatch.setattr("unswayed.serving.proxy.MOST_QUESTIONS", 2)
    async with client_of(decision_server(stub.url, "decisions")) as post:
        await post("v1/decisions", body_of("decisions", ["a", "b"]))
        before = stub.input_tokens
        reply = await post("v1/decisions", body_of("decisions", list(TEXTS)[:5]))
        metrics = (await post("metrics")).raw.decode()
    assert reply.json["usage"]["input_tokens"] == stub.input_tokens - before
    assert reply.json["usage"]["total_tokens"] == stub.input_tokens - before
    assert f"unswayed_serve_upstream_input_tokens_total {stub.input_tokens}\n" in metrics
    assert f"unswayed_serve_upstream_requests_total {len(stub.bodies)}\n" in metrics
    assert "unswayed_serve_choices_total 2\n" in metrics


async def test_flips_are_counted() -> None:
    with DecisionStub(first=9.0) as stub, DecisionStub(first=0.0) as fair:
        async with client_of(decision_server(stub.url)) as post:
            await post("v1/systemone", body_of("systemone", ["billing", "support"]))
            assert b"unswayed_serve_flipped_total 1\n" in (await post("metrics")).raw
        async with client_of(decision_server(fair.url)) as post:
            await post("v1/systemone", body_of("systemone", ["billing", "support"]))
            assert b"unswayed_serve_flipped_total 0\n" in (await post("metrics")).raw
