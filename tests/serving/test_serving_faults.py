"""Failures of the decision server: an error in the form of the client's API, never a made-up answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from decision_stub import DecisionStub
from served import APIS, MODEL, Reply, answering, body_of, client_of, decision_server, running

from unswayed.backends import BACKENDS, BackendSettings
from unswayed.backends.client import HttpBackend
from unswayed.base.errors import UsageError
from unswayed.serving import server as serving_server
from unswayed.serving.proxy import DecisionServer, Serving
from unswayed.serving.server import Server

OF = {"systemone": 422, "decisions": 400}
"""Status of a body that cannot be read."""
both = pytest.mark.parametrize("api", APIS)


def assert_refused(api: str, reply: Reply, status: int, word: str = "") -> None:
    """Assert that a reply is an error in the form of an API, without any answer."""
    assert reply.status == status, reply.raw
    said = reply.json
    assert "answers" not in said
    if api == "decisions":
        assert set(said) == {"error"}
        assert set(said["error"]) == {"message", "type", "param", "code"}
        words = said["error"]["message"]
    else:
        assert set(said) == {"detail"}
        words = said["detail"][0]["msg"] if isinstance(said["detail"], list) else said["detail"]
    assert word in words


@both
@pytest.mark.parametrize("upstream", APIS)
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("500", 500),
        ("429", 429),
        ("400", 400),
        ("422", 422),
        ("garbage", 502),
        ("empty", 502),
        ("nan", 502),
        ("sum", 502),
        ("other-options", 502),
        ("missing", 502),
        ("cut", 502),
        ("dropped", 502),
        ("slow", 504),
    ],
)
async def test_fault_of_model_reaches_client(
    api: str,
    upstream: str,
    fault: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    stub: DecisionStub,
) -> None:
    monkeypatch.setattr("decision_stub.time.sleep", lambda s: pause(0.5 if s else 0))
    body = body_of(api, ["billing", "support"], f"fault:{fault} x")
    patience = 0.2 if fault == "slow" else 60.0
    async with client_of(decision_server(stub.url, upstream, timeout=patience)) as post:
        reply = await post(f"v1/{api}", body)
        metrics = (await post("metrics")).raw.decode()
    assert_refused(api, reply, status)
    assert (reply.headers.get("Retry-After") == "7") == (status == 429)
    assert "unswayed_serve_choices_total 0\n" in metrics
    assert "unswayed_serve_failed_total 1\n" in metrics


def pause(seconds: float) -> None:
    __import__("threading").Event().wait(seconds)


@pytest.mark.parametrize("value", [1.5, -0.2, "0.5", None, True])
@both
async def test_impossible_answer_to_yes_or_no_is_502(
    api: str, value: Any, stub: DecisionStub
) -> None:
    async def answer(request: web.Request) -> web.Response:
        said = stub.answer(api, await request.json(), 1)[1]
        answers = said["answers"].values() if api == "systemone" else said["answers"]
        field = {"systemone": "noul", "decisions": "probability"}[api]
        for reply in answers:
            if field in reply:
                reply[field] = value
        return web.json_response(said)

    async with answering(answer, api) as url, client_of(decision_server(url, api)) as post:
        assert_refused(api, await post(f"v1/{api}", body_of(api, ["a", "b"])), 502)


@both
async def test_error_of_own_api_passes_unchanged(api: str, stub: DecisionStub) -> None:
    body = body_of(api, ["billing", "support"], "fault:422 x")
    async with client_of(decision_server(stub.url, api)) as post:
        reply = await post(f"v1/{api}", body)
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{stub.url}/{api}", json=body) as direct,
    ):
        assert reply.raw == await direct.read()


def raw_of(api: str, **changes: Any) -> bytes:
    return json.dumps({**body_of(api, ["billing", "support"]), **changes}).encode()


def asked(api: str, **question: Any) -> bytes:
    """A request with one question."""
    named = {"q": question} if api == "systemone" else [question]
    return raw_of(api, questions=named)


@both
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("no JSON", "not JSON"),
        ("NaN", "NaN"),
        ("large number", "too large"),
        ("deep", "nested"),
        ("list", "not a JSON object"),
        ("no questions", "questions"),
        ("empty questions", "questions: empty"),
        ("no options", "empty"),
        ("no levels", "empty"),
        ("text for a question", "questions"),
        ("options of another form", "c"),
        ("levels of another form", "l"),
        ("stream", "stream"),
        ("option twice", "twice"),
    ],
)
async def test_bad_request_is_refused_before_any_call(
    api: str, name: str, word: str, stub: DecisionStub
) -> None:
    own = api == "systemone"
    twice = {
        "systemone": b'{"model":"stub-1","state":"s","questions":{"q":{"type":"choice","criteria":{"a":"x","a":"y"}}}}',
        "decisions": asked(
            api, type="choice", instructions="?", choices=[{"value": "a"}, {"value": "a"}]
        ),
    }
    raw = {
        "no JSON": b"{",
        "NaN": b'{"model": NaN}',
        "large number": b'{"model": "stub-1", "state": 1e999}',
        "deep": b"[" * 100_000,
        "list": b"[]",
        "no questions": b'{"model": "stub-1", "state": "s", "input": "s"}',
        "empty questions": raw_of(api, questions={} if own else []),
        "no options": asked(api, type="choice", **({"criteria": {}} if own else {"choices": []})),
        "no levels": asked(api, type="score", **({"criteria": []} if own else {"levels": []})),
        "text for a question": raw_of(api, questions={"q": "?"} if own else ["?"]),
        "options of another form": asked(
            api, type="choice", **({"criteria": ["a"]} if own else {"choices": {"a": "b"}})
        ),
        "levels of another form": asked(
            api, type="score", **({"criteria": {"a": "b"}} if own else {"levels": ["a"]})
        ),
        "stream": raw_of(api, stream=True),
        "option twice": twice[api],
    }[name]
    async with client_of(decision_server(stub.url, api)) as post:
        assert_refused(api, await post(f"v1/{api}", raw), OF[api], word)
    assert stub.bodies == []


async def test_true_and_text_true_are_one_name_in_system_one(stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, "systemone")) as post:
        reply = await post("v1/decisions", body_of("decisions", [True, "true"]))
        assert_refused("decisions", reply, 400, "true")
    assert stub.bodies == []


@pytest.mark.parametrize(
    ("api", "raw", "word"),
    [
        ("systemone", raw_of("systemone", assets={"a": "b"}), "assets"),
        ("systemone", asked("systemone", type="box", instructions="?"), "box"),
        (
            "systemone",
            asked("systemone", type="noul", criteria={"true": "a", "false": "b"}),
            "noul",
        ),
        ("decisions", raw_of("decisions", tools=[]), "tools"),
        ("decisions", asked("decisions", type="rank", instructions="?"), "rank"),
    ],
)
async def test_field_without_counterpart_is_named(
    api: str, raw: bytes, word: str, stub: DecisionStub
) -> None:
    other = next(name for name in APIS if name != api)
    async with client_of(decision_server(stub.url, other)) as post:
        assert_refused(api, await post(f"v1/{api}", raw), OF[api], word)
    assert stub.bodies == []


async def test_name_with_separator_is_refused(stub: DecisionStub) -> None:
    question = {"type": "choice", "criteria": {"a": "x", "b": "y"}}
    async with client_of(decision_server(stub.url)) as post:
        reply = await post("v1/systemone", raw_of("systemone", questions={"q\x1f0": question}))
        assert_refused("systemone", reply, 422, "U+001F")


@both
async def test_other_model_is_404(api: str, stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, api)) as post:
        assert_refused(api, await post(f"v1/{api}", raw_of(api, model="x")), 404, MODEL)
        assert_refused("decisions", await post("v1/chat/completions", {}), 404, "POST /v1/chat")
        reply = await post(f"v1/{api}")  # GET
        assert_refused(api, reply, 405, f"GET /v1/{api} is not served here")
        assert reply.headers["Allow"] == "POST"
        metrics = (await post("metrics")).raw.decode()
        assert "unswayed_serve_refused_total 3\n" in metrics


@both
async def test_more_options_than_orders_allow_is_400(api: str, stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, api, orders="all")) as post:
        reply = await post(f"v1/{api}", body_of(api, list("abcde")))
        assert_refused(api, reply, 400, "at most 4 options")
    async with client_of(decision_server(stub.url, api)) as post:
        reply = await post(f"v1/{api}", body_of(api, [str(k) for k in range(200)]))
        assert_refused(api, reply, 400, "orders cyclic: at most 128 options, got 200")
    assert stub.bodies == []


@both
async def test_one_option_is_answered_with_certainty(api: str, stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, api)) as post:
        said = (await post(f"v1/{api}", body_of(api, ["billing"]))).json
    answer = said["answers"]["q"] if api == "systemone" else said["answers"][0]
    assert (answer["choice"], answer["confidence"]) == ("billing", 1)


@both
async def test_health_without_a_model_names_the_api(api: str) -> None:
    reach = BackendSettings(base_url="http://127.0.0.1:9/v1", pricing_only=True)
    backend = BACKENDS.load(api)("", reach)
    assert isinstance(backend, HttpBackend)
    async with client_of(DecisionServer(backend, Serving())) as post:
        assert (await post("health")).json["model"] == api


@both
async def test_one_refused_order_refuses_the_question(api: str, stub: DecisionStub) -> None:
    body = body_of(api, ["billing", "support"], "fault:refusal x")
    async with client_of(decision_server(stub.url, "decisions")) as post:
        reply = await post(f"v1/{api}", body)
    if api == "systemone":  # this API has no refusal
        assert_refused(api, reply, 502, "refused")
    else:
        assert [answer["type"] for answer in reply.json["answers"]] == ["refusal"] * 2
        assert [answer["name"] for answer in reply.json["answers"]] == ["q", None]


@pytest.mark.parametrize("mean", ["arithmetic", "log"])
async def test_refused_order_leaves_other_questions(mean: Any, stub: DecisionStub) -> None:
    async def answer(request: web.Request) -> web.Response:
        said = stub.answer("decisions", await request.json(), 1)[1]
        if len(said["answers"]) > 4:
            said["answers"][1] = {"type": "refusal", "name": None}  # the second order of q
        return web.json_response(said)

    body = body_of("decisions", ["a", "b", "c"])
    body["questions"].append({**body["questions"][0], "name": "r"})
    async with answering(answer, "decisions") as url:
        server = decision_server(url, "decisions", mean=mean)
        async with client_of(server) as post:
            reply = await post("v1/decisions", body)
    refused, urgent, other = reply.json["answers"]
    assert refused == {"type": "refusal", "name": "q"}
    assert (urgent["type"], other["type"]) == ("predicate", "choice")
    assert sum(p["probability"] for p in other["probabilities"]) == pytest.approx(1)


@asynccontextmanager
async def failing_after(good: int) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server whose answers after so many are 503; one that refuses every other question."""
    bodies: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        bodies.append(body := await request.json())
        if len(bodies) > good:
            return web.Response(status=503, text="busy", headers={"Retry-After": "3"})
        api = request.path.rpartition("/")[2]
        return web.json_response(DecisionStub.answer(stub, api, body, 1)[1])

    with DecisionStub() as stub:
        async with answering(answer, *APIS) as url:
            yield url, bodies


