"""Plot tables: rows of real tables, each with an estimate drawn in it.

The page draws a row as a small SVG with x in percent of its width and y in px, so text never scales
and a row fits any width; figures for papers draw the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar

from unswayed.base.counts import plural
from unswayed.base.visible import one_line
from unswayed.metrics import METRICS
from unswayed.metrics.abstention import COVERAGE, RiskPoint
from unswayed.metrics.rows import Row
from unswayed.model.decisions import Estimate
from unswayed.report.claims import groups_of
from unswayed.report.findings import ACCURACY, CONSISTENCY, POSITION_RATE, Finding
from unswayed.report.intervals import above, below
from unswayed.report.numerals import calls_text, figure, number, ordinal, percent, share, whole
from unswayed.report.numerals import expected as expected_text
from unswayed.report.words import plain, say

WORDS_UP_TO = 4
"""Positions are named in words up to this many candidates, above by number."""

MOST_GROUPS = 60

P = TypeVar("P")
Kind = Literal["shares", "protocols", "groups", "runs"]
"""What rows are, which settles their height, the room for their names and whether they are bars: shares that
add up are, everything else is a point."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Scale of a row's width, and how its numbers are written."""

    # low, high: the values at the ends
    low: float = 0.0
    high: float = 1.0
    write: Callable[[float], str] = share  # a value in words, without its unit
    tick: Callable[[float], str] = whole
    unit: str = "%"  # behind a value that stands alone, and the last tick

    def at(self, value: float) -> float:
        """Return the place of a value, as a fraction of the width; the ends for values outside."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def tick_at(self, place: float) -> str:
        """Return the text of the tick at a fraction of the width."""
        text = self.tick(self.low + place * (self.high - self.low))
        return f"{text}{self.unit}" if place == 1 else text

    def interval(self, estimate: Estimate) -> str:
        """Return the interval of an estimate; empty if there is none."""
        if estimate.low is None or estimate.high is None:
            return ""
        ends = self.write(estimate.low), self.write(estimate.high)
        return ("–" if min(self.low, estimate.low) >= 0 else " to ").join(ends)


PERCENT: Final = Axis()
RHO: Final = Axis(write=number, tick=figure, unit="")
"""Correlations; those below 0 are drawn at it."""


class Note(NamedTuple):
    """The name of a dashed line, above it at x; without a text it keeps the room."""

    text: str
    x: float


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A row: an estimate beside what it would be without bias."""

    label: str
    estimate: Estimate | None  # absent where nothing was measured
    expected: float | None = None
    on: bool = False  # drawn in the accent: the sentence beside speaks about it
    flow: str = ""  # what was changed, below the name
    axis: Axis = PERCENT

    @property
    def line(self) -> float | None:
        """Place without bias, as a fraction of the row's width."""
        return None if self.expected is None else self.axis.at(self.expected)

    @property
    def marks(self) -> tuple[float, float, float] | None:
        """Low end, value and high end, as fractions of the row's width."""
        estimate = self.estimate
        if estimate is None or estimate.value is None:
            return None
        low, value, high = (
            self.axis.at(estimate.value if end is None else end)
            for end in (estimate.low, estimate.value, estimate.high)
        )
        return low, value, high


@dataclass(frozen=True, slots=True)
class PlotBlock:
    """Rows that belong together, under an optional heading."""

    rows: tuple[PlotRow, ...]
    title: str = ""
    flow: str = ""
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class PlotTable:
    """A plot table."""

    caption: str
    kind: Kind
    blocks: tuple[PlotBlock, ...]
    sub: str = ""
    captioned: bool = True  # whether the caption is shown, or only read aloud

    @property
    def ticks(self) -> tuple[float, ...]:
        """Ticks of the axis as fractions; none below bars, more where no caption says what is drawn."""
        if self.kind == "shares":
            return ()
        return (0, 0.5, 1) if self.captioned else (0, 0.25, 0.5, 0.75, 1)

    @property
    def note(self) -> Note | None:
        """The note that all blocks share."""
        notes = {block.note for block in self.blocks}
        return notes.pop() if len(notes) == 1 else None

    @property
    def axis(self) -> Axis:
        """Scale of the width of all rows."""
        return next((row.axis for block in self.blocks for row in block.rows), PERCENT)


