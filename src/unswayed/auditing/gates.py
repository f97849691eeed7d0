"""Gates: conditions on the figures of a run, checked with their intervals."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from unswayed.auditing.comparison import changes, load_answers
from unswayed.auditing.records import CallsRecord, Metrics
from unswayed.base.counts import plural
from unswayed.base.errors import BackendError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.methods import BASE
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.table import METRICS
from unswayed.model.decisions import Estimate

Rule = Literal["shown", "strict", "point"]
"""`shown`: fail where the whole interval is bad. `strict`: pass only where none of it is. `point`: the value."""
Outcome = Literal["pass", "fail", "unclear", "unknown"]

MOST: Final = 1_000_000
"""Items above which a gate names no number."""
_AMPLE: Final = (1.96 + 0.84) / 1.96
"""Factor of an interval's width at which an effect as measured is shown in 80% of samples."""

FLIP_RATE: Final = "flip_rate"
"""1 - consistency."""
_CONDITION: Final = re.compile(
    r"(?P<metric>[a-z_0-9.]+)(?:\[(?P<place>\d+)\])?\s*(?:@(?P<method>[\w:.=,+-]+))?\s*(?:#(?P<group>.+?))?"
    r"\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[0-9.eE+-]+)"
)
_IS_BAD: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a failing build: `METRIC[INDEX] @METHOD #GROUP OP NUMBER`, such as `flip_rate>0.1`."""

    text: str
    metric: str
    place: int
    method: str
    group: str | None
    is_bad: Callable[[float], bool]
    limit: float

    @classmethod
    def of(cls, text: str) -> Condition:
        """Read a condition.

        Raises:
            UsageError: If it is not one, or names an unknown metric.
        """
        parts = _CONDITION.fullmatch(text.strip())
        try:
            limit = float(parts["limit"]) if parts else math.nan
        except ValueError:
            limit = math.nan
        if parts is None or not math.isfinite(limit):
            raise UsageError(
                f"--fail-if {text!r}: write METRIC<NUMBER or METRIC>NUMBER, such as 'flip_rate>0.1'."
            )
        counts = [f"calls.{name}" for name in CallsRecord.__struct_fields__]
        names = (FLIP_RATE, *METRICS, *counts)
        if parts["metric"] not in names:
            raise UsageError(
                f"--fail-if {text!r}: unknown metric {parts['metric']!r}. "
                f"{did_you_mean(parts['metric'], names)}"
            )
        own = METRICS.name_of(CONSISTENCY) if parts["metric"] == FLIP_RATE else parts["metric"]
        if abs(limit) > 1 and own in METRICS and METRICS.load(own).percent:
            raise UsageError(
                f"--fail-if {text!r}: {limit:g} is not a share. Write 0.1 for a limit of 10%."
            )
        compare = _IS_BAD[parts["sign"]]
        return cls(
            text=text.strip(),
            metric=parts["metric"],
            place=int(parts["place"] or 0),
            method=parts["method"] or BASE,
            group=parts["group"],
            is_bad=lambda value: compare(value, limit),
            limit=limit,
        )


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A condition and what the run shows of it."""

    title: str
    outcome: Outcome
    said: str  # one sentence
    estimate: Estimate

    def fails(self, rule: Rule) -> bool:
        """Return True if a build fails by it."""
        return self.outcome in ("fail", "unknown") or (
            rule == "strict" and self.outcome == "unclear"
        )


