"""What the tests of the HTTP backends share: queries, clocks that need no waiting, a fake wire."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fake_server import FakeServer

from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Address, Secret
from unswayed.backends.client import HttpBackend
from unswayed.backends.faults import HttpReply
from unswayed.backends.openai_compatible import OpenAIDialect
from unswayed.backends.pacing import Clock
from unswayed.backends.prices import FREE, Price
from unswayed.calls import Failure, Query, Request, Response
from unswayed.items import Item, Message
from unswayed.presentation import X0, Ask

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


def failures(outcomes: dict[str, Response | Failure]) -> list[Failure]:
    return [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