def plotted(caption: str, kind: Kind, blocks: Iterable[PlotBlock], sub: str) -> list[PlotTable]:
    """Return a table of the blocks that have rows; none without any."""
    kept = tuple(block for block in blocks if block.rows)
    return [PlotTable(caption, kind, kept, sub)] if kept else []


def no_bias(n: int) -> str:
    """Return the name of the line at 1/n, beside numbers in percent."""
    return f"no bias: {expected_text(n)[:-1]}"


def bias_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Figure 1: shares by position and by label, one table per protocol."""
    tables = []
    for protocol, what in (("coupled", "position"), ("order", "position"), ("label", "label")):
        blocks = (
            _rate_block(finding, n, protocol, rates)
            for finding in findings
            for n in finding.sizes
            if (rates := finding.shares(protocol, what, n))
        )
        caption, sub = map(plain, say("figures.shares", protocol, findings))
        tables += plotted(caption, "shares", blocks, sub)
    return tables


def _rate_block(finding: Finding, n: int, protocol: str, rates: Sequence[Estimate]) -> PlotBlock:
    expected = 1 / n
    rows = tuple(
        PlotRow(place_name(finding, index, n, protocol), rate, expected, above(rate, expected))
        for index, rate in enumerate(rates)
    )
    sized = f"{n} candidates" if len(finding.sizes) > 1 else ""
    title = ", ".join(part for part in (finding.name, sized) if part)
    return PlotBlock(rows, title, note=Note(f"no bias: {expected_text(n)}", expected))


def place_name(finding: Finding, index: int, n: int, protocol: str) -> str:
    """Return the name of a row of Figure 1: "first, A" up to four candidates, above "1 A"."""
    symbol = finding.labels[index] if index < len(finding.labels) else str(index + 1)
    if protocol == "label":
        return symbol
    place, comma = (ordinal(index), ", ") if n <= WORDS_UP_TO else (str(index + 1), " ")
    unnamed = protocol == "order" or finding.run.is_function or place == symbol
    return place if unnamed else f"{place}{comma}{symbol}"


def cause_table(findings: Sequence[Finding]) -> PlotTable:
    """Figure 2: consistency by protocol."""
    alone = len(findings) == 1
    blocks = []
    for protocol in ("coupled", "order", "label"):
        measured = [
            (finding, row.get(CONSISTENCY))
            for finding in findings
            if (row := finding.metrics.protocols.get(protocol)) is not None
        ]
        if not any(estimate for _, estimate in measured):
            continue
        title, flow = map(plain, say("figures.change", protocol, measured[0][0]))
        on = protocol == "coupled"
        if alone:
            blocks.append(PlotBlock((PlotRow(title, measured[0][1], on=on, flow=flow),)))
        else:
            rows = tuple(PlotRow(own.name, estimate, on=on) for own, estimate in measured)
            blocks.append(PlotBlock(rows, title, flow))
    kind: Kind = "protocols" if alone else "runs"
    return PlotTable("Consistency by protocol", kind, tuple(blocks), captioned=False)


def group_tables(findings: Sequence[Finding]) -> tuple[list[PlotTable], int]:
    """Figure 4: consistency and the favoured position's share by group.

    Groups stand in the order of the first run's consistency; several runs are rows of each group.
    How many groups in the middle were left out to keep the tables readable is told beside them.
    """
    first = findings[0]
    rows_of = [dict(groups_of(finding).rows) for finding in findings]
    groups = list(dict.fromkeys(group for rows in rows_of for group in rows))
    left_out = max(0, len(groups) - MOST_GROUPS)
    if left_out:
        groups = [*groups[: MOST_GROUPS // 2], *groups[-MOST_GROUPS // 2 :]]
    tables = []
    for metric in (CONSISTENCY, POSITION_RATE):
        blocks = [
            PlotBlock(
                tuple(
                    _group_row(group, finding, rows.get(group), metric, first.position)
                    for finding, rows in zip(findings, rows_of, strict=True)
                ),
                title=group,
            )
            for group in groups
        ]
        if any(row.marks for block in blocks for row in block.rows):
            tables.append(_group_table(metric, first, blocks, alone=len(findings) == 1))
    return tables, left_out


def _group_row(
    group: str, finding: Finding, row: Row | None, metric: str, position: int
) -> PlotRow:
    """Return a group's row: its consistency beside that of all items, or its share of a position."""
    label = finding.name or group
    if metric == CONSISTENCY:
        whole = finding.base_row.get(CONSISTENCY)
        expected = None if whole is None else whole.value
        estimate = None if row is None else row.get(CONSISTENCY)
    else:
        rates = () if row is None else row.position_rate
        estimate, expected = next(iter(rates[position:]), None), finding.expected
    if estimate is None or expected is None:
        return PlotRow(label, estimate, expected)
    on = above(estimate, expected) or below(estimate, expected)
    return PlotRow(label, estimate, expected, on)


