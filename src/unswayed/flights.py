"""Calls under way: who waits for which, and the money that is set aside for them."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple

from unswayed.backends.protocol import Outcome
from unswayed.runner.drafts import Draft

__all__ = ["Flight", "Flights"]


class Flight(NamedTuple):
    """A call under way: what it asks, the most it can cost in USD, and its outcome to come.

    The outcome is None where whoever asked was stopped.
    """

    draft: Draft
    most: float
    outcome: asyncio.Future[Outcome | None]


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
        flights = tuple(self._by_key.values())
        return any(flight.outcome.get_loop().is_running() for flight in flights)

    def of(self, key: bytes, loop: asyncio.AbstractEventLoop) -> Flight | None:
        """The call of a key that is under way in an event loop."""
        flight = self._by_key.get(key)
        return flight if flight is not None and flight.outcome.get_loop() is loop else None

    def affordable(self, most: float) -> bool:
        """Whether the budget reaches for a call that may cost so much."""
        return self._budget is None or self.spent + self.reserved + most <= self._budget

    def start(self, draft: Draft, most: float, loop: asyncio.AbstractEventLoop) -> Flight | None:
        """Set money aside for a call that is sent now; None if the budget does not reach for it."""
        with self._purse:
            if not self.affordable(most):
                return None
            self._n_reserved += 1
            self.reserved += most
        flight = self._by_key[draft.key] = Flight(draft, most, loop.create_future())
        return flight

    def pay(self, flight: Flight, cost: float) -> None:
        """A call has cost so much, and nothing is set aside for it any more."""
        with self._purse:
            self.spent += cost
            self._n_reserved -= 1
            self.reserved = self.reserved - flight.most if self._n_reserved else 0.0

    def land(self, flight: Flight, outcome: Outcome | None) -> None:
        """A call is no longer under way: its outcome is recorded, or there will be none."""
        if self._by_key.get(flight.draft.key) is flight:
            del self._by_key[flight.draft.key]
        self.n_landed += 1
        if not flight.outcome.done():
            flight.outcome.set_result(outcome)
