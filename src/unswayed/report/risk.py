"""Errors among the surest answers of methods that abstain, beside the share decided in this run."""

from __future__ import annotations

from unswayed.base.visible import one_line
from unswayed.metrics.abstention import COVERAGE
from unswayed.metrics.table import METRICS
from unswayed.model.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.numerals import percent
from unswayed.report.plots import PlotBlock, PlotRow, PlotTable


def risk_tables(finding: Finding) -> list[PlotTable]:
    """Return one table with a block for each method; none where no method abstains."""
    blocks = []
    for name, points in (finding.metrics.risk_curve or {}).items():
        rows = [
            PlotRow(f"surest {percent(point.coverage, 0)}", Estimate(value=point.error, n=0))
            for point in points
        ]
        coverage = finding.metrics.methods[name].estimates[METRICS.name_of(COVERAGE)].value
        title = f"{one_line(name)}, decides {percent(coverage or 0.0)}"
        blocks.append(PlotBlock(tuple(rows), title))
    sub = "% wrong, by share of answers decided"
    return [PlotTable("Errors among verdicts", "groups", tuple(blocks), sub)] if blocks else []