@both
async def test_failed_part_fails_the_whole(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unswayed.serving.proxy.MOST_QUESTIONS", 2)
    # 4 alone, 4 again, packed, then 5 questions in 3 parts, of which the last one fails
    async with failing_after(11) as (url, bodies):
        async with client_of(decision_server(url, api)) as post:
            reply = await post(f"v1/{api}", body_of(api, list("abcd")))
        assert len(bodies) == 12
        assert (reply.status, reply.raw) == (503, b"busy")
        assert reply.headers["Retry-After"] == "3"


@both
async def test_unreachable_model_is_502(api: str) -> None:
    async with client_of(decision_server("http://127.0.0.1:9/v1", api)) as post:
        assert_refused(api, await post(f"v1/{api}", body_of(api, ["a", "b"])), 502, "reached")


@both
async def test_redirect_is_not_followed(api: str) -> None:
    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/")

    async with answering(redirect, api) as url, client_of(decision_server(url, api)) as post:
        assert_refused(api, await post(f"v1/{api}", body_of(api, ["a", "b"])), 502, "307")


@both
async def test_long_body_is_413(
    api: str, monkeypatch: pytest.MonkeyPatch, stub: DecisionStub
) -> None:
    monkeypatch.setattr(serving_server, "MOST_BYTES", 1000)
    async with client_of(decision_server(stub.url, api)) as post:
        body = body_of(api, ["a", "b"], "x" * 1000)
        assert_refused(api, await post(f"v1/{api}", body), 413, "1000 bytes")
    assert stub.bodies == []


@both
async def test_request_beyond_limit_is_429(api: str) -> None:
    body = body_of(api, ["a", "b"])
    with DecisionStub(latency_s=0.2) as stub:
        async with client_of(decision_server(stub.url, api, max_open=1)) as post:
            replies = await asyncio.gather(*(post(f"v1/{api}", body) for _ in range(3)))
            done = [reply for reply in replies if reply.status == 200]
            refused = [reply for reply in replies if reply.status == 429]
            assert (len(done), len(refused)) == (1, 2)
            assert_refused(api, refused[0], 429, "1 requests")
            assert refused[0].headers["Retry-After"] == "1"
            assert b"unswayed_serve_refused_total 2\n" in (await post("metrics")).raw


@both
async def test_token_is_required_and_not_passed_on(api: str, stub: DecisionStub) -> None:
    service = {"systemone": "TYPESAFE", "decisions": "OPENAI"}[api]
    body = body_of(api, ["a", "b"])
    environ = {f"{service}_API_KEY": "sk-model", f"{service}_BASE_URL": stub.url}
    server = decision_server(stub.url, api, token="secret", environ=environ)
    async with client_of(server) as post:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            reply = await post(f"v1/{api}", body, headers=headers)
            assert_refused(api, reply, 401, "token")
            assert reply.headers["WWW-Authenticate"] == "Bearer"
            assert (await post("metrics", headers=headers)).status == 401
            assert (await post("health", headers=headers)).status == 200
        assert stub.bodies == []
        for name in ("Authorization", "authorization"):
            good = {name: "Bearer secret"}
            assert (await post(f"v1/{api}", body, headers=good)).status == 200
            assert (await post("metrics", headers=good)).status == 200
    assert {headers["authorization"] for headers in stub.headers} == {"Bearer sk-model"}


@both
async def test_token_of_other_bytes_is_401(api: str, stub: DecisionStub) -> None:
    server = decision_server(stub.url, api, token="secret")
    async with running(server.application()) as url:
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        writer.write(f"POST /v1/{api} HTTP/1.1\r\nHost: x\r\n".encode())
        writer.write(b"Authorization: Bearer \xff\r\nContent-Length: 0\r\n\r\n")
        assert b" 401 " in await reader.readline()
        writer.close()


@both
async def test_name_of_api_alone_passes_any_model_on(api: str, stub: DecisionStub) -> None:
    server = decision_server(stub.url, api)
    server.name = ""
    async with client_of(server) as post:
        assert (await post(f"v1/{api}", raw_of(api, model="another"))).status == 200
    assert {body["model"] for body in stub.bodies} == {"another"}


@both
async def test_authorization_is_passed_on_without_token(api: str, stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url, api)) as post:
        body = body_of(api, ["a", "b"])
        await post(f"v1/{api}", body, headers={"Authorization": "Bearer own", "X-Mine": "1"})
    assert {headers["authorization"] for headers in stub.headers} == {"Bearer own"}
    assert {headers["x-mine"] for headers in stub.headers} == {"1"}


