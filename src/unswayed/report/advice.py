"""What to use instead of a single call: the recommendation, from paired differences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum, auto

from unswayed.auditing.rows import Row
from unswayed.decisions import Estimate
from unswayed.methods import CONTROL, METHODS
from unswayed.methods.names import parse_method
from unswayed.report.findings import Finding
from unswayed.report.reading import ACCURACY, CONSISTENCY, CONSISTENT_ACCURACY

__all__ = [
    "Advice",
    "Control",
    "Gain",
    "Remedy",
    "Steadier",
    "Steady",
    "Why",
    "advice_of",
    "control_of",
    "gain_of",
    "remedy_of",
    "repeats_of",
    "steadier_of",
]


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired difference with the interval that claims rest on.

    Attributes:
        low, high: The interval that holds for all methods compared at once, where there is one.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def up(self) -> bool:
        """Whether it lies above 0 beyond chance."""
        return self.low is not None and self.low > 0

    @property
    def down(self) -> bool:
        """Whether it lies below 0 beyond chance."""
        return self.high is not None and self.high < 0


def gain_of(difference: Estimate | None) -> Gain | None:
    """A paired difference; None if it was not measured."""
    if difference is None or difference.value is None:
        return None
    return Gain(difference.value, *(difference.joint or (difference.low, difference.high)))


class Why(StrEnum):
    """Why a method is recommended."""

    UNSCORED = auto()  # nothing was scored by the criterion
    NONE_HIGHER = auto()  # a single call has the highest value
    NONE_BETTER = auto()  # nothing measurably beats a single call
    HIGHEST = auto()  # the highest value
    CHEAPEST = auto()  # the cheapest that cannot be told from the highest


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation with what it rests on.

    Attributes:
        criterion: What it was chosen by, in words.
        accuracy: Whether that is accuracy.
        best: The method that it is compared with; `gap` is its difference to that one.
        top: Whether no other method has a higher value, measurably or not.
        rivals: Whether other methods are cheaper.
        alternative: The best method below its price.
    """

    method: str
    why: Why
    criterion: str
    accuracy: bool
    reason: str
    best: str = ""
    gap: Gain | None = None
    top: bool = True
    rivals: bool = False
    alternative: str | None = None
    cheaper: Row | None = None


def price_of(finding: Finding, method: str) -> float:
    """Calls per item; infinite where they are not known."""
    calls = finding.metrics.methods[method].calls
    return math.inf if calls is None else calls


def advice_of(finding: Finding) -> Advice | None:
    """The recommendation; None where none may be given."""
    given, method = finding.metrics.recommendation, finding.recommended
    if method is None or given is None:
        return None
    rows, metric = finding.metrics.methods, given.metric
    scores = {k: e.value for k, row in rows.items() if (e := row.get(metric)) and e.value}
    criterion = given.criterion.replace("_", " ")
    other = given.alternative if given.alternative in rows else None
    advice = Advice(
        method, Why.UNSCORED, criterion, criterion == ACCURACY, given.reason,
        alternative=other, cheaper=None if other is None else rows[other],
    )  # fmt: skip
    if not scores:
        return advice
    best = given.best or max(scores, key=lambda k: (scores[k], -price_of(finding, k)))
    if method == finding.audit.base:
        why = Why.NONE_HIGHER if best == method else Why.NONE_BETTER
    else:
        why = Why.HIGHEST if best == method else Why.CHEAPEST
    others = rows.keys() - {finding.audit.base}
    return replace(
        advice,
        why=why,
        best=best,
        gap=gain_of(finding.audit.difference(method, best, metric)),
        top=max(scores, key=lambda k: scores[k]) == method,
        rivals=any(price_of(finding, k) < price_of(finding, method) for k in others),
    )


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about it and what that gains; `phrase` is the method's idea in the imperative."""

    method: str
    phrase: str
    row: Row
    gain: Gain | None
    is_base: bool


def remedy_of(finding: Finding) -> Remedy | None:
    """The remedy; None where nothing is recommended."""
    method, base = finding.recommended, finding.audit.base
    if method is None:
        return None
    return Remedy(
        method,
        finding.run.about.get(method, ""),
        finding.metrics.methods[method],
        gain_of(finding.audit.difference(method, base or "", ACCURACY)),
        method == base,
    )


class Steady(StrEnum):
    """What the steadiest method does."""

    STEADIER = auto()  # steadier than the recommended one
    MOST = auto()  # removes most flips
    SOME = auto()  # removes some flips


@dataclass(frozen=True, slots=True)
class Steadier:
    """The method for those who want steady verdicts, with the consistency that it starts from."""

    kind: Steady
    method: str
    row: Row
    before: float
    after: float


def steadier_of(finding: Finding) -> Steadier | None:
    """The steadiest method, where it is another one than the recommended."""
    audit, given = finding.audit, finding.metrics.recommendation
    method = None if given is None else given.steadiest
    if method is None or method == finding.recommended or method not in audit.metrics.methods:
        return None
    row, base = audit.metrics.methods[method], audit.base_row.get(CONSISTENCY)
    after = row.get(CONSISTENCY)
    if base is None or after is None or base.value is None or after.value is None:
        return None
    now = audit.metrics.methods[finding.recommended or method].get(CONSISTENCY)
    if finding.recommended != audit.base and now is not None and not now.by_construction:
        before = now.value or 0.0
        steadier = before < after.value
        return Steadier(Steady.STEADIER, method, row, before, after.value) if steadier else None
    gone = (after.value - base.value) / max(1.0 - base.value, 1e-9)
    kind = Steady.MOST if gone > 0.5 else Steady.SOME
    return Steadier(kind, method, row, base.value, after.value)


@dataclass(frozen=True, slots=True)
class Control:
    """A method that shows what a gain is worth.

    Attributes:
        gain: Of a repeated order over a single call; of the recommended method over the one whose
            order the content decides.
        against: The recommended method; empty where it is not compared.
    """

    method: str
    row: Row
    gain: Gain | None
    against: str = ""


def asks_one_order(method: str, n: int) -> bool:
    """Whether a method asks the same presentation again and again."""
    if method.partition(":")[0] not in METHODS:  # of a package that is not installed here
        return False
    asks = parse_method(method).asks(n)
    return len(asks) > 1 and len({ask.presentation for ask in asks}) == 1


def repeats_of(finding: Finding) -> list[Control]:
    """What asking again without changing the order does: the control for every gain."""
    base = finding.audit.base or ""
    controls = []
    for method, row in finding.metrics.methods.items():
        gain = gain_of(finding.audit.difference(method, base, ACCURACY))
        measured = gain is not None and gain.low is not None and gain.high is not None
        if method != base and measured and asks_one_order(method, finding.n):
            controls.append(Control(method, row, gain))
    return controls


def control_of(finding: Finding) -> Control | None:
    """What an order that the content decides does: the control for every gain in consistency."""
    row = finding.metrics.methods.get(CONTROL)
    if row is None or finding.audit.base == CONTROL:
        return None
    method = finding.recommended
    if method is None or method in {finding.audit.base, CONTROL}:
        return Control(CONTROL, row, None)
    gain = gain_of(finding.audit.difference(method, CONTROL, CONSISTENT_ACCURACY))
    return Control(CONTROL, row, gain if gain is not None and gain.up else None, method)
