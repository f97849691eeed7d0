"""What the tests of the HTTP backends share: queries, clocks that need no waiting, a fake wire."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from fake_server import FakeServer, Fault

from unswayed.auditing.audit import Audit, plan_for, run_settings_for
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Address, Secret
from unswayed.backends.client import HttpBackend
from unswayed.backends.faults import HttpReply
from unswayed.backends.openai_compatible import OpenAIDialect
from unswayed.backends.pacing import Clock
from unswayed.backends.prices import FREE, Price
from unswayed.calls import Caller
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.items import Item, ItemSet, Message
from unswayed.model.presentation import X0, Ask
from unswayed.result import AuditResult
from unswayed.store import Memory

KEY = "sk-test-0123456789abcdefSECRET"


def query(number: int = 0, *, text: str | None = None, **fields: object) -> Query:
    """A query whose text is unlike that of any other number."""
    item = Item(id=f"q{number}", prompt="p", candidates=("a", "b"))
    content = f"question {number}" if text is None else text
    settings: dict[str, object] = {
        "model": "openai/m",
        "messages": (Message("system", "You judge."), Message("user", content)),
        "labels": ("A", "B"),
        "max_tokens": 4,
    }
    return Query(item, Ask(X0), Request(**{**settings, **fields}))  # type: ignore[arg-type]


def queries(n: int) -> Iterator[Query]:
    return (query(number) for number in range(n))


@dataclass
class Counted:
    """An iterable that counts what was pulled from it."""

    n: int
    pulled: int = 0

    def __iter__(self) -> Iterator[Query]:
        for number in range(self.n):
            self.pulled += 1
            yield query(number)


@dataclass
class JumpClock:
    """Sleeping is over at once, and the clock stands where it would have stood."""

    time: float = 1000.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        due = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, due)

    def clock(self, *, chance: float = 0.5) -> Clock:
        return Clock(
            now=lambda: self.time,
            wall=lambda: 1_700_000_000.0,
            sleep=self.sleep,
            random=lambda: chance,
        )


@dataclass
class SimulatedClock:
    """Time that passes when nothing else happens, for runs without real input and output."""

    time: float = 0.0
    sleepers: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    count: int = 0

    async def sleep(self, seconds: float) -> None:
        self.count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self.sleepers, (self.time + max(seconds, 0.0), self.count, future))
        await future

    async def drive(self) -> None:
        """Wake the next sleeper whenever all others have come to rest."""
        while True:
            for _ in range(12):
                await asyncio.sleep(0)
            if self.sleepers:
                due, _, future = heapq.heappop(self.sleepers)
                if not future.done():
                    self.time = due
                    future.set_result(None)

    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, wall=lambda: 0.0, sleep=self.sleep, random=lambda: 0.5)

    def run(self, work: Awaitable[None]) -> None:
        async def both() -> None:
            driver = asyncio.create_task(self.drive())
            try:
                await work
            finally:
                driver.cancel()

        asyncio.run(both())


@dataclass
class FakeWire:
    """A transport without a network; `answer` makes the reply."""

    answer: Callable[[bytes], Awaitable[HttpReply]]
    closed: bool = False

    async def post(self, body: bytes) -> HttpReply:
        return await self.answer(body)

    async def close(self) -> None:
        self.closed = True

    def abandon(self) -> None:
        self.closed = True


class Wires(list[FakeWire]):
    """The connections of a backend, as they are made."""

    def __init__(self, answer: Callable[[bytes], Awaitable[HttpReply]]) -> None:
        self.answer = answer

    def connect(self) -> FakeWire:
        self.append(FakeWire(self.answer))
        return self[-1]


def good_reply(body: bytes) -> HttpReply:
    return HttpReply(200, {}, FakeServer().completion(body))


def backend_at(
    url: str,
    *,
    key: str = "",
    clock: Clock | None = None,
    price: Price | None = FREE,
    model: str = "m",
    connect: Callable[[], FakeWire] | None = None,
    **settings: object,
) -> HttpBackend:
    """A backend without the environment."""
    address = Address(url=url, key=Secret(key), is_loopback=True, is_own=False)
    return HttpBackend(
        f"openai/{model}",
        OpenAIDialect(model),
        address,
        BackendSettings(**settings),  # type: ignore[arg-type]
        price=price,
        clock=clock,
        connect=connect,
    )


async def collect(backend: HttpBackend, asked: Iterable[Query]) -> dict[str, Response | Failure]:
    """All outcomes by item id; every query must be answered once."""
    outcomes: dict[str, Response | Failure] = {}
    try:
        async for answered, outcome in backend.answer(asked):
            assert answered.item.id not in outcomes
            outcomes[answered.item.id] = outcome
    finally:
        await backend.close()
    return outcomes


class Met(NamedTuple):
    """What a run of a backend came to."""

    outcomes: dict[str, Response | Failure]
    server: FakeServer
    seconds: float  # that its clock went on

    @property
    def failures(self) -> list[Failure]:
        return failures(self.outcomes)

    @property
    def fatal(self) -> list[str]:
        return [failure.message for failure in self.failures if failure.fatal]


def failures(outcomes: dict[str, Response | Failure]) -> list[Failure]:
    return [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]


async def against(
    faults: Iterable[Fault], asked: Iterable[Query], *, alone: bool = False, **settings: object
) -> Met:
    """What comes of queries to a server with faults; a single one may go in the caller's own task."""
    jump = JumpClock()
    async with FakeServer(faults=[msgspec.structs.replace(fault) for fault in faults]) as server:
        backend = backend_at(server.url, clock=jump.clock(), **settings)  # type: ignore[arg-type]
        if alone:
            (one,) = asked
            outcomes = {one.item.id: await backend.call(one)}
            await backend.close()
        else:
            outcomes = await collect(backend, asked)
    return Met(outcomes, server, jump.time - 1000.0)


def wired(
    answer: Callable[[bytes], Awaitable[HttpReply]],
    jump: JumpClock | None = None,
    **settings: object,
) -> HttpBackend:
    """A backend whose replies a function makes, on a clock that needs no waiting."""
    clock = None if jump is None else jump.clock()
    return backend_at("http://x/v1", clock=clock, connect=lambda: FakeWire(answer), **settings)  # type: ignore[arg-type]


async def audited(
    server: FakeServer, items: ItemSet, settings: AuditSettings, **how: object
) -> AuditResult:
    """An audit by way of a server."""
    async with server:
        backend = backend_at(server.url, **how)  # type: ignore[arg-type]
        plan = plan_for(items, settings, backend)
        caller = Caller(backend, Memory(), run_settings_for(settings, backend))
        audit = Audit.begin(plan, caller)
        try:
            return AuditResult(audit.measure(await audit.ask(), command="test"))
        finally:
            await backend.close()


async def answers_well(body: bytes) -> HttpReply:
    return good_reply(body)