def prices(folder: Path, api: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(f'as_of = "x"\n[models."{api}/{MODEL}"]\ninput = 1.0\noutput = 0.0\n')
    return path


@both
async def test_budget_stops_with_402(api: str, tmp_path: Path, stub: DecisionStub) -> None:
    body = body_of(api, ["a", "b"])
    how = {"budget": 0.005, "prices": prices(tmp_path, api)}
    async with client_of(decision_server(stub.url, api, **how)) as post:
        statuses = []
        while not statuses or statuses[-1] == 200:
            statuses.append((reply := await post(f"v1/{api}", body)).status)
        assert len(statuses) > 5
        assert_refused(api, reply, 402, "could exceed the budget of 0.005 USD")
        metrics = (await post("metrics")).raw.decode()
    spent = float(metrics.partition("spent_usd ")[2].split()[0])
    assert spent == pytest.approx(stub.input_tokens / 1e6)
    assert spent <= 0.005


async def test_answer_without_usage_counts_the_most(tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.Response:
        return web.json_response({"model": "m", "answers": {"n": {"type": "noul", "noul": 0.5}}})

    raw = asked("systemone", type="noul")
    async with answering(silent, "systemone") as url:
        server = decision_server(url, budget=1.0, prices=prices(tmp_path, "systemone"))
        async with client_of(server) as post:
            assert (await post("v1/systemone", raw)).status == 200
    assert server.spent == pytest.approx(len(raw) / 1e6)


def test_budget_without_price_is_an_error() -> None:
    with pytest.raises(UsageError, match="no known price"):
        decision_server("https://example.org/v1", budget=1.0)


def test_public_host_requires_token() -> None:
    with pytest.raises(UsageError, match="UNSWAYED_SERVE_TOKEN"):
        serving_server.run(Server({}), host="0.0.0.0", port=0, timeout=1)


@both
async def test_client_that_leaves_cancels_its_call(api: str) -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        begun.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            left.set()
            raise
        raise AssertionError

    async with answering(answer, api) as url:
        server = decision_server(url, api)
        async with client_of(server) as post:
            call = asyncio.ensure_future(post(f"v1/{api}", body_of(api, ["a", "b"])))
            await begun.wait()
            assert server.open == 1
            call.cancel()
            await asyncio.wait_for(left.wait(), 10)
            while server.open:
                await asyncio.sleep(0.01)
