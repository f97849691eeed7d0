"""The key figures under the headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unswayed.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.numerals import expected, interval, share
from unswayed.report.plots import Block, Mark, PlotRow, PlotTable, mark, row
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line

__all__ = ["KeyFigure", "key_figures", "key_tables"]

MOST = 4


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number to remember.

    Attributes:
        kind: What it is: position, flips, kept, consistent_accuracy, accuracy, order, label.
        reference: Where a judge without bias, or the recommended method, would be.
        compared: That reference in words.
    """

    kind: str
    label: str
    estimate: Estimate
    reference: float | None
    compared: str

    @property
    def number(self) -> str:
        """The value in percent, without the sign."""
        return share(self.estimate.value or 0.0)

    @property
    def mark(self) -> Mark | None:
        """Its strip."""
        return mark(self.estimate, expected=self.reference, on=True)

    @property
    def below(self) -> str:
        """Interval and comparison."""
        return "; ".join(part for part in (interval(self.estimate), self.compared) if part)


def key_figures(finding: Finding) -> list[KeyFigure]:
    """At most four figures: position, steadiness, and how often it is right."""
    figures = [_position(finding), _steadiness(finding)]
    if finding.audit.has_gold:
        figures += [_right(finding, kind) for kind in ("consistent_accuracy", "accuracy")]
    else:
        figures += _alone(finding)
    return [figure for figure in figures if figure is not None][:MOST]


def _figure(
    kind: str,
    finding: Finding,
    estimate: Estimate,
    reference: float | None,
    compared: str,
    *more: object,
) -> KeyFigure:
    label = plain(sentence("figures.key", kind, finding, *more))
    return KeyFigure(kind, label, estimate, reference, compared)


def _no_bias(finding: Finding) -> str:
    return f"no bias: {expected(finding.n)[:-2]}"  # as beside it, without the sign


def _position(finding: Finding) -> KeyFigure | None:
    if not finding.rates:
        return None
    rate = finding.rates[finding.position]
    return _figure("position", finding, rate, finding.expected, _no_bias(finding))


def _steadiness(finding: Finding) -> KeyFigure | None:
    steady = finding.consistency
    if steady is None or steady.value is None:
        return None
    if finding.n > 2:
        return _figure("kept", finding, steady, 1.0, "no bias: 100")
    flips = Estimate(
        value=1 - steady.value,
        low=None if steady.high is None else 1 - steady.high,
        high=None if steady.low is None else 1 - steady.low,
        n=steady.n,
    )
    unread = bool(finding.metrics.flips.get("unread"))
    return _figure("flips", finding, flips, 0.0, "no bias: 0", 0, unread)


def _right(finding: Finding, metric: str) -> KeyFigure | None:
    """A figure of single calls beside that of the recommended method."""
    estimate = finding.audit.base_row.get(metric)
    if estimate is None:
        return None
    method = finding.recommended
    better = None
    if method is not None and method != finding.audit.base:
        better = finding.metrics.methods[method].get(metric)
    if better is None or better.value is None:
        return _figure(metric, finding, estimate, None, "")
    compared = f"with {one_line(method or '')}: {share(better.value)}"
    return _figure(metric, finding, estimate, better.value, compared)


def _alone(finding: Finding) -> list[KeyFigure | None]:
    """What stands in for accuracy without gold: each bias on its own."""
    figures: list[KeyFigure | None] = []
    for kind, what, index in (("order", "position", finding.position), ("label", "label", None)):
        rates = finding.audit.rates(kind, what)
        if rates:
            largest = max(range(len(rates)), key=lambda i: rates[i].value or 0.0)
            place = largest if index is None else index
            compared = _no_bias(finding)
            figures.append(_figure(kind, finding, rates[place], finding.expected, compared, place))
    return figures


def key_tables(findings: Sequence[Finding], names: Sequence[str]) -> list[PlotTable]:
    """The key figures of several runs: one small table per figure, a row per run."""
    by_label: dict[str, list[PlotRow]] = {}
    for finding, run_name in zip(findings, names, strict=True):
        for figure in key_figures(finding):
            line = row(run_name, figure.estimate, expected=figure.reference, on=True)
            by_label.setdefault(figure.label, []).append(line)
    return [
        PlotTable(f"% {label}", "", "dot", (Block(tuple(rows)),), ticks=(0, 0.5, 1), wide="r")
        for label, rows in by_label.items()
    ]