def _group_table(
    metric: str, first: Finding, blocks: Sequence[PlotBlock], *, alone: bool
) -> PlotTable:
    """Return the rows under one note, where they are measured beside the same line."""
    lines = {row.expected for block in blocks for row in block.rows}
    line = lines.pop() if len(lines) == 1 else None
    text = no_bias(first.n) if metric == POSITION_RATE else f"all: {share(line or 0.0)}"
    note = Note("", 0) if line is None else Note(text, line)
    caption, sub = map(plain, say("figures.group_panel", metric, first))
    if alone:
        rows = tuple(row for block in blocks for row in block.rows)
        return PlotTable(caption, "groups", (PlotBlock(rows, note=note),), sub)
    return PlotTable(caption, "runs", tuple(replace(block, note=note) for block in blocks), sub)


def curve_tables(finding: Finding) -> list[PlotTable]:
    """Return the accuracy of methods that learn, with fewer or more estimation items."""

    def row(key: str, point: Row) -> PlotRow:
        items = plural(point.beside.estimation_items or 0, "item")
        flow = f"{calls_text(point.calls or 0.0)} calls per item"
        return PlotRow(items, point.get(key), on=True, flow=flow)

    curve, sub = finding.metrics.estimation_curve or {}, "%, by number of estimation items"
    return [
        table
        for key in (ACCURACY, CONSISTENCY)
        for table in of_curve(METRICS.load(key).title, "runs", curve, partial(row, key), sub)
    ]


def call_tables(finding: Finding) -> list[PlotTable]:
    """Return accuracy and changed verdicts of methods that stop early, with fewer or more calls."""
    curve = finding.metrics.call_curve or {}
    ends = [e.high or 0.0 for points in curve.values() for p in points if (e := p.beside.changed)]
    reach = next((own for own in (0.05, 0.1, 0.2, 0.5) if own >= max(ends, default=0.0)), 1.0)

    def row(axis: Axis, point: Row) -> PlotRow:
        own = point.get(ACCURACY) if axis is PERCENT else point.beside.changed
        return PlotRow(f"{point.calls or 0.0:.2f} calls", own, on=True, axis=axis)

    title, sub = METRICS.load(ACCURACY).title, "%, against the verdicts of every order"
    return [
        *of_curve(title, "runs", curve, partial(row, PERCENT), "%, by calls per item"),
        *of_curve("Changed verdicts", "runs", curve, partial(row, Axis(0.0, reach)), sub),
    ]


def risk_tables(finding: Finding) -> list[PlotTable]:
    """Return errors among the surest answers of methods that abstain, beside the share decided in this run."""

    def row(point: RiskPoint) -> PlotRow:
        return PlotRow(f"surest {percent(point.coverage, 0)}", Estimate(value=point.error, n=0))

    curve, coverage = {}, METRICS.name_of(COVERAGE)
    for name, points in (finding.metrics.risk_curve or {}).items():
        decided = finding.metrics.methods[name].estimates[coverage].value or 0.0
        curve[f"{name}, decides {percent(decided)}"] = points
    sub = "% wrong, by share of verdicts given"
    return of_curve("Errors among verdicts", "groups", curve, row, sub)


def of_curve(
    title: str, kind: Kind, curve: Mapping[str, Sequence[P]], row: Callable[[P], PlotRow], sub: str
) -> list[PlotTable]:
    """Return the points of a curve that have a value, in a block for each method."""
    rows = ((name, tuple(map(row, points))) for name, points in curve.items())
    blocks = (
        PlotBlock(tuple(own for own in each if own.estimate is not None), one_line(name))
        for name, each in rows
    )
    return plotted(title, kind, blocks, sub)
