"""Clients and models that misbehave at the level of HTTP: an error or an answer, no traceback, no place held."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from decision_stub import DecisionStub
from served import MODEL, answering, body_of, client_of, decision_server, running

from unswayed.serving import server as serving_server

RAW = json.dumps(body_of("systemone", ["a", "b"])).encode()


async def exchanged(url: str, headers: bytes, body: bytes = RAW, *, size: int = 0) -> bytes:
    """Send a request with these header lines as they are; what comes back."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (size or len(body))
    writer.write(b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\n" + headers + length + body)
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        (b"Authorization: Bearer \xff\r\n", "secret", b"401"),
        (b"Authorization: Bearer \xff\r\n", "", b"200"),
        (b"Content-Encoding: gzip\r\n", "", b"400"),
        (b"Content-Encoding: deflate\r\n", "", b"400"),
        (b"Expect: 100-continue\r\n", "", b"200"),
    ],
)
async def test_odd_header_is_answered_without_traceback(
    headers: bytes, token: str, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "aiohttp"), DecisionStub() as stub:
        environ = {"TYPESAFE_API_KEY": "k", "TYPESAFE_BASE_URL": stub.url}
        server = decision_server(stub.url, token=token, environ=environ, timeout=5)
        async with running(server.application()) as url:
            reply = await exchanged(url, headers)
        reply = reply.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 " + status), reply
        assert bool(stub.bodies) == (status == b"200")
    assert not caplog.records


async def test_slow_body_holds_no_place(
    monkeypatch: pytest.MonkeyPatch, stub: DecisionStub
) -> None:
    monkeypatch.setattr(serving_server, "SLOWEST", 0.5)
    server = decision_server(stub.url, max_open=1)
    async with running(server.application()) as url:
        slow = asyncio.ensure_future(exchanged(url, b"", b"{", size=9))
        await asyncio.sleep(0.1)
        assert (await exchanged(url, b"")).startswith(b"HTTP/1.1 200")
        assert (await slow).startswith(b"HTTP/1.1 408")


async def test_described_sides_of_another_form_reach_the_model(stub: DecisionStub) -> None:
    async with client_of(decision_server(stub.url)) as post:
        for criteria in (5, [[1]], True):
            question = {"type": "noul", "instructions": "?", "criteria": criteria}
            body = {"model": MODEL, "state": "fault:422 x", "questions": {"q": question}}
            assert (await post("v1/systemone", body)).status == 422
    assert len(stub.bodies) == 3


Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def cutting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{")
    writer.close()


async def test_requests_behind_a_silent_model_time_out_together() -> None:
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as model:
        url = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
        async with client_of(decision_server(url, timeout=0.2)) as post:
            start = time.monotonic()
            replies = await asyncio.gather(*(post("v1/systemone", RAW) for _ in range(12)))
    assert {reply.status for reply in replies} == {504}
    assert time.monotonic() - start < 1.8  # one after another: 2.4


@pytest.mark.parametrize("answer", [silent, cutting])
async def test_call_without_answer_counts_as_spent(answer: Streams, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(f'as_of = "x"\n[models."systemone/{MODEL}"]\ninput = 1.0\noutput = 0.0\n')
    noul = {"model": MODEL, "state": "s", "questions": {"n": {"type": "noul"}}}
    budget = len(json.dumps(noul)) * 1.5e-6
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as model:
        url = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
        server = decision_server(url, timeout=0.2, budget=budget, prices=prices)
        async with client_of(server) as post:
            statuses = [(await post("v1/systemone", noul)).status for _ in range(2)]
    assert statuses[0] in (502, 504)
    assert statuses[1] == 402


async def test_idle_connection_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that drops requests on connections which were idle too long for it."""
    monkeypatch.setattr("unswayed.serving.proxy.IDLE", 0.05)
    said = b'{"model":"m","answers":{"n":{"type":"noul","noul":0.5}},"usage":{"input_tokens":1}}'
    noul = {"model": MODEL, "state": "s", "questions": {"n": {"type": "noul"}}}
    used = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal used
        used += 1
        await reader.readuntil(b"}}}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said))
        await reader.read(1)  # the next request
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as model:
        url = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
        async with client_of(decision_server(url)) as post:
            assert (await post("v1/systemone", noul)).status == 200
            await asyncio.sleep(0.3)
            assert (await post("v1/systemone", noul)).status == 200
    assert used == 2


@pytest.mark.parametrize("figure", ["x", {"a": 1}, [2], None])
async def test_odd_counts_of_model_leave_no_traceback(
    figure: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(request: web.Request) -> web.Response:
        said = {"model": "m", "answers": {"0": {"type": "noul", "noul": 0.5}}}
        return web.json_response({**said, "usage": {"input_tokens": figure, "output_tokens": 1}})

    body = {"model": MODEL, "input": "s", "questions": [{"type": "predicate"}]}
    async with answering(answer, "systemone") as url, client_of(decision_server(url)) as post:
        reply = await post("v1/decisions", body)
    assert reply.status == (502 if figure else 200), reply.raw
    assert not caplog.records
