"""One asking: what is to be sent is sent, what others have sent is waited for, what came is recorded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Final

from unswayed.backends.protocol import Outcome, unanswered
from unswayed.calls.counts import RunCounts
from unswayed.calls.drafts import Draft
from unswayed.calls.flights import Flight, Flights
from unswayed.calls.pricing import with_cost
from unswayed.calls.window import Window
from unswayed.calls.writer import Failed, Row, writer_for
from unswayed.model.calls import Failure, Query, Request, Response

MOST_LOOKS: Final = 8
"""Chunks of recorded calls skipped in one go while calls are in flight (about 40 ms)."""
LOST: Final = Failure(
    error="StoreError", message="its answer came and could not be recorded.", fatal=True
)
"""For others who wait for a call whose answer is lost: if they asked again, each would pay again."""


class Errand:
    """Answers the questions of a window, each distinct call once.

    Everything but the commits happens in the event loop of `carry_out`. When `stop` is set, nothing more
    is sent.
    """

    def __init__(
        self, flights: Flights, window: Window, counts: RunCounts, stop: asyncio.Event | None = None
    ) -> None:
        self.fatal: str | None = None  # why no further call can be made
        self.is_abandoned = False
        self.writer = writer_for(flights.pool, self._recorded)
        self._window = window
        self._counts = counts
        self._flights = flights
        self._backend = flights.backend
        self._stopped = stop
        self._awaited: deque[tuple[Draft, Flight]] = deque()
        self._sent: dict[Request, Flight] = {}
        self._unrecorded: dict[bytes, tuple[Flight, Outcome]] = {}
        self._n_landed = self._n_seen = flights.n_landed
        self._error: Exception | None = None

    @property
    def is_unfinished(self) -> bool:
        """True if calls were not made, or were given up under way."""
        left = self._window.ready or self._awaited or self._sent
        return bool(left) or not self._window.exhausted

    async def carry_out(self) -> None:
        """Go on until all is answered or nothing more may be sent."""
        try:
            while not self.is_abandoned:
                draft = self._next() if self._goes_on() else None
                if draft is not None:
                    await self._send(draft)
                elif self._awaited:
                    await self._wait()
                elif self._window.exhausted or not self._goes_on():
                    break
                else:
                    # a long stretch of recorded calls must not block the loop
                    await asyncio.sleep(0)
        finally:
            for flight in self._sent.values():
                self._flights.pay(flight, flight.most)  # given up, it may be answered and charged
                self._flights.land(flight, None)

    async def close(self) -> None:
        """Record what came, and let nobody wait for what cannot be recorded."""
        try:
            await self.writer.close()
        finally:
            for flight, _ in self._unrecorded.values():
                self._flights.land(flight, LOST)

    async def complete(self) -> None:
        """Carry out, whoever waits for it, and close."""
        try:
            await self.carry_out()
        finally:
            await self.close()
        self.writer.check()

    def _goes_on(self) -> bool:
        stopped = self._stopped is not None and self._stopped.is_set()
        return not (self.is_abandoned or self._flights.is_closed or stopped) and self.fatal is None

    def _stop(self, reason: str) -> None:
        """Send nothing more."""
        self.fatal = self.fatal or reason
        if not self._counts.budget_spent:
            self._counts.fatal = self._counts.fatal or reason

    # --- what is sent next -------------------------------------------------------------------

    def _next(self, most_looks: int = 1) -> Draft | None:
        """Return the next draft that nobody has sent or had answered since, left in its place."""
        window = self._window
        for looks in range(most_looks + 1):
            while window.ready:
                draft = window.ready[0]
                self._n_seen = self._flights.n_landed
                if not self._is_awaited(draft) and not self._was_answered(draft):
                    return draft
                window.ready.popleft()
            if window.exhausted or looks == most_looks:
                break
            window.look()
        return None

    def _is_awaited(self, draft: Draft) -> bool:
        """Return True, and wait for its answer, if somebody else has sent the call."""
        flight = self._flights.of(draft.key)
        if flight is not None:
            self._awaited.append((draft, flight))
        return flight is not None

    def _was_answered(self, draft: Draft) -> bool:
        if self._flights.n_landed == self._n_landed:  # nobody else had anything answered
            return False
        for _, response in self._flights.pool.responses([draft.key]):
            self._counts.cached += 1
            self._window.answered(draft, response)
            return True
        return False

    def _pull(self) -> Iterator[Query]:
        """Yield the queries of one round, drafted as the backend asks for them."""
        while self._goes_on():
            try:
                draft = self._next(MOST_LOOKS)
            except Exception as error:  # raised when the calls in flight are done
                self._error = error
                return
            query = None if draft is None else self._take_off(draft)
            if query is None:
                return
            yield query

    def _take_off(self, draft: Draft) -> Query | None:
        """Send the next draft. Return None if it exceeds the budget or another thread has sent it."""
        flight = self._flights.start(draft, self._flights.most(draft), self._n_seen)
        if flight is None:
            return None
        self._window.ready.popleft()
        self._sent[draft.request] = flight
        return draft.query

    # --- sending and waiting -----------------------------------------------------------------

    async def _send(self, draft: Draft) -> None:
        # Several rounds: what holds a round up (the budget reserved by calls in flight, a long
        # stretch of recorded calls) may be gone when its calls are done.
        most = self._flights.most(draft)
        if not self._flights.affordable(most):
            if self._flights.is_busy:  # what is reserved may not be used
                await self._flights.payment(most)
                self.writer.check()
            else:
                self._counts.budget_spent = True
                budget = self._flights.budget_usd
                self._stop(f"the budget of ${budget:g} does not cover the next call. Raise it.")
            return
        backend = self._backend
        if len(self._window.ready) == 1 and self._window.exhausted:
            query = self._take_off(draft)
            if query is None:
                return
            self._land(query, await backend.call(query))
            await self.writer.room()
        else:
            async with aclosing(backend.answer(self._pull())) as outcomes:
                async for query, outcome in outcomes:
                    self._land(query, outcome)
                    if not backend.hands_over:  # a stop would lose the rest of a batch
                        await self.writer.room()
        for flight in tuple(self._sent.values()):  # a backend took them and never answered
            self._land(flight.draft.query, unanswered(flight.draft.query, backend.model))
        if self._error is not None:
            raise self._error

    async def _wait(self) -> None:
        draft, flight = self._awaited.popleft()
        outcome = await self._flights.landed(flight)
        if isinstance(outcome, Response):
            self._counts.cached += 1
            self._window.answered(draft, outcome)
        elif outcome is None:
            self._window.ready.append(draft)
        else:
            self._failed(draft, outcome)

    def _failed(self, draft: Draft, failure: Failure) -> None:
        self._window.failed(draft, failure)
        if failure.fatal:
            self._stop(failure.message)

    def _land(self, query: Query, outcome: Outcome) -> None:
        flight = self._sent.pop(query.request, None)
        if flight is None:
            return  # answered twice: the first answer stays
        draft = flight.draft
        cost = 0.0
        if isinstance(outcome, Response):
            outcome = with_cost(outcome, draft.request, self._backend, flight.most)
            # without a stated cost the worst is assumed
            cost = flight.most if outcome.cost_usd is None else outcome.cost_usd
        self._flights.pay(flight, cost)
        self._unrecorded[draft.key] = flight, outcome
        if isinstance(outcome, Response):
            decision, is_followed = self._window.answered(draft, outcome)
            self.writer.add(draft.answered(outcome, decision, retried=is_followed))
        else:
            self._failed(draft, outcome)
            self.writer.add(Failed(draft.key, draft.request, outcome))

    def _recorded(self, rows: Sequence[Row]) -> None:
        """Count what was recorded, and hand it to those who wait for it."""
        self._counts.add(rows)
        for row in rows:
            flight = self._unrecorded.pop(row.key, None)
            if flight is not None:
                self._n_landed += 1
                self._flights.land(*flight)
