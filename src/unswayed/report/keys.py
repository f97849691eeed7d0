"""The key figures under the headline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unswayed.decisions import Estimate
from unswayed.report.findings import ACCURACY, CONSISTENT_ACCURACY, NO_ROW, SPEARMAN, Finding
from unswayed.report.numerals import number, share
from unswayed.report.plots import RHO, Block, PlotRow, PlotTable, no_bias
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line

MOST = 4


def key_figures(finding: Finding) -> list[PlotRow]:
    """At most four figures: position, steadiness, and how often it is right.

    Each is named by what it counts and stands beside a judge without bias or the recommended
    method, which its `flow` names.
    """
    right = _right if finding.has_gold else _alone
    if finding.criterion == SPEARMAN:
        right = _close
    figures = itertools.chain(_position(finding), _steadiness(finding), right(finding))
    return list(itertools.islice(figures, MOST))


def _figure(
    kind: str, finding: Finding, rate: Estimate, beside: float | None, flow: str, place: int = 0
) -> PlotRow:
    label = plain(sentence("figures.key", kind, finding, place))
    return PlotRow(label, rate, beside, on=True, flow=flow)


def _position(finding: Finding) -> Iterator[PlotRow]:
    if finding.rates:
        rate = finding.rates[finding.position]
        yield _figure("position", finding, rate, finding.expected, no_bias(finding.n))


def _steadiness(finding: Finding) -> Iterator[PlotRow]:
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
    yield _figure("flips", finding, flips, 0.0, "no bias: 0")


def _right(finding: Finding) -> Iterator[PlotRow]:
    """How often single calls are right, beside the recommended method."""
    rows, method = finding.metrics.methods, finding.recommended
    advised = NO_ROW if method is None or method == finding.base else rows[method]
    for metric in (CONSISTENT_ACCURACY, ACCURACY):
        rate, better = finding.base_row.get(metric), advised.get(metric)
        if rate is not None:
            beside = None if better is None else better.value
            flow = "" if beside is None else f"with {one_line(method or '')}: {share(beside)}"
            yield _figure(metric, finding, rate, beside, flow)


def _close(finding: Finding) -> Iterator[PlotRow]:
    """How close single scores are to human scores, beside the recommended method."""
    own, method = finding.base_row.get(SPEARMAN), finding.recommended
    if own is None:
        return
    better = None if method in (None, finding.base) else finding.metrics.methods[method or ""]
    after = None if better is None else better.get(SPEARMAN)
    beside = None if after is None else after.value
    flow = "" if beside is None else f"with {one_line(method or '')}: {number(beside)}"
    yield replace(_figure(SPEARMAN, finding, own, beside, flow), axis=RHO)


def _alone(finding: Finding) -> Iterator[PlotRow]:
    """What stands in for accuracy without gold: each bias on its own."""
    order, label = finding.shares("order", "position"), finding.shares("label", "label")
    largest = max(range(len(label)), key=lambda i: label[i].value or 0.0, default=0)
    for kind, rates, place in (("order", order, finding.position), ("label", label, largest)):
        if rates:
            beside, flow = finding.expected, no_bias(finding.n)
            yield _figure(kind, finding, rates[place], beside, flow, place)


def key_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """The key figures of several runs: one small table per figure, a row per run."""
    by_label: dict[str, list[PlotRow]] = {}
    for finding in findings:
        for row in key_figures(finding):
            named = replace(row, label=finding.name, flow="")
            by_label.setdefault(row.label, []).append(named)
    return [
        PlotTable(
            f"{'%' if rows[0].axis.unit else ''} {label}".strip(), "runs", (Block(tuple(rows)),)
        )
        for label, rows in by_label.items()
    ]
