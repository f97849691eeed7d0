"""The key figures under the headline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unswayed.base.visible import one_line
from unswayed.model.decisions import Estimate
from unswayed.report.findings import (
    ACCURACY_FRACTIONAL,
    CONSISTENT_ACCURACY,
    NO_ROW,
    SPEARMAN,
    Finding,
)
from unswayed.report.numerals import number, share, signed
from unswayed.report.plots import RHO, Axis, PlotBlock, PlotRow, PlotTable, no_bias
from unswayed.report.words import plain, sentence

MOST = 4
POINTS = Axis(-1.0, write=signed, unit="")


def key_figures(finding: Finding, runs: Sequence[Finding] = ()) -> list[PlotRow]:
    """At most four figures: the effect of position, what changes, and how often it is right.

    Each is named by what it counts; its `flow` names what it stands beside. If `runs` are compared, all show the same.
    """
    right = _right if finding.has_gold or finding.criterion == SPEARMAN else _alone
    figures = itertools.chain(
        _effect(finding), _changes(finding, runs or [finding]), right(finding)
    )
    return list(itertools.islice(figures, MOST))


def _figure(
    kind: str, finding: Finding, rate: Estimate, beside: float | None, flow: str, place: int = 0
) -> PlotRow:
    label = plain(sentence("figures.key", kind, finding, place))
    return PlotRow(label, rate, beside, on=True, flow=flow)


def _effect(finding: Finding) -> Iterator[PlotRow]:
    """Yield the gain of a position, in points over an even share."""
    effect, kind = finding.effect, "effect"
    if effect is None and finding.rates and finding.consistency is not None:
        kind, even, rate = "position", finding.expected, finding.rates[finding.position]
        value, low, high = (
            None if end is None else end - even for end in (rate.value, rate.low, rate.high)
        )
        effect = Estimate(value=value, low=low, high=high, n=rate.n)
    if effect is not None:
        yield replace(_figure(kind, finding, effect, 0.0, "dotted: no bias"), axis=POINTS)


def _changes(finding: Finding, runs: Sequence[Finding]) -> Iterator[PlotRow]:
    """Yield the effect of the order, beyond repeat noise where that was measured in every run."""
    steady, again = finding.consistency, finding.repeats
    if steady is None or steady.value is None:
        return
    if again and all(run.repeats for run in runs):
        yield _figure("beyond", finding, again.beyond, None, "")
    elif finding.n > 2:
        yield _figure("kept", finding, steady, None, "")
    else:
        low, high = (None if end is None else 1 - end for end in (steady.high, steady.low))
        flips = Estimate(value=1 - steady.value, low=low, high=high, n=steady.n)
        unread = (run for run in runs if run.metrics.flips.get("unread"))
        yield _figure("flips", next(unread, finding), flips, None, "")


def _right(finding: Finding) -> Iterator[PlotRow]:
    """Yield the accuracy of single calls, or their closeness to human scores, beside the recommended method."""
    rows, method = finding.metrics.methods, finding.recommended
    advised = NO_ROW if method is None or method == finding.base else rows[method]
    ranks = finding.criterion == SPEARMAN
    for metric in (SPEARMAN,) if ranks else (ACCURACY_FRACTIONAL, CONSISTENT_ACCURACY):
        rate, better = finding.base_row.get(metric), advised.get(metric)
        if rate is not None:
            beside = None if better is None else better.value
            told = "" if beside is None else number(beside) if ranks else share(beside)
            flow = f"dotted: {told} with {one_line(method or '')}" if told else ""
            figure = _figure(metric, finding, rate, beside, flow)
            yield replace(figure, axis=RHO) if ranks else figure


def _alone(finding: Finding) -> Iterator[PlotRow]:
    """Yield each bias on its own, in place of accuracy without gold."""
    order, label = finding.shares("order", "position"), finding.shares("label", "label")
    largest = max(range(len(label)), key=lambda i: label[i].value or 0.0, default=0)
    for kind, rates, place in (("order", order, finding.position), ("label", label, largest)):
        if rates:
            beside, flow = finding.expected, no_bias(finding.n)
            yield _figure(kind, finding, rates[place], beside, flow, place)


def key_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Return the key figures of several runs: one small table per figure, a row per run."""
    by_label: dict[str, list[PlotRow]] = {}
    for finding in findings:
        for row in key_figures(finding, findings):
            named = replace(row, label=finding.name)
            by_label.setdefault(row.label, []).append(named)
    return [
        PlotTable(f"{rows[0].axis.unit} {label}".strip(), "runs", (PlotBlock(tuple(rows)),))
        for label, rows in by_label.items()
    ]