def check(metrics: Metrics, condition: Condition, rule: Rule = "shown") -> GateCheck:
    """Return what a run shows of a condition; a figure without a value fails.

    Raises:
        UsageError: If the run has no such method, group or place.
    """
    estimate = _estimate(metrics, condition)
    text, value, low, high = condition.text, estimate.value, estimate.low, estimate.high
    if value is None:
        reason = estimate.reason or "the run does not have it"
        return GateCheck(text, "unknown", f"{text}: not known ({reason}).", estimate)
    if rule != "point" and low is None and estimate.reason:
        said = f"{text}: {value:.4g}, without an interval ({estimate.reason})."
        return GateCheck(text, "unclear", said, estimate)
    if rule == "point" or low is None or high is None or estimate.by_construction:
        outcome: Outcome = "fail" if condition.is_bad(value) else "pass"
        why = " by construction, whatever the judge does" if estimate.by_construction else ""
        return GateCheck(text, outcome, f"{text}: {value:.4g}{why}.", estimate)
    ends = {condition.is_bad(low), condition.is_bad(high)}
    outcome = "unclear" if len(ends) == 2 else "fail" if ends == {True} else "pass"
    said = f"{text}: {value:.3f} ({low:.3f} to {high:.3f}, {plural(estimate.n, 'item')})"
    distance = abs(value - condition.limit)
    if outcome == "unclear" and distance:
        end = high if condition.is_bad(high) != condition.is_bad(value) else low
        wanted = math.floor(estimate.n * (_AMPLE * (end - value) / distance) ** 2) + 1
        of = f" ({math.ceil(wanted * estimate.units / estimate.n):,} distinct questions)"
        if wanted > MOST:
            said += (
                f"; the value is so close to the limit that even {MOST:,} items may not decide it"
            )
        else:
            said += f"; about {plural(wanted, 'item')}{of if estimate.units < estimate.n else ''} in all may decide it"
    return GateCheck(text, outcome, f"{said}.", estimate)


def _estimate(metrics: Metrics, condition: Condition) -> Estimate:
    if condition.metric.startswith("calls."):
        count = getattr(metrics.calls, condition.metric.removeprefix("calls."))
        number = float(count) if isinstance(count, int | float) else None
        return Estimate(
            value=number, n=0, reason=None if number is not None else "it is not one number"
        )
    rows = metrics.methods
    if condition.group is not None:
        if condition.group not in metrics.groups:
            raise UsageError(
                f"--fail-if {condition.text!r}: the run has no group {condition.group!r}. "
                f"{did_you_mean(condition.group, metrics.groups)}"
            )
        rows = metrics.groups[condition.group]
    if condition.method not in rows:
        raise UsageError(
            f"--fail-if {condition.text!r}: the run has no method {condition.method!r}. "
            f"{did_you_mean(condition.method, rows)} Audit with --methods."
        )
    is_flip = condition.metric == FLIP_RATE
    metric = METRICS.name_of(CONSISTENCY) if is_flip else condition.metric
    values = rows[condition.method].values.get(metric, ())
    if values and condition.place >= len(values):
        raise UsageError(f"--fail-if {condition.text!r}: places count from 0 to {len(values) - 1}.")
    estimate = values[condition.place] if values else Estimate(value=None, n=0)
    if not is_flip or estimate.value is None:
        return estimate
    if metrics.calls.unparsed >= metrics.calls.heard:
        return Estimate(value=None, n=0, reason="no answer could be read")
    value, low, high = (  # rounded, because 1 - 0.7 is above 0.3
        None if share is None else round(1 - share, 12)
        for share in (estimate.value, estimate.high, estimate.low)
    )
    return replace(estimate, value=value, low=low, high=high)


def check_baseline(baseline: Path, run: Path, margin: float, rule: Rule = "shown") -> GateCheck:
    """Return whether a run keeps its verdicts as well as a baseline, paired by item (non-inferiority).

    Raises:
        UsageError: If the runs share no item in the same presentations.
    """
    name = METRICS.name_of(CONSISTENCY)
    estimate = changes(load_answers(baseline), load_answers(run)).get(name)
    title = f"consistency not more than {margin:g} below {baseline}"
    if estimate is None:
        raise UsageError(
            f"{run} and {baseline} share no item in the same presentations. Choose another --baseline."
        )
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return GateCheck(title, "unknown", f"{title}: not known ({estimate.reason}).", estimate)
    low, high = (estimate.value,) * 2 if rule == "point" else (estimate.low, estimate.high)
    outcome: Outcome = "pass" if low > -margin else "fail" if high <= -margin else "unclear"
    said = (
        f"{title}: {estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f}, "
        f"{plural(estimate.n, 'shared item')})."
    )
    return GateCheck(title, outcome, said, estimate)


def check_calls(metrics: Metrics, most: float) -> None:
    """Raise `BackendError` if a larger share of the calls than `most` failed: nothing is known then."""
    calls = metrics.calls
    if calls.failed > most * max(1, calls.planned):
        raise BackendError(
            f"{calls.failed:,} of {plural(calls.planned, 'call')} failed, so no gate is checked. Run the "
            "audit again, or allow more with --max-failed-share."
        )


def failures(checks: Sequence[GateCheck], rule: Rule) -> list[str]:
    """Return the sentence of each check that fails."""
    return [own.said for own in checks if own.fails(rule)]
