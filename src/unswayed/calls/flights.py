"""Calls under way: who waits for which, and the money that is set aside for them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from unswayed.backends.protocol import Backend, Outcome
from unswayed.calls.drafts import Draft, most_tokens
from unswayed.calls.pricing import price_of
from unswayed.calls.questions import RunSettings
from unswayed.store import Pool

LOOK_S: Final = 0.2
"""Seconds between two checks that the event loops of calls under way still run."""


@dataclass(slots=True, eq=False)
class Flight:
    """Call under way."""

    draft: Draft
    most: float  # USD that it can cost
    loop: asyncio.AbstractEventLoop
    outcome: Outcome | None = None  # stays None if nobody carries the call any more
    is_landed: bool = False
    landing: Future[None] | None = None  # if somebody else waits for it


class Flights:
    """All calls to one model that are under way, until their outcome is in the pool, and their budget."""

    def __init__(self, backend: Backend, pool: Pool, settings: RunSettings) -> None:
        self.backend = backend
        self.pool = pool
        self.budget_usd = settings.budget_usd
        self.spent = pool.totals().cost_usd  # and by calls that were given up and perhaps charged
        self.reserved = 0.0
        self.n_landed = 0
        self.is_closed = False  # if so, none may be sent
        self._n_reserved = 0
        self._by_key: dict[bytes, Flight] = {}
        self._purse = threading.Lock()  # event loops of several threads spend from it
        self._payment: Future[None] | None = None  # of any call, if somebody waits for it

    @property
    def is_busy(self) -> bool:
        """True if calls are under way, in any event loop that still runs."""
        return any(flight.loop.is_running() for flight in tuple(self._by_key.values()))

    def of(self, key: bytes) -> Flight | None:
        """Return the call under way with this key, in any event loop that still runs."""
        flight = self._by_key.get(key)
        return flight if flight is not None and flight.loop.is_running() else None

    def most(self, draft: Draft) -> float:
        """Return the most USD that a call can cost, if there is a budget."""
        if self.budget_usd is None:
            return 0.0
        most = price_of(self.backend, *most_tokens(draft.request)) or 0.0
        return 3 * most if self.backend.probed else most  # any of them may be probed

    def affordable(self, most: float) -> bool:
        """Return True if the budget reaches for a call that may cost so much."""
        return self.budget_usd is None or self.spent + self.reserved + most <= self.budget_usd

    async def landed(self, flight: Flight) -> Outcome | None:
        """Wait in any event loop for an outcome; None if the call was given up, or its loop has ended."""
        with self._purse:
            if flight.is_landed:
                return flight.outcome
            if flight.landing is None:
                flight.landing = Future()
                flight.landing.set_running_or_notify_cancel()  # who waits for it cannot cancel it
        coming = asyncio.wrap_future(flight.landing)
        while not flight.is_landed and flight.loop.is_running():
            await asyncio.wait([coming], timeout=LOOK_S)
        coming.cancel()  # this loop may end before the call lands
        return flight.outcome

    async def payment(self, most: float) -> None:
        """Wait in any event loop for money that is set aside, unless the budget reaches for so much."""
        with self._purse:
            if self.affordable(most):
                return
            if self._payment is None:
                self._payment = Future()
                self._payment.set_running_or_notify_cancel()
            coming = asyncio.wrap_future(self._payment)
        await asyncio.wait([coming], timeout=LOOK_S)
        coming.cancel()

    def start(self, draft: Draft, most: float, n_landed: int) -> Flight | None:
        """Set money aside for a call that this event loop sends now.

        None if it exceeds the budget, or if the answer must be looked for again: any call has landed since
        there were `n_landed`, or the same call is under way.
        """
        with self._purse:
            if n_landed != self.n_landed or self.of(draft.key) or not self.affordable(most):
                return None
            self._n_reserved += 1
            self.reserved += most
            flight = Flight(draft, most, asyncio.get_running_loop())
            self._by_key[draft.key] = flight
        return flight

    def pay(self, flight: Flight, cost: float) -> None:
        """Take what a call has cost, and set nothing aside for it any more."""
        with self._purse:
            self.spent += cost
            self._n_reserved -= 1
            self.reserved = self.reserved - flight.most if self._n_reserved else 0.0
        self._tell()

    def land(self, flight: Flight, outcome: Outcome | None) -> None:
        """End a call: its outcome is recorded, or there will be none."""
        with self._purse:
            if self._by_key.get(flight.draft.key) is flight:
                del self._by_key[flight.draft.key]
            self.n_landed += 1
            flight.outcome, flight.is_landed = outcome, True
        if flight.landing is not None:
            flight.landing.set_result(None)
        self._tell()

    def _tell(self) -> None:
        with self._purse:
            payment, self._payment = self._payment, None
        if payment is not None:
            payment.set_result(None)
