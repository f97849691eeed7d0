"""When the next attempt may start: adaptive concurrency, rate limits, pauses asked for by a server.

Concurrency is additive increase, multiplicative decrease, as in TCP: it doubles per round until
the server first pushes back (429, 503, time-out), is halved then, and grows by one per round after
that. Several refusals of attempts that were already under way are one signal, not many.
Rate limits are kept by spacing the starts, so that no 60 seconds hold more than the limit.

The wait for a server that turns everything away is limited. One that has answered before, if only with
an error, gets the whole patience. One that was never reached (a wrong port, not started yet) gets a few
seconds: waiting rarely corrects an address.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from unswayed.backends.faults import Fault

FIRST_LIMIT = 8
BACKOFF_BASE_S = 1.0
LONGEST_PAUSE_S = 60.0
FIRST_CONTACT_S = 3.0
"""Longest wait for a server that was never reached."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, so that tests can do without either."""

    now: Callable[[], float] = time.monotonic  # monotonic seconds
    wall: Callable[[], float] = time.time  # seconds since the epoch, for HTTP dates
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep  # wait for some seconds
    random: Callable[[], float] = random.random  # uniform in [0, 1)


def backoff_s(failures: int, clock: Clock) -> float:
    """Full-jitter exponential back-off: uniform between 0 and 1, 2, 4, ... up to 60 seconds."""
    ceiling = BACKOFF_BASE_S * 2.0 ** min(failures - 1, 16)
    return clock.random() * min(LONGEST_PAUSE_S, ceiling)


class Concurrency:
    """Number of attempts that may be under way at once, never more than `cap`."""

    def __init__(self, cap: int, clock: Clock) -> None:
        self.cap = max(1, cap)
        self._clock = clock
        self._limit = float(min(FIRST_LIMIT, self.cap))
        self._growing_fast = True
        self._last_cut = float("-inf")

    @property
    def limit(self) -> int:
        """The current limit, at least 1."""
        return int(self._limit)

    def answered(self, in_flight: int) -> None:
        """One attempt was answered; the limit grows only if it was in use."""
        if in_flight >= self.limit and self._limit < self.cap:
            step = 1.0 if self._growing_fast else 1.0 / self._limit
            self._limit = min(self.cap, self._limit + step)

    def pushed_back(self, started: float) -> bool:
        """Return an attempt that started then was refused; True if this lowered the limit."""
        if started <= self._last_cut:
            return False
        self._last_cut = self._clock.now()
        self._growing_fast = False
        self._limit = max(1.0, self._limit / 2.0)
        return True


