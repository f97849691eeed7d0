"""From questions to recorded calls to decisions.

`plan_calls` prices what is missing, `make_calls` makes it, `read_decisions` reads the answers.
"""

from unswayed.runner.calling import make_calls
from unswayed.runner.interrupts import stop_on_interrupt
from unswayed.runner.planning import CallPlan, enough_usd, plan_calls
from unswayed.runner.progress import Progress, ShowsProgress
from unswayed.runner.questions import Question, RunCounts, RunSettings, requests_for
from unswayed.runner.reading import read_decisions

__all__ = [
    "CallPlan",
    "Progress",
    "Question",
    "RunCounts",
    "RunSettings",
    "ShowsProgress",
    "enough_usd",
    "make_calls",
    "plan_calls",
    "read_decisions",
    "requests_for",
    "stop_on_interrupt",
]
