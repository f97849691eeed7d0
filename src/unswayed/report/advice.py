"""What to use instead of a single call: the recommendation, from paired differences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum, auto

from unswayed.decisions import Estimate
from unswayed.methods import CONTROL, METHODS
from unswayed.methods.names import parse_method
from unswayed.metrics.rows import Row
from unswayed.report.findings import ACCURACY, CONSISTENCY, CONSISTENT_ACCURACY, SPEARMAN, Finding
from unswayed.report.intervals import above


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
        best: The method that it is compared with; `gap` is its difference to that one, in fractions
            that are shown in `percent` or not.
        top: Whether no other method has a higher value, measurably or not.
        rivals: Whether other methods are cheaper.
        alternative: The best method below its price.
    """

    method: str
    why: Why
    criterion: str
    reason: str
    best: str = ""
    gap: Estimate | None = None
    percent: bool = True
    top: bool = True
    rivals: bool = False
    alternative: str | None = None


def advice_of(finding: Finding) -> Advice | None:
    """The recommendation; None where none may be given."""
    given, method = finding.metrics.recommendation, finding.recommended
    if method is None or given is None:
        return None
    rows, metric = finding.metrics.methods, given.metric
    prices = {k: math.inf if row.calls is None else row.calls for k, row in rows.items()}
    scores = {k: e.value for k, row in rows.items() if (e := row.get(metric)) and e.value}
    advice = Advice(
        method=method,
        why=Why.UNSCORED,
        criterion=given.criterion.replace("_", " "),
        reason=given.reason,
        alternative=given.alternative if given.alternative in rows else None,
    )
    if not scores:
        return advice
    best = given.best or max(scores, key=lambda k: (scores[k], -prices[k]))
    if method == finding.base:
        why = Why.NONE_HIGHER if best == method else Why.NONE_BETTER
    else:
        why = Why.HIGHEST if best == method else Why.CHEAPEST
    others = rows.keys() - {finding.base}
    return replace(
        advice,
        why=why,
        best=best,
        gap=finding.difference(method, best, metric),
        percent=metric != SPEARMAN,
        top=max(scores, key=lambda k: scores[k]) == method,
        rivals=any(prices[k] < prices[method] for k in others),
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
    rows, given = finding.metrics.methods, finding.metrics.recommendation
    method = None if given is None else given.steadiest
    if method is None or method == finding.recommended or method not in rows:
        return None
    base, after = finding.base_row.get(CONSISTENCY), rows[method].get(CONSISTENCY)
    if base is None or after is None or base.value is None or after.value is None:
        return None
    now = rows[finding.recommended or method].get(CONSISTENCY)
    if finding.recommended != finding.base and now is not None and not now.by_construction:
        kind, before = Steady.STEADIER, now.value or 0.0
        if before >= after.value:
            return None
    else:
        before = base.value
        gone = (after.value - before) / max(1.0 - before, 1e-9)
        kind = Steady.MOST if gone > 0.5 else Steady.SOME
    return Steadier(kind, method, rows[method], before, after.value)


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
    gain: Estimate | None
    against: str = ""


def asks_one_order(method: str, n: int) -> bool:
    """Whether a method asks the same presentation again and again."""
    if method.partition(":")[0] not in METHODS:  # of a package that is not installed here
        return False
    asks = parse_method(method).asks(n)
    return len(asks) > 1 and len({ask.presentation for ask in asks}) == 1


def repeats_of(finding: Finding) -> list[Control]:
    """What asking again without changing the order does: the control for every gain."""
    base = finding.base or ""
    metric = SPEARMAN if finding.criterion == SPEARMAN else ACCURACY
    controls = []
    for method, row in finding.metrics.methods.items():
        gain = finding.difference(method, base, metric)
        measured = gain is not None and gain.low is not None and gain.high is not None
        if method != base and measured and asks_one_order(method, finding.n):
            controls.append(Control(method, row, gain))
    return controls


def control_of(finding: Finding) -> Control | None:
    """What an order that the content decides does: the control for every gain in consistency."""
    row = finding.metrics.methods.get(CONTROL)
    if row is None or finding.base == CONTROL:
        return None
    method = finding.recommended
    by_rank = finding.criterion == SPEARMAN  # right most often says little of scores
    if method is None or by_rank or method in {finding.base, CONTROL}:
        return Control(CONTROL, row, None)
    gain = finding.difference(method, CONTROL, CONSISTENT_ACCURACY)
    return Control(CONTROL, row, gain if gain is not None and above(gain, 0.0) else None, method)
