"""Calls under way: who waits for which, and the money that is set aside for them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Final, NamedTuple

from unswayed.backends.protocol import Outcome
from unswayed.runner.drafts import Draft

LOOK_S: Final = 0.2
"""Seconds between two checks that the event loop of a call still runs."""


class Flight(NamedTuple):
    """Call under way: its draft, the most it can cost in USD, its event loop and its future outcome.

    The outcome is None if the event loop was stopped.
    """

    draft: Draft
    most: float
    loop: asyncio.AbstractEventLoop
    outcome: Future[Outcome | None]

    async def landed(self) -> Outcome | None:
        """Wait in any event loop for the outcome; None also if the loop that carries the call has ended."""
        coming = asyncio.wrap_future(self.outcome)
        while not self.outcome.done() and self.loop.is_running():
            await asyncio.wait([coming], timeout=LOOK_S)
        coming.cancel()  # this loop may end before the call lands
        return self.outcome.result() if self.outcome.done() else None


class Flights:
    """All calls of a judge that are under way, until their outcome is recorded.

    Args:
        spent: What all recorded calls have cost, in USD.
        budget: Most USD that they may cost; None for no limit.

    Attributes:
        spent: What all answered calls have cost, in USD, and those that were given up can have cost.
        reserved: The most that calls not answered yet can cost, in USD.
        n_landed: How many calls have ended so far.
    """

    def __init__(self, spent: float, budget: float | None) -> None:
        self.spent = spent
        self.reserved = 0.0
        self.n_landed = 0
        self._budget = budget
        self._n_reserved = 0
        self._by_key: dict[bytes, Flight] = {}
        self._purse = threading.Lock()  # event loops of several threads spend from it

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way, in any event loop that still runs."""
        return any(flight.loop.is_running() for flight in tuple(self._by_key.values()))

    def of(self, key: bytes) -> Flight | None:
        """Return the call under way with this key, in any event loop that still runs."""
        flight = self._by_key.get(key)
        return flight if flight is not None and flight.loop.is_running() else None

    def affordable(self, most: float) -> bool:
        """Whether the budget reaches for a call that may cost so much."""
        return self._budget is None or self.spent + self.reserved + most <= self._budget

    def start(self, draft: Draft, most: float, n_landed: int) -> Flight | None:
        """Set money aside for a call that this event loop sends now.

        Return None if the call exceeds the budget, if any call has landed since there were `n_landed`,
        or if the same call is under way. In the last two cases, look for the answer again.
        """
        outcome: Future[Outcome | None] = Future()
        outcome.set_running_or_notify_cancel()  # who waits for it cannot cancel it
        with self._purse:
            if n_landed != self.n_landed or self.of(draft.key) or not self.affordable(most):
                return None
            self._n_reserved += 1
            self.reserved += most
            flight = Flight(draft, most, asyncio.get_running_loop(), outcome)
            self._by_key[draft.key] = flight
        return flight

    def pay(self, flight: Flight, cost: float) -> None:
        """A call has cost so much, and nothing is set aside for it any more."""
        with self._purse:
            self.spent += cost
            self._n_reserved -= 1
            self.reserved = self.reserved - flight.most if self._n_reserved else 0.0

    def land(self, flight: Flight, outcome: Outcome | None) -> None:
        """A call is no longer under way: its outcome is recorded, or there will be none."""
        with self._purse:
            if self._by_key.get(flight.draft.key) is flight:
                del self._by_key[flight.draft.key]
            self.n_landed += 1
        if not flight.outcome.done():
            flight.outcome.set_result(outcome)
