"""From questions to recorded calls to decisions: a `Caller` prices, asks and reads."""

from unswayed.runner.caller import Asked, Caller
from unswayed.runner.counts import RunCounts
from unswayed.runner.interrupts import stop_on_interrupt
from unswayed.runner.keys import Question
from unswayed.runner.planning import CallPlan, enough_usd
from unswayed.runner.progress import Progress, ShowsProgress
from unswayed.runner.questions import RunSettings

__all__ = [
    "Asked",
    "CallPlan",
    "Caller",
    "Progress",
    "Question",
    "RunCounts",
    "RunSettings",
    "ShowsProgress",
    "enough_usd",
    "stop_on_interrupt",
]
