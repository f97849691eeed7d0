"""Measure a judge in production: CPU milliseconds per call, against bare clients of the same server.

    python benchmarks/judge.py [--calls 2000] [--rounds 7] [--connections 64] [--method direct]

Starts a server process that answers at once with a canned completion (five log-probabilities; that of
`http_calls.py`), and asks it distinct pairs in these ways, in turn within every round:

    aiohttp      posts of ready bodies, as many at once as there are connections: the floor
    bulk         `Judge.averdicts` over all pairs
    async        `Judge.acompare`, as many at once as there are connections
    one by one   posts of ready bodies by aiohttp, each after the answer to the one before
    http.client  the same by the standard library, the floor of synchronous code
    httpx        the same by httpx, where it is installed
    sync         `Judge.compare`, each after the verdict before
    repeated     `Judge.compare` of what was asked before: nothing is sent

    python benchmarks/judge.py --memory 200000

judges so many distinct pairs by a simulated judge without recorded calls, and prints the resident
memory after every tenth part: beyond what its answers may take (64 MiB), it stays where it is.

A call is one request, so that a method of several presentations is divided by their number; with
`direct` it is a verdict. CPU time is that of the client process, all threads; medians of the rounds, and
medians of the rounds' ratios to aiohttp with the least and the largest.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

import http_calls
from evidence_table import Table, add_write
from unswayed import Judge, Verdict
from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.client import HttpBackend
from unswayed.calls import Caller, Question, RunSettings
from unswayed.methods.names import parse_method
from unswayed.model.faces import named
from unswayed.model.items import Item
from unswayed.model.presentation import settled
from unswayed.prompts import PromptSettings
from unswayed.store import Memory

HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Work:
    """The questions of one round, ready for everybody.

    Attributes:
        items: What judges are given.
        bodies: What bare clients post: the requests of these items.
    """

    items: Sequence[Item]
    bodies: Sequence[bytes]


def work_of(url: str, n: int, run: str, method: str) -> Work:
    """Questions that no other round asks."""
    backend = open_backend(http_calls.MODEL, BackendSettings(base_url=url))
    assert isinstance(backend, HttpBackend)
    items = [
        named(Item(id="", prompt=f"{item.prompt} {run}", candidates=item.candidates))
        for item in http_calls.items(n, 0)
    ]
    questions = [
        Question(item, about)
        for item in items
        for ask in parse_method(method).asks(item.n)
        if (about := settled(ask, item)) is not None
    ]
    caller = Caller(backend, Memory(), RunSettings(prompts=PromptSettings()))
    bodies = [
        backend.dialect.encode(query.request, backend.traits) for query in caller.missing(questions)
    ]
    return Work(items, bodies)


def cpu_ms(calls: int, work: Callable[[], object]) -> float:
    """CPU milliseconds of this process per call of some work."""
    before = time.process_time()
    work()
    return (time.process_time() - before) / calls * 1e3


async def acpu_ms(calls: int, work: Callable[[], Awaitable[object]]) -> float:
    """`cpu_ms` of asynchronous work."""
    before = time.process_time()
    await work()
    return (time.process_time() - before) / calls * 1e3


# --- bare clients -----------------------------------------------------------------------------


async def bare(url: str, work: Work, connections: int) -> float:
    """Posts by aiohttp, connections opened before."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=HEADERS,
        timeout=aiohttp.ClientTimeout(total=60),
    ) as session:

        async def post(bodies: Sequence[bytes]) -> None:
            waiting = iter(bodies)

            async def worker() -> None:
                for body in waiting:
                    async with session.post(f"{url}/chat/completions", data=body) as response:
                        await response.read()

            await asyncio.gather(*(worker() for _ in range(connections)))

        await post(work.bodies[: 2 * connections])
        return await acpu_ms(len(work.bodies), lambda: post(work.bodies))


def standard_library(url: str, work: Work) -> float:
    """Posts by `http.client` over one connection."""
    place = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(place[0])

    def post(bodies: Sequence[bytes]) -> None:
        for body in bodies:
            connection.request("POST", f"/{place[2]}/chat/completions", body, HEADERS)
            assert connection.getresponse().read()

    post(work.bodies[:10])
    return cpu_ms(len(work.bodies), lambda: post(work.bodies))


def by_httpx(url: str, work: Work) -> float:
    """Posts by httpx over one connection."""
    import httpx

    with httpx.Client(headers=HEADERS) as client:

        def post(bodies: Sequence[bytes]) -> None:
            for body in bodies:
                assert client.post(f"{url}/chat/completions", content=body).content

        post(work.bodies[:10])
        return cpu_ms(len(work.bodies), lambda: post(work.bodies))


# --- the judge --------------------------------------------------------------------------------


