"""Bounded load: peak memory and the longest stall of the event loop, one process per scenario.

    python benchmarks/reliability/load.py [--only judge,resume] [--scale 1.0]

The stall is the longest time for which a task that sleeps 5 ms was not woken. Memory is the peak
resident size of the whole process, the interpreter and numpy included (about 60 MiB).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from reliability.counting import counting_server
from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.simulated import SimulatedBackend, SimulatedJudge
from unswayed.calls import Caller, Question, RunSettings
from unswayed.calls.judge import Judge
from unswayed.model.calls import Failure, Query, Response
from unswayed.model.items import Item, Task
from unswayed.model.permutations import MOST_ORDERS
from unswayed.model.presentation import X0, X2, Ask, presentations
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore

BEAT_S = 0.005
SETTINGS = RunSettings(prompts=PromptSettings())
MODEL = "simulated/judge?slot=0.6"


@dataclass(frozen=True)
class Load:
    """Time and memory of one scenario.

    Attributes:
        asked: Calls made.
        seconds: Wall time.
        peak_mib: Peak resident memory of the process, MiB.
        stall_s: Longest stall of the event loop.
    """

    asked: int
    seconds: float
    peak_mib: float
    stall_s: float


class Long(SimulatedBackend):
    """A simulated judge whose every answer comes after a long text."""

    filler = " and so on" * 100_000  # 1 MB

    async def answer(
        self, queries: Iterable[Query]
    ) -> AsyncIterator[tuple[Query, Response | Failure]]:
        for query in queries:
            await asyncio.sleep(0)
            yield query, Response(text=f"<answer>A</answer>{self.filler}")


def pairs(count: int) -> Iterator[Item]:
    for number in range(count):
        yield Item(
            id=f"q{number}",
            prompt=f"Which answer to question {number} is better?",
            candidates=(f"It is {number}.", f"It is not {number}, but {number + 1}."),
        )


def questions(count: int) -> Iterator[Question]:
    return (Question(item, Ask(shown)) for item in pairs(count) for shown in (X0, X2))


async def measured(work: Coroutine[object, object, int]) -> Load:
    """Run work beside a heartbeat."""
    stall = 0.0

    async def beat() -> None:
        nonlocal stall
        before = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.monotonic()
            stall, before = max(stall, now - before - BEAT_S), now

    heart = asyncio.create_task(beat())
    begun = time.monotonic()
    asked = await work
    seconds = time.monotonic() - begun
    heart.cancel()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Load(asked, round(seconds, 2), round(peak), round(stall, 3))


async def judge_in_memory(n_items: int, folder: Path) -> int:
    """`Judge(calls=None)` over many items."""
    judge = Judge(MODEL, method="average")
    n_verdicts = 0
    async for _ in judge.averdicts(pairs(n_items)):
        n_verdicts += 1
    await judge.aclose()
    return 2 * n_verdicts


async def resume(n_items: int, folder: Path) -> int:
    """Make calls, then repeat the run, whose calls are all recorded, and read the decisions."""
    backend = open_backend(MODEL)
    with CallStore.open(folder / "run") as store:
        counts = await Caller(backend, store, SETTINGS).ask(questions(n_items))
    with CallStore.open(folder / "run") as store:
        again = await Caller(backend, store, SETTINGS).ask(questions(n_items))
    if again.made:
        raise AssertionError(f"{again.made} recorded calls were made again")
    return counts.made


async def long_replies(n_items: int, folder: Path) -> int:
    """Replies of 1 MB."""
    backend = Long(SimulatedJudge())
    with CallStore.open(folder / "run") as store:
        counts = await Caller(backend, store, SETTINGS).ask(questions(n_items))
        n_read = sum(1 for _ in Caller(backend, store, SETTINGS).read(questions(n_items)))
    if n_read != counts.made:
        raise AssertionError(f"{n_read} of {counts.made} answers were read")
    return counts.made


async def slow_server(n_items: int, folder: Path) -> int:
    """256 connections to a server that takes 300 ms an answer."""
    with counting_server(folder, latency_ms=300) as server:
        os.environ["LOADTEST_BASE_URL"] = server.url
        backend = open_backend("openai-api/loadtest/fake", BackendSettings(max_connections=256))
        try:
            with CallStore.open(folder / "run") as store:
                counts = await Caller(backend, store, SETTINGS).ask(questions(n_items))
        finally:
            await backend.close()
    return counts.made


async def candidates(n_items: int, folder: Path) -> int:
    """As many candidates as the cyclic orders go up to."""
    texts = tuple(f"option {number}" for number in range(MOST_ORDERS))
    asked = [
        Question(Item(id=f"m{k}", task=Task.MCQ, prompt=f"Question {k}?", candidates=texts), Ask(p))
        for k in range(n_items)
        for p in presentations("cyclic", MOST_ORDERS)
    ]
    with CallStore.open(folder / "run") as store:
        return (await Caller(open_backend(MODEL), store, SETTINGS).ask(asked)).made


SCENARIOS: Mapping[str, tuple[Callable[[int, Path], Coroutine[object, object, int]], int]] = {
    "judge": (judge_in_memory, 30_000),
    "resume": (resume, 30_000),
    "replies": (long_replies, 50),
    "server": (slow_server, 2_000),
    "candidates": (candidates, 5),
}
"""Each with its number of items at scale 1."""


def run(name: str, scale: float) -> Load:
    work, n_items = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measured(work(max(1, round(n_items * scale)), Path(folder))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--one", choices=tuple(SCENARIOS), help=argparse.SUPPRESS)
    add_write(parser, "reliability")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(run(given.one, given.scale))))
        return
    table = Table(("scenario", "calls", "time (s)", "peak memory (MiB)", "longest stall (s)"))
    for name in given.only.split(","):
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, "--scale", str(given.scale)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        load = Load(**json.loads(done.stdout))
        table.add(name, f"{load.asked:,}", load.seconds, f"{load.peak_mib:g}", f"{load.stall_s:g}")
    if given.write:
        table.keep("reliability", "load")


if __name__ == "__main__":
    main()