class Spacing:
    """Keeps a rate by giving each start its share of the minute before the next may follow.

    No 60 seconds hold more than `per_minute` units; None sets no limit.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._share_s = 0.0 if per_minute is None else 60.0 / per_minute
        self.free_at = float("-inf")

    def take(self, units: float, now: float) -> None:
        """Book units that start now."""
        if self._share_s:
            self.free_at = max(self.free_at, now) + units * self._share_s

    def correct(self, units: float) -> None:
        """Book more units, or give some back, when their number turns out otherwise."""
        if self._share_s:
            self.free_at += units * self._share_s


class Patience:
    """Since when a server has answered nothing, and until when that is put up with."""

    def __init__(self, patience_s: float, clock: Clock) -> None:
        self.answers = 0  # a call that was turned away can tell whether others were not
        self.reached = False
        self.reason = ""  # why an attempt was last turned away; not in the server's words
        self._patience_s = patience_s
        self._clock = clock
        self._since: float | None = None

    def restart(self) -> None:
        """Forget how long nothing was answered: what was waited for then is over."""
        self._since = None

    def answered(self) -> None:
        """Note an answered attempt."""
        self.answers += 1
        self.reached = True
        self._since = None

    def failed(self, fault: Fault) -> None:
        """Note an unanswered attempt."""
        self.reached = self.reached or not fault.unreachable
        if fault.busy or fault.lost:
            self.reason = fault.reason
        if fault.again and self._since is None:
            self._since = self._clock.now()

    @property
    def allowed_s(self) -> float:
        """Longest time without an answer, in seconds."""
        return self._patience_s if self.reached else min(FIRST_CONTACT_S, self._patience_s)

    @property
    def left_s(self) -> float:
        """Seconds until it is over; infinite while the server answers."""
        if self._since is None:
            return math.inf
        return max(0.0, self._since + self.allowed_s - self._clock.now())

    @property
    def is_over(self) -> bool:
        """True if the server has answered nothing for too long."""
        return self.left_s == 0.0

    @property
    def most_pause_s(self) -> float:
        """Longest pause before the next attempt: the last one comes before it is over."""
        return min(LONGEST_PAUSE_S, self.left_s)


class Gate:
    """Lets attempts start one by one, first come first served, under all limits at once.

    Bound to one event loop. New queries and repeated attempts stand in the same line, and a start
    waits until the tokens before it are paid off.
    """

    def __init__(
        self, concurrency: Concurrency, requests: Spacing, tokens: Spacing, clock: Clock
    ) -> None:
        self.in_flight = 0
        self.paused_until = float("-inf")
        self._refusals = 0
        self._concurrency = concurrency
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._line = asyncio.Lock()
        self._left: asyncio.Future[None] | None = None

    async def enter(self, stop: asyncio.Future[None]) -> bool:
        """Wait for one's turn; False if `stop` was set before it came."""
        if not self._line.locked() and self._wait_s() <= 0.0 and not stop.done():
            self._start()
            return True
        async with self._line:
            while not stop.done():
                wait_s = self._wait_s()
                if wait_s <= 0.0:
                    self._start()
                    return True
                if wait_s == math.inf:
                    self._left = asyncio.get_running_loop().create_future()
                    await _either(self._left, stop)
                else:
                    await self.nap(wait_s, stop)
            return False

    def _wait_s(self) -> float:
        """Seconds until a start is allowed; infinite while it takes someone to leave."""
        if self.in_flight >= self._concurrency.limit:
            return math.inf
        ready = max(self.paused_until, self._requests.free_at, self._tokens.free_at)
        return ready - self._clock.now()

    def _start(self) -> None:
        self.in_flight += 1
        self._requests.take(1, self._clock.now())

    def leave(self) -> None:
        """Count an attempt as over, however it ended."""
        self.in_flight -= 1
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    def answered(self) -> None:
        """Note that the attempt about to leave was answered."""
        self._refusals = 0
        self._concurrency.answered(self.in_flight)

    def pushed_back(
        self, started: float, retry_after_s: float | None, most_s: float = LONGEST_PAUSE_S
    ) -> None:
        """Allow fewer attempts at once, and all of them later: the server was too busy.

        Without `retry_after_s` the pause is of one's own measure; none is longer than `most_s`.
        """
        if self._concurrency.pushed_back(started):
            self._refusals += 1
            # a server that asks for no pause and refuses again would be asked without end
            least_s = backoff_s(self._refusals if retry_after_s is None else 1, self._clock)
            retry_after_s = max(retry_after_s or 0.0, least_s)
        if retry_after_s is not None:
            pause = min(retry_after_s, most_s)
            self.paused_until = max(self.paused_until, self._clock.now() + pause)

    @property
    def pause_s(self) -> float:
        """Seconds until attempts go on after the server was too busy; 0 if they may now."""
        return max(0.0, self.paused_until - self._clock.now())

    def book_tokens(self, tokens: int) -> None:
        """Book the tokens an attempt is expected to use, as it starts."""
        self._tokens.take(tokens, self._clock.now())

    def correct_tokens(self, difference: int) -> None:
        """Book the difference between used and expected tokens."""
        self._tokens.correct(difference)

    async def nap(self, seconds: float, stop: asyncio.Future[None]) -> None:
        """Sleep, but wake when `stop` is set."""
        sleeper = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await _either(sleeper, stop)
        finally:
            sleeper.cancel()


async def _either(first: asyncio.Future[None], second: asyncio.Future[None]) -> None:
    await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
