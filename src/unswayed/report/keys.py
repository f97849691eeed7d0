"""The key figures under the headline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from unswayed.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.numerals import share
from unswayed.report.plots import Block, PlotRow, PlotTable, no_bias
from unswayed.report.reading import ACCURACY, CONSISTENT_ACCURACY, NO_ROW
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line

__all__ = ["KeyFigure", "key_figures", "key_tables"]

MOST = 4


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number to remember.

    Attributes:
        kind: What it is: position, flips, kept, order, label, or a metric.
        row: The number, named by what it counts, beside a judge without bias or the recommended
            method.
        compared: What it is beside, in words.
    """

    kind: str
    row: PlotRow
    compared: str


def key_figures(finding: Finding) -> list[KeyFigure]:
    """At most four figures: position, steadiness, and how often it is right."""
    right = _right if finding.audit.has_gold else _alone
    figures = itertools.chain(_position(finding), _steadiness(finding), right(finding))
    return list(itertools.islice(figures, MOST))


def _figure(
    kind: str,
    finding: Finding,
    estimate: Estimate,
    reference: float | None,
    compared: str,
    *more: object,
) -> KeyFigure:
    label = plain(sentence("figures.key", kind, finding, *more))
    return KeyFigure(kind, PlotRow(label, estimate, reference, on=True), compared)


def _position(finding: Finding) -> Iterator[KeyFigure]:
    if finding.rates:
        rate = finding.rates[finding.position]
        yield _figure("position", finding, rate, finding.expected, no_bias(finding.n))


def _steadiness(finding: Finding) -> Iterator[KeyFigure]:
    steady = finding.consistency
    if steady is None or steady.value is None:
        return
    if finding.n > 2:
        yield _figure("kept", finding, steady, 1.0, "no bias: 100")
        return
    flips = Estimate(
        value=1 - steady.value,
        low=None if steady.high is None else 1 - steady.high,
        high=None if steady.low is None else 1 - steady.low,
        n=steady.n,
    )
    unread = bool(finding.metrics.flips.get("unread"))
    yield _figure("flips", finding, flips, 0.0, "no bias: 0", 0, unread)


def _right(finding: Finding) -> Iterator[KeyFigure]:
    """How often single calls are right, beside the recommended method."""
    audit, method = finding.audit, finding.recommended
    advised = NO_ROW if method is None or method == audit.base else audit.metrics.methods[method]
    for metric in (CONSISTENT_ACCURACY, ACCURACY):
        estimate, better = audit.base_row.get(metric), advised.get(metric)
        if estimate is not None:
            reference = None if better is None else better.value
            compared = (
                "" if reference is None else f"with {one_line(method or '')}: {share(reference)}"
            )
            yield _figure(metric, finding, estimate, reference, compared)


def _alone(finding: Finding) -> Iterator[KeyFigure]:
    """What stands in for accuracy without gold: each bias on its own."""
    order, label = finding.audit.rates("order", "position"), finding.audit.rates("label", "label")
    largest = max(range(len(label)), key=lambda i: label[i].value or 0.0, default=0)
    for kind, rates, place in (("order", order, finding.position), ("label", label, largest)):
        if rates:
            beside = finding.expected, no_bias(finding.n), place
            yield _figure(kind, finding, rates[place], *beside)


def key_tables(findings: Sequence[Finding], names: Sequence[str]) -> list[PlotTable]:
    """The key figures of several runs: one small table per figure, a row per run."""
    by_label: dict[str, list[PlotRow]] = {}
    for finding, run_name in zip(findings, names, strict=True):
        for figure in key_figures(finding):
            rows = by_label.setdefault(figure.row.label, [])
            rows.append(replace(figure.row, label=run_name))
    return [
        PlotTable(f"% {label}", "runs", (Block(tuple(rows)),)) for label, rows in by_label.items()
    ]
