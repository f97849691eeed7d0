"""Tables behind a fold: every group, thresholds, fewer or more estimation items.

They repeat nothing that the page shows already but the groups, whose names a figure has to shorten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from unswayed.auditing.rows import Row
from unswayed.decisions import Estimate
from unswayed.report.claims import groups_of
from unswayed.report.findings import ACCURACY, CONSISTENCY, Finding
from unswayed.report.numerals import calls_text, count, interval, ordinal, plural, share
from unswayed.report.plots import Block, PlotRow, PlotTable
from unswayed.visible import one_line

__all__ = ["Cell", "PlainTable", "appendix"]

ABSENT: Final = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with what stands below it."""

    text: str
    below: str = ""


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table without sorting, or charts; each row begins with its name.

    Attributes:
        intro: A sentence above the table; empty for none.
        printed: Whether it unfolds on paper.
        charts: What stands above it.
    """

    title: str
    intro: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    printed: bool = False
    charts: tuple[PlotTable, ...] = ()


def appendix(findings: Sequence[Finding]) -> tuple[PlainTable, ...]:
    """The folded tables of every run, in order; those without data are left out."""
    builders: tuple[Callable[[Finding], PlainTable | None], ...] = (
        group_table,
        threshold_table,
        curve_table,
    )
    tables = []
    for finding in findings:
        for build in builders:
            table = build(finding)
            if table is None:
                continue
            title = f"{table.title}, {one_line(finding.name)}" if finding.name else table.title
            tables.append(replace(_measured(table), title=title))
    return tuple(tables)


def _measured(table: PlainTable) -> PlainTable:
    """The table without columns that have no value at all."""
    kept = [
        column
        for column in range(len(table.heading) - 1)
        if any(cells[column].text != ABSENT for _, cells in table.rows)
    ]
    return replace(
        table,
        heading=(table.heading[0], *(table.heading[column + 1] for column in kept)),
        rows=tuple((name, tuple(cells[column] for column in kept)) for name, cells in table.rows),
    )


def group_table(finding: Finding) -> PlainTable | None:
    """Every group under the single call, with its full name."""
    groups = groups_of(finding).rows
    if len(groups) < 2:
        return None
    place = ordinal(finding.position)
    rows = []
    for group, figures in groups:
        rates = figures.positions(finding.n)
        shares = rates[finding.position] if len(rates) > finding.position else None
        cells = [
            Cell(count(figures.items)),
            *map(_cell, map(figures.get, (ACCURACY, CONSISTENCY))),
        ]
        rows.append((one_line(group), (*cells, _cell(shares))))
    return PlainTable(
        "Every group",
        f"Single calls ({one_line(finding.base or '')}), in %, 95\u202f% intervals below.",
        ("Group", "Items", "Accuracy", "Consistency", f"{place.capitalize()} position"),
        tuple(rows),
        printed=True,
    )


def threshold_table(finding: Finding) -> PlainTable | None:
    """Two candidates: what every method that reads one call amounts to."""
    view = finding.run.metrics.thresholds
    if not view or not view.methods:
        return None
    shown = list(next(iter(view.methods.values())))
    rows = [
        (one_line(name), tuple(Cell(_fraction(thresholds.get(key))) for key in shown))
        for name, thresholds in view.methods.items()
    ]
    best = view.by_presentation
    if best:
        cells = [
            Cell(_fraction(best[key].threshold), f"accuracy {share(best[key].accuracy)}")
            if key in best
            else Cell(ABSENT)
            for key in shown
        ]
        rows.append(("best in hindsight", tuple(cells)))
    return PlainTable("Thresholds on P(A)", one_line(view.text), ("Method", *shown), tuple(rows))


def curve_table(finding: Finding) -> PlainTable | None:
    """What methods that learn are worth with fewer or more estimation items, as charts."""
    curve = finding.run.metrics.estimation_curve or {}
    charts = tuple(
        PlotTable(
            metric.capitalize(), "runs", blocks, "%, by number of estimation items"
        )
        for metric in (ACCURACY, CONSISTENCY)
        if (blocks := tuple(_curves(curve, metric)))
    )  # fmt: skip
    if not charts:
        return None
    intro = "Methods that learn, fitted on so many items of the other folds."
    return PlainTable("Fewer or more estimation items", intro, ("",), (), charts=charts)


def _curves(curve: Mapping[str, Sequence[Row]], metric: str) -> Iterator[Block]:
    """A block for each method, a row for each number of estimation items."""
    for name, points in curve.items():
        rows = tuple(
            PlotRow(
                plural(point.estimation_items or 0, "item"),
                estimate,
                on=True,
                flow=f"{calls_text(point.calls or 0.0)} calls per item",
            )
            for point in points
            if (estimate := point.get(metric)) is not None
        )
        if rows:
            yield Block(rows, title=one_line(name))


def _cell(estimate: Estimate | None) -> Cell:
    if estimate is None or estimate.value is None:
        return Cell(ABSENT)
    return Cell(share(estimate.value), interval(estimate))


def _fraction(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"
