"""Measure one call over HTTP: CPU milliseconds, and calls per second at 256 connections.

    python benchmarks/http_calls.py [--calls 5000] [--rounds 7] [--connections 256] [--latency-ms 1]

Starts a server process that answers at once with a canned completion (five log-probabilities), and
asks it the same pairs of answers in four ways, one on top of the other:

    aiohttp      posting a ready body and reading the reply, nothing else: the floor
    client       the backend: queue, limits, encoding, decoding, cost
    stored       client, then parsing the reply and writing it to a run directory's database
    whole run    `Caller.ask`: also rendering the prompts, keys, looking up what is recorded

The client, with its database thread, is held to one core where the system allows it, and the
server to the others. CPU time is that of the client process, all threads; the median of the rounds
is printed, and the least, which on a busy machine is closer to the truth. `stored` is the figure
with a target: at most 0.25 ms and at least 3000 calls/s on one core.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.client import HttpBackend
from unswayed.calls import Caller, Question, RunSettings
from unswayed.model.calls import Query, Request, Response, key_of
from unswayed.model.items import Item
from unswayed.model.parsing import read_decision
from unswayed.model.presentation import X0, Ask
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore, Memory

MODEL = "openai/benchmark"
BATCH = 50
WORDS = "The moon pulls at the water of the sea and the shore turns through it twice a day. " * 6


class Measured(NamedTuple):
    cpu_ms: float
    per_second: float


# --- the server -------------------------------------------------------------------------------


def canned(label: str, other: str) -> bytes:
    tops = [(label, -0.2), (other, -1.7), (f" {label}", -6.1), (f" {other}", -7.0), ("The", -9.3)]
    alternatives = [{"token": token, "logprob": value, "bytes": [65]} for token, value in tops]
    content = [{"token": label, "logprob": -0.2, "bytes": [65], "top_logprobs": alternatives}]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": label, "refusal": None},
        "finish_reason": "stop",
        "logprobs": {"content": content},
    }
    usage = {"prompt_tokens": 330, "completion_tokens": 1, "total_tokens": 331}
    body = json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]}
        | {"usage": usage, "system_fingerprint": "fp_1"}
    ).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


ANSWERS = (canned("A", "B"), canned("B", "A"))


class Canned(asyncio.Protocol):
    """Answers every request on a connection, A and B in turn by the length of the request."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        lowered = head.lower()
        start = lowered.index(b"content-length:") + len(b"content-length:")
        length = int(lowered[start:].split(b"\r\n", 1)[0])
        if len(body) >= length:
            self.buffer = b""
            answer = ANSWERS[length % 2]
            asyncio.get_running_loop().call_later(self.latency_s, self.transport.write, answer)


async def serve(latency_s: float) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Canned(latency_s), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the client -------------------------------------------------------------------------------


def items(n: int, run: int) -> Iterator[Item]:
    for number in range(n):
        yield Item(
            id=f"q{run}-{number}",
            prompt=f"Question {number} of round {run}: what makes the tides? " + "x" * (number % 2),
            candidates=(f"{WORDS}({number})", f"It is the wind. {WORDS}"),
        )


def questions(n: int, run: int) -> Iterator[Question]:
    return (Question(item, Ask(X0)) for item in items(n, run))


async def measure(n: int, work: Callable[[], Awaitable[None]]) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Measured(cpu / n * 1e3, n / wall)


async def floor(url: str, bodies: list[bytes], connections: int) -> None:
    """Bare aiohttp, as many posts at once as there are connections."""
    waiting = iter(bodies)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Content-Type": "application/json"},
        timeout=aiohttp.ClientTimeout(total=60),
    ) as session:

        async def post() -> None:
            for body in waiting:
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    await response.read()

        await asyncio.gather(*(post() for _ in range(connections)))


async def client(backend: HttpBackend, asked: list[Query]) -> None:
    async for _, outcome in backend.answer(asked):
        assert isinstance(outcome, Response), outcome


async def stored(backend: HttpBackend, asked: list[Query], store: CallStore) -> None:
    """Parses each reply, and writes in batches as a run does."""
    rows: list[tuple[bytes, Request, Response]] = []
    async for query, outcome in backend.answer(asked):
        assert isinstance(outcome, Response), outcome
        labels = query.request.labels
        decision = read_decision(
            query.item, query.ask, labels, outcome, model=MODEL, answer_only=True
        )
        assert decision.choice is not None
        rows.append((key_of(query.request), query.request, outcome))
        if len(rows) >= BATCH:
            store.put_many(rows)
            rows = []
    store.put_many(rows)


async def round_of(
    url: str, n: int, run: int, connections: int, settings: RunSettings, directory: Path
) -> dict[str, Measured]:
    backend = open_backend(MODEL, BackendSettings(base_url=url, max_connections=connections))
    assert isinstance(backend, HttpBackend)
    asked = list(Caller(backend, Memory(), settings).missing(questions(n, run)))
    bodies = [backend.dialect.encode(query.request, backend.traits) for query in asked]
    await client(backend, asked[:1000])  # opens the connections
    measured = {"aiohttp": await measure(n, lambda: floor(url, bodies, connections))}
    measured["client"] = await measure(n, lambda: client(backend, asked))
    with CallStore.open(directory / f"stored{run}") as store:
        measured["stored"] = await measure(n, lambda: stored(backend, asked, store))
        assert len(store) == n
    with CallStore.open(directory / f"run{run}") as store:

        async def whole() -> None:
            counts = await Caller(backend, store, settings).ask(questions(n, run))
            assert counts.made == n, counts

        measured["whole run"] = await measure(n, whole)
    await backend.close()
    return measured


def hold_to_one_core(server: int) -> str:
    """Put this process on one core and the server on the others, where that can be done."""
    if not hasattr(os, "sched_setaffinity"):
        return "not held to one core"
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    if len(cores) > 1:
        os.sched_setaffinity(server, set(cores[:-1]))
    return f"held to core {cores[-1]} of {len(cores)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time and rate of calls over HTTP")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--latency-ms", type=float, default=1.0)
    parser.add_argument(
        "--gc-threshold", type=int, help="objects before Python's garbage collector runs (700)"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.latency_ms / 1000.0))
        return
    os.environ.pop("OPENAI_API_KEY", None)
    if arguments.gc_threshold is not None:
        gc.set_threshold(arguments.gc_threshold)
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", "--latency-ms", str(arguments.latency_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        where = hold_to_one_core(server.pid)
        settings = RunSettings(prompts=PromptSettings())
        rounds: list[dict[str, Measured]] = []
        with tempfile.TemporaryDirectory() as directory:
            for run in range(arguments.rounds):
                work = round_of(
                    url, arguments.calls, run, arguments.connections, settings, Path(directory)
                )
                rounds += [asyncio.run(work)]
    finally:
        server.kill()
        server.wait()
    print(
        f"{arguments.rounds} rounds of {arguments.calls} calls, {arguments.connections} "
        f"connections, server latency {arguments.latency_ms:g} ms, client {where}"
    )
    print(f"{'':10}  CPU-ms/call  least   calls/s  most")
    for name in rounds[0]:
        cpu = [measured[name].cpu_ms for measured in rounds]
        rate = [measured[name].per_second for measured in rounds]
        print(
            f"{name:10}  {statistics.median(cpu):11.3f}  {min(cpu):.3f}  "
            f"{statistics.median(rate):8.0f}  {max(rate):.0f}"
        )


if __name__ == "__main__":
    main()
