"""Limit the wait for a server that turns everything away.

A server that has answered before, if only with an error, gets the whole patience. A server that was
never reached (a wrong port, not started yet) gets a few seconds: waiting rarely corrects an address.
"""

from __future__ import annotations

import math
from typing import Final

from unswayed.backends.faults import Fault
from unswayed.backends.pacing import LONGEST_PAUSE_S, Clock

FIRST_CONTACT_S: Final = 3.0
"""Longest wait for a server that was never reached."""


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
