"""The calls under way: pull a query, try, try again, set aside, give up.

A query is pulled at the moment its request may start, so at most `max_connections` are known at any
time, and none is pulled after a fatal failure. A call with a passing failure is set aside and tried
once more when all others are done. In that try, lost connections are remade as long as patience lasts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeGuard

from unswayed.backends import BackendSettings
from unswayed.backends.dialect import Dialect, Traits, Transport
from unswayed.backends.faults import Fault
from unswayed.backends.pacing import Clock, Gate, Patience, backoff_s
from unswayed.backends.protocol import Outcome
from unswayed.base.errors import BackendError
from unswayed.model.calls import Failure, Query, Request, Response

MOST_IDENTICAL: Final = 3
"""Attempts of one call that fail in exactly the same way before it is given up."""
MOST_FAILED: Final = 25
"""Calls in a row that the server could not answer before the run stops."""
MOST_ASIDE: Final = 10_000
"""Most calls set aside at once, to bound memory; further ones are given up immediately."""


@dataclass(frozen=True, slots=True)
class Line:
    """Transport and gate of one event loop."""

    loop: asyncio.AbstractEventLoop
    transport: Transport
    gate: Gate


class Wire(Protocol):
    """Part of the client that a run needs: one attempt at a time, and what is learned from it."""

    settings: BackendSettings  # limit on attempts
    max_connections: int
    dialect: Dialect  # reads refusals
    traits: Traits  # what the server is known to accept
    patience: Patience  # how long a server that answers nothing is put up with
    clock: Clock  # chance

    async def attempt(
        self, request: Request, traits: Traits, line: Line
    ) -> tuple[Response | Fault, float]:
        """One attempt, with the seconds it took."""
        ...

    def learn(self, traits: Traits) -> None:
        """Keep traits that a request was accepted with."""
        ...

    def finish(
        self, response: Response, request: Request, traits: Traits, *, took: float, attempts: int
    ) -> Response:
        """Return the response as it is handed over."""
        ...


class Attempts:
    """Calls that stop together: each is tried until it is answered or given up."""

    def __init__(self, wire: Wire, line: Line) -> None:
        self.stop: asyncio.Future[None] = line.loop.create_future()
        self._wire = wire
        self._line = line
        self._failed = 0
        self._stopped_by = ""

    def halt(self) -> None:
        """Send nothing more; attempts under way go on."""
        if not self.stop.done():
            self.stop.set_result(None)

    async def close(self) -> None:
        """Stop: an attempt under way ends with its connection, and is not repeated."""
        self.halt()

    async def call(self, query: Query, earlier: Failure | None = None) -> Outcome:
        """Try until an answer comes or the call is given up; start inside the gate.

        `earlier` is the failure after which the call was set aside.
        """
        wire, gate = self._wire, self._line.gate
        traits = began_with = wire.traits
        began = None if earlier is None else wire.clock.now()
        before = attempts = 0 if earlier is None else earlier.attempts
        counted = identical = 0
        answers = wire.patience.answers
        last = ""
        while True:
            try:
                outcome, took = await wire.attempt(query.request, traits, self._line)
            finally:
                gate.leave()
            attempts += 1
            if isinstance(outcome, Response):
                self._failed = 0
                if traits is not began_with:
                    wire.learn(traits)
                return wire.finish(outcome, query.request, traits, took=took, attempts=attempts)
            adapted = None
            if outcome.detail:
                adapted = wire.dialect.adapt(traits, outcome.detail, query.request)
            if adapted is not None and adapted != traits:
                traits = adapted
                attempts -= 1  # nothing failed: the request was put wrongly
            else:
                identical = identical + 1 if outcome.message == last else 1
                last = outcome.message
                if not outcome.turned_away or wire.patience.answers > answers:
                    counted += 1  # where everything is turned away, patience decides
                answers = wire.patience.answers
                if self._is_final(outcome, counted, identical, began):
                    return self._give_up(query, outcome, attempts, earlier)
                if not outcome.busy:  # a busy server holds up all calls, in the gate
                    backoff = backoff_s(attempts - before, wire.clock)
                    pause = max(backoff, outcome.retry_after_s or 0.0)
                    await gate.nap(min(pause, wire.patience.most_pause_s), self.stop)
            if not await gate.enter(self.stop):
                return self._give_up(query, outcome, attempts, earlier)

    def _is_final(self, fault: Fault, counted: int, identical: int, began: float | None) -> bool:
        patience = self._wire.patience
        if not fault.again or patience.is_over:
            return True
        if began is None:
            useless = identical >= MOST_IDENTICAL and not fault.turned_away
            return useless or counted > self._wire.settings.max_retries
        # others may be answered all the while that it finds no connection
        return not fault.lost or self._wire.clock.now() - began >= patience.allowed_s

    def _give_up(
        self, query: Query, fault: Fault, attempts: int, earlier: Failure | None
    ) -> Failure:
        message, fatal = fault.message, fault.fatal
        patience = self._wire.patience
        if fault.again:
            self._failed += earlier is None
            if self.stop.done():
                message = f"{message}. Not tried again: the run was stopped{self._stopped_by}."
            elif patience.is_over and not patience.reached:
                fatal = True
                message = (
                    f"the server is down: {message}. It was never reached. Start it, or check its "
                    "address; run the same command again to resume"
                )
            elif patience.is_over:
                fatal = True
                allowed = patience.allowed_s
                waited = f"{allowed / 60:g} minutes" if allowed >= 120 else f"{allowed:g} seconds"
                message = (
                    f"the server has answered nothing for {waited}: "
                    f"{message}. Run the same command again to resume; --patience SECONDS waits "
                    "longer"
                )
            elif self._failed >= MOST_FAILED and earlier is None:
                fatal = True
                message = (
                    f"the server answers with errors only: {message}. {self._failed} calls in a "
                    "row failed; run the same command again to resume"
                )
            else:
                message = f"{message} ({attempts} attempts)"
        if fatal and not self.stop.done():
            self._stopped_by = f" ({message})"
            self.halt()
        return Failure(
            error=fault.error.__name__,
            message=f"{query.item.id}: {message}",
            status=fault.status,
            attempts=max(1, attempts),
            fatal=fatal,
        )


class Workers(Attempts):
    """One call of `answer`: workers that each pull a query and see it through, over and over.

    A worker that finds a query starts the next worker, so there are never more than there is work
    for, and never more than `max_connections`.
    """

    def __init__(self, wire: Wire, line: Line, queries: Iterator[Query]) -> None:
        super().__init__(wire, line)
        self.done: deque[tuple[Query, Outcome]] = deque()
        self.error: Exception | None = None
        self._queries: Iterator[tuple[Query, Failure | None]] = ((query, None) for query in queries)
        self._aside: list[tuple[Query, Failure]] = []
        self._most = wire.max_connections
        self._open = 0  # queries pulled and not yet handed over
        self._idle = 0  # workers without a query
        self._pulled_all = False
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._workers: list[asyncio.Task[None]] = []
        self._add_worker()

    @property
    def finished(self) -> bool:
        """True if every query that was pulled has been handed over, and none will follow."""
        return self._open == 0 and (self._pulled_all or self.stop.done())

    def take(self) -> tuple[Query, Outcome]:
        """Hand over one outcome."""
        self._open -= 1
        _wake(self._room)
        return self.done.popleft()

    async def go_on(self) -> bool:
        """Try the calls that were set aside once more. Return False if there are none."""
        if not self._aside:
            return False
        await asyncio.gather(*self._workers)
        self._queries, self._aside = iter(self._aside), []
        self._workers, self._idle, self._pulled_all = [], 0, False
        self._add_worker()
        return True

    async def wait(self) -> None:
        """Wait until there is something to take, or the run is finished."""
        self._news = self._line.loop.create_future()
        await self._news

    async def close(self) -> None:
        """Stop at once: nothing more is pulled, attempts under way are broken off."""
        self.halt()
        for worker in self._workers:
            worker.cancel()
        if self._line.loop is asyncio.get_running_loop():
            await asyncio.gather(*self._workers, return_exceptions=True)

    def halt(self) -> None:
        """Send nothing more, and let whoever waits see it."""
        super().halt()
        self._open += len(self._aside)
        self.done.extend(self._aside)
        self._aside.clear()
        _wake(self._room)
        _wake(self._news)

    def _add_worker(self) -> None:
        self._idle += 1
        self._workers.append(self._line.loop.create_task(self._work()))

    async def _work(self) -> None:
        while (pulled := await self._next()) is not None:
            query, earlier = pulled
            self._idle -= 1
            if self._idle == 0 and len(self._workers) < self._most:
                self._add_worker()
            try:
                outcome = await self.call(query, earlier)
                has_room = len(self._aside) < MOST_ASIDE and not self.stop.done()
                if has_room and earlier is None and is_passing(outcome):
                    self._aside.append((query, outcome))
                    self._open -= 1
                    _wake(self._room)
                else:
                    self.done.append((query, outcome))
            except Exception as error:  # a defect: stop, and raise it in the caller
                self.error = self.error or error
                self._open -= 1
                self.halt()
            self._idle += 1
            _wake(self._news)

    async def _next(self) -> tuple[Query, Failure | None] | None:
        """Return the next query, its first attempt let through the gate; None if there is none."""
        while not (self._pulled_all or self.stop.done()):
            if self._open >= self._most:  # the caller is behind
                if self._room is None or self._room.done():
                    self._room = self._line.loop.create_future()
                await asyncio.shield(self._room)
                continue
            if not await self._line.gate.enter(self.stop):
                break
            if self._open < self._most and (pulled := self._pull()) is not None:
                self._open += 1
                return pulled
            self._line.gate.leave()
        _wake(self._news)
        return None

    def _pull(self) -> tuple[Query, Failure | None] | None:
        if self._pulled_all:
            return None
        pulled = None
        try:
            pulled = next(self._queries, None)
        except Exception as error:  # the iterable's own: raised after what is under way is done
            self.error = error
        self._pulled_all = pulled is None
        return pulled


def is_passing(outcome: Outcome) -> TypeGuard[Failure]:
    """Return True for a failure that does not depend on the request, so another try may succeed."""
    if isinstance(outcome, Response):
        return False
    return not outcome.fatal and outcome.error != BackendError.__name__


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
