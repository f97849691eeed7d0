"""Speed of the store and of the runner's share of a call.

    python benchmarks/store.py                 # 20,000 calls and 1,000,000 keys, about a minute
    python benchmarks/store.py --keys 100000   # quicker

Prints rows per second written, the time to load all keys, and CPU time per call by part. The
whole path of a call (HTTP, render, key, parse, store) should stay below 0.25 CPU-ms; HTTP is
measured in its own benchmark, so what is printed here has to stay below about 0.12.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from unswayed.backends import Backend
from unswayed.calls import Caller, Question, RunSettings
from unswayed.model.calls import Query, Request, Response, TokenLogprob, key_of
from unswayed.model.items import Item
from unswayed.model.parsing import read_decision
from unswayed.model.presentation import X0, X2, Ask
from unswayed.prompts import PromptSettings, render
from unswayed.store import CallStore, Memory

SETTINGS = RunSettings(prompts=PromptSettings())
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron".split()  # noqa: SIM905


class Instant(Backend):
    """A backend that answers at once, with 20 label logprobs as an API gives them."""

    model = "benchmark/instant"
    gives_logprobs = True
    offline = True

    async def answer(self, queries: Iterable[Query]) -> AsyncIterator[tuple[Query, Response]]:
        for query in queries:
            await asyncio.sleep(0)
            yield query, response(key_of(query.request)[0])


def words(chance: random.Random, n: int) -> str:
    return " ".join(chance.choices(WORDS, k=n))


def questions(n: int, n_words: int) -> list[Question]:
    chance = random.Random(0)
    made = []
    for number in range(n // 2):
        item = Item(
            id=f"q{number}",
            prompt=words(chance, n_words // 3),
            candidates=(words(chance, n_words // 3), words(chance, n_words // 3)),
        )
        made += [Question(item, Ask(X0)), Question(item, Ask(X2))]
    return made


def response(number: int) -> Response:
    first, second = ("A", "B") if number % 2 else ("B", "A")
    others = tuple(TokenLogprob(f" w{i}", -8.0 - i * 0.5173 - number / 997) for i in range(18))
    tops = (TokenLogprob(first, -0.1153 - number / 991), TokenLogprob(second, -2.2171), *others)
    return Response(
        text=first, tokens=(first,), top_logprobs=(tops,), input_tokens=400, output_tokens=1,
        cost_usd=0.00016, latency_s=0.41, model="instant-2026-01-01",
    )  # fmt: skip


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def show(name: str, value: float, unit: str, note: str = "") -> None:
    print(f"{name:<44}{value:>12,.1f} {unit:<12}{note}", flush=True)


def queries_of(asked: list[Question]) -> list[Query]:
    """Return queries with distinct questions."""
    return list(Caller(Instant(), Memory(), SETTINGS).missing(asked))


def bench_writes(directory: Path, asked: list[Question]) -> None:
    rows = [
        (key_of(query.request), query.request, response(n))
        for n, query in enumerate(queries_of(asked))
    ]
    for batch in (50, 100):
        with CallStore.open(directory / f"writes-{batch}") as store:

            def write(store: CallStore = store, batch: int = batch) -> None:
                for start in range(0, len(rows), batch):
                    store.put_many(rows[start : start + batch])

            wall, cpu = timed(write)
        size = (directory / f"writes-{batch}" / "calls.sqlite").stat().st_size
        per_row = f"{cpu / len(rows) * 1e6:.0f} CPU-us/row, {size / len(rows):,.0f} bytes/row"
        show(f"committed in batches of {batch}", len(rows) / wall, "rows/s", per_row)


def bench_parts(asked: list[Question]) -> None:
    n = len(asked)
    rendered = [render(item, ask, SETTINGS.prompts) for item, ask in asked]
    requests = [query.request for query in queries_of(asked)]
    answers = [response(number) for number in range(n)]

    def parse() -> None:
        for (item, ask), prompt, answer in zip(asked, rendered, answers, strict=True):
            read_decision(
                item, ask, prompt.labels, answer, model="m", answer_only=prompt.answer_only
            )

    parts: dict[str, Callable[[], object]] = {
        "render": lambda: [render(item, ask, SETTINGS.prompts) for item, ask in asked],
        "key": lambda: [key_of(request) for request in requests],
        "parse": parse,
    }
    for name, work in parts.items():
        _, cpu = timed(work)
        show(f"  {name}", cpu / n * 1e6, "CPU-us/call")


def bench_backend(asked: list[Question]) -> None:
    queries = queries_of(asked)

    async def drain() -> None:
        async for _ in Instant().answer(queries):
            pass

    _, cpu = timed(lambda: asyncio.run(drain()))
    show("  this benchmark's own backend", cpu / len(asked) * 1e6, "CPU-us/call")


def bench_run(directory: Path, asked: list[Question]) -> None:
    n = len(asked)
    with CallStore.open(directory / "run") as store:
        wall, cpu = timed(lambda: asyncio.run(Caller(Instant(), store, SETTINGS).ask(asked)))
        show("ask, all but HTTP", cpu / n * 1e6, "CPU-us/call", f"{n / wall:,.0f} calls/s")
        bench_backend(asked)
        bench_parts(asked)
        wall, cpu = timed(lambda: asyncio.run(Caller(Instant(), store, SETTINGS).ask(asked)))
        show("ask, all recorded", cpu / n * 1e6, "CPU-us/call", f"{n / wall:,.0f} calls/s")
        wall, cpu = timed(lambda: list(Caller(Instant(), store, SETTINGS).read(asked)))
        show("read", cpu / n * 1e6, "CPU-us/call", f"{n / wall:,.0f} decisions/s")


def bench_keys(directory: Path, n: int) -> None:
    request = Request(model="m", messages=(), labels=("A", "B"), max_tokens=1)
    answer = response(1)
    with CallStore.open(directory / "keys") as store:

        def fill() -> None:
            for start in range(0, n, 100):
                store.put_many(
                    [
                        (hashlib.sha256(number.to_bytes(8, "big")).digest(), request, answer)
                        for number in range(start, min(n, start + 100))
                    ]
                )

        wall, cpu = timed(fill)
        show(f"filled with {n:,} rows", n / wall, "rows/s", f"{cpu / n * 1e6:.0f} CPU-us/row")
    with CallStore.open(directory / "keys") as store:
        wall, _ = timed(lambda: sum(1 for _ in store.calls()))
        show(f"calls() of {n:,}", wall, "s", f"{wall / n * 1e6:.2f} us/key")
        keys = [hashlib.sha256(number.to_bytes(8, "big")).digest() for number in range(n)]
        wall, _ = timed(lambda: store.recorded(keys))
        show(f"recorded() of {n:,}, looked up by key", wall, "s", f"{wall / n * 1e6:.2f} us/key")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=300, help="words per item")
    parser.add_argument("--keys", type=int, default=1_000_000)
    arguments = parser.parse_args()
    asked = questions(arguments.calls, arguments.words)
    with tempfile.TemporaryDirectory() as name:
        bench_writes(Path(name), asked)
        bench_run(Path(name), asked)
        bench_keys(Path(name), arguments.keys)


if __name__ == "__main__":
    main()