def checked(verdicts: Sequence[object], items: Sequence[Item]) -> None:
    """Every item has a verdict that names a candidate."""
    assert len(verdicts) == len(items)
    for verdict in verdicts:
        assert isinstance(verdict, Verdict), verdict
        assert verdict.choice is not None


async def bulk(judge: Judge, items: Sequence[Item]) -> None:
    checked([verdict async for verdict in judge.averdicts(items)], items)


async def concurrent(judge: Judge, items: Sequence[Item], connections: int) -> None:
    waiting = iter(items)
    verdicts: list[Verdict] = []

    async def worker() -> None:
        for item in waiting:
            first, second = item.candidates
            verdicts.append(await judge.acompare(item.prompt, first, second))

    await asyncio.gather(*(worker() for _ in range(connections)))
    checked(verdicts, items)


def in_turn(judge: Judge, items: Sequence[Item]) -> None:
    checked([judge.compare(item.prompt, *item.candidates) for item in items], items)


async def judged(
    url: str, work: Work, warm: Work, connections: int, method: str, form: str
) -> float:
    """One of the asynchronous forms, connections opened before."""
    judge = Judge(http_calls.MODEL, method=method, base_url=url, max_connections=connections)
    await bulk(judge, warm.items)
    try:
        if form == "bulk":
            return await acpu_ms(len(work.bodies), lambda: bulk(judge, work.items))
        return await acpu_ms(len(work.bodies), lambda: concurrent(judge, work.items, connections))
    finally:
        await judge.aclose()


def round_of(url: str, n: int, run: int, connections: int, method: str) -> dict[str, float]:
    """Every way once, each with what it has not asked before."""
    work = work_of(url, n, f"of round {run}", method)
    fewer = work_of(url, max(1, n // 4), f"one by one in round {run}", method)
    warm = work_of(url, 4 * connections, "to begin with", method)
    measured = {"aiohttp": asyncio.run(bare(url, work, connections))}
    for form in ("bulk", "async"):
        measured[form] = asyncio.run(judged(url, work, warm, connections, method, form))
    measured["one by one"] = asyncio.run(bare(url, fewer, 1))
    measured["http.client"] = standard_library(url, fewer)
    if importlib.util.find_spec("httpx") is not None:
        measured["httpx"] = by_httpx(url, fewer)
    with Judge(http_calls.MODEL, method=method, base_url=url, max_connections=connections) as judge:
        in_turn(judge, warm.items)
        measured["sync"] = cpu_ms(len(fewer.bodies), lambda: in_turn(judge, fewer.items))
        measured["repeated"] = cpu_ms(len(fewer.bodies), lambda: in_turn(judge, fewer.items))
    return measured


async def memory(n: int) -> None:
    """Resident memory of a judge without recorded calls, as it goes on."""
    judge = Judge("simulated/judge?slot=0.6", method="average")
    part = -(-n // 10)
    done = 0
    async for verdict in judge.averdicts(http_calls.items(n, 0)):
        assert isinstance(verdict, Verdict), verdict
        done += 1
        if done % part == 0 or done == n:
            print(f"{done:9,} verdicts  {resident_mib():7.1f} MiB", flush=True)
    await judge.aclose()


def resident_mib() -> float:
    """Resident memory of this process; its peak where the system tells no more."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of a judge's calls")
    parser.add_argument("--calls", type=int, default=2000, help="pairs; a quarter one by one")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--method", default="direct")
    parser.add_argument("--memory", type=int, metavar="N", help="memory over N verdicts instead")
    add_write(parser, "performance")
    arguments = parser.parse_args()
    if arguments.memory is not None:
        asyncio.run(memory(arguments.memory))
        return
    os.environ.pop("OPENAI_API_KEY", None)
    server = subprocess.Popen(
        [sys.executable, http_calls.__file__, "--serve", "--latency-ms", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        where = http_calls.hold_to_one_core(server.pid)
        rounds = [
            round_of(url, arguments.calls, run, arguments.connections, arguments.method)
            for run in range(arguments.rounds)
        ]
    finally:
        server.kill()
        server.wait()
    print(
        f"{arguments.rounds} rounds of {arguments.calls} pairs by {arguments.method}, "
        f"{arguments.connections} connections, client {where}"
    )
    table = Table(
        ("kind of call", "CPU-ms per call", "smallest CPU-ms per call", "multiple of aiohttp")
    )
    for name in rounds[0]:
        cpu = [measured[name] for measured in rounds]
        ratios = [measured[name] / measured["aiohttp"] for measured in rounds]
        table.add(
            name,
            f"{statistics.median(cpu):.3f}",
            f"{min(cpu):.3f}",
            f"{statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f})",
        )
    if arguments.write:
        table.keep("performance", "judge")


if __name__ == "__main__":
    main()
