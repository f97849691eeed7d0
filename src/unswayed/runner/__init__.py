"""From questions to recorded calls to decisions: a `Session` prices, asks and reads."""

from unswayed.runner.counts import RunCounts
from unswayed.runner.interrupts import stop_on_interrupt
from unswayed.runner.keys import Question
from unswayed.runner.planning import CallPlan, enough_usd
from unswayed.runner.progress import Progress, ShowsProgress
from unswayed.runner.questions import RunSettings, requests_for
from unswayed.runner.session import Session

__all__ = [
    "CallPlan",
    "Progress",
    "Question",
    "RunCounts",
    "RunSettings",
    "Session",
    "ShowsProgress",
    "enough_usd",
    "requests_for",
    "stop_on_interrupt",
]
