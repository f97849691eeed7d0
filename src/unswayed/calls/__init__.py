"""Turn questions into recorded calls and decisions: a `Caller` prices, asks and reads."""

from unswayed.calls.caller import Asked, Caller, OutcomeOf
from unswayed.calls.counts import RunCounts
from unswayed.calls.interrupts import stop_on_interrupt
from unswayed.calls.keys import Question
from unswayed.calls.pricing import CallPlan, enough_usd
from unswayed.calls.progress import Progress, ShowsProgress
from unswayed.calls.questions import RunSettings

__all__ = [
    "Asked",
    "CallPlan",
    "Caller",
    "OutcomeOf",
    "Progress",
    "Question",
    "RunCounts",
    "RunSettings",
    "ShowsProgress",
    "enough_usd",
    "stop_on_interrupt",
]
