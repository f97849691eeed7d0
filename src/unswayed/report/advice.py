"""The controls beside the recommendation: what a gain is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unswayed.decisions import Estimate
from unswayed.methods import METHODS
from unswayed.methods.names import parse_method
from unswayed.metrics.rows import Row
from unswayed.report.findings import CONSISTENT_ACCURACY, SPEARMAN, Finding
from unswayed.report.intervals import above


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


def _controls(finding: Finding, *, again: bool) -> Iterator[tuple[str, Row]]:
    """The controls that ask again and again, or those that ask once."""
    for method, row in finding.metrics.methods.items():
        if method.partition(":")[0] not in METHODS:  # of a package that is not installed here
            continue
        own = parse_method(method)
        if own.about.control and (len(own.asks(finding.n)) > 1) is again:
            yield method, row


def repeats_of(finding: Finding) -> list[Control]:
    """What asking again without changing the order does: the control for every gain."""
    controls = []
    for method, row in _controls(finding, again=True):
        gain = finding.difference(method, finding.base or "", finding.criterion)
        if gain is not None and gain.low is not None and gain.high is not None:
            controls.append(Control(method, row, gain))
    return controls


def control_of(finding: Finding) -> Control | None:
    """What an order that the content decides does: the control for every gain in consistency."""
    name, row = next(_controls(finding, again=False), ("", None))
    method = finding.recommended
    if row is None or name == finding.base:
        return None
    by_rank = finding.criterion == SPEARMAN  # right most often says little of scores
    if method is None or by_rank or method == finding.base:
        return Control(name, row, None)
    gain = finding.difference(method, name, CONSISTENT_ACCURACY)
    return Control(name, row, gain if gain is not None and above(gain, 0.0) else None, method)
