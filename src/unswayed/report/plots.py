"""Plot tables: rows of real tables with one small SVG each.

x is in percent of the row's width and y in px, so text never scales and a row fits any width. The
templates only draw what is laid out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from unswayed.auditing.rows import Row
from unswayed.decisions import Estimate
from unswayed.report.claims import groups_of
from unswayed.report.findings import Finding, above, below
from unswayed.report.numerals import expected as expected_text
from unswayed.report.numerals import interval, ordinal, share

__all__ = [
    "Block",
    "Mark",
    "Note",
    "PlotRow",
    "PlotTable",
    "bias_tables",
    "cause_table",
    "group_tables",
    "mark",
    "rate_name",
]

WORDS_UP_TO = 4
"""Positions are named in words up to this many candidates, above by number."""

MOST_GROUPS = 60
NEAR_EDGE = 0.25


@dataclass(frozen=True, slots=True)
class Mark:
    """One estimate as geometry: fractions of the row's width.

    Attributes:
        on: Drawn in the accent: the sentence beside speaks about it.
    """

    value: float
    low: float
    high: float
    expected: float | None
    on: bool

    @property
    def width(self) -> float:
        """Width of the interval band."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Note:
    """The name of a dashed line, above it."""

    text: str
    x: float
    anchor: Literal["start", "middle", "end"]
    shift: int


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A row: name, mark, figures. A row without an estimate says why instead."""

    label: str
    mark: Mark | None
    value: str
    range: str
    flow: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that belong together, under an optional heading."""

    rows: tuple[PlotRow, ...]
    title: str = ""
    flow: str = ""
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class PlotTable:
    """A plot table.

    Attributes:
        kind: "bar" for shares that add up, "dot" for everything else.
        ticks: Axis ticks as fractions; empty for none.
        height: Row height in px.
        wide: Class of the label column: "" for positions, "l" for protocols, "g" for groups, "r"
            for runs.
        spaced: Room for a note is kept without one, so that tables side by side align.
    """

    caption: str
    sub: str
    kind: Literal["bar", "dot"]
    blocks: tuple[Block, ...]
    note: Note | None = None
    ticks: tuple[float, ...] = ()
    height: int = 28
    wide: str = ""
    classes: str = ""
    hidden_caption: bool = False
    spaced: bool = False
    unit: str = ""


def clipped(fraction: float) -> float:
    """A fraction, kept inside the row."""
    return min(1.0, max(0.0, fraction))


def mark(estimate: Estimate, *, expected: float | None = None, on: bool = False) -> Mark | None:
    """The geometry of an estimate; None if it has no value."""
    if estimate.value is None:
        return None
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return Mark(
        value=clipped(estimate.value),
        low=clipped(low),
        high=clipped(high),
        expected=None if expected is None else clipped(expected),
        on=on,
    )


def note(text: str, x: float) -> Note:
    """The name of a dashed line at x, kept inside the row."""
    if x <= NEAR_EDGE:
        return Note(text, clipped(x), "start", -4)
    return Note(text, clipped(x), "end" if x >= 1 - NEAR_EDGE else "middle", 0)


def row(
    label: str,
    estimate: Estimate | None,
    *,
    expected: float | None = None,
    on: bool = False,
    flow: str = "",
) -> PlotRow:
    """A row for an estimate."""
    if estimate is None or estimate.value is None:
        return PlotRow(label, None, "–", "not measured", flow)
    return PlotRow(
        label,
        mark(estimate, expected=expected, on=on),
        share(estimate.value),
        interval(estimate),
        flow,
    )


def position_name(position: int, n: int) -> str:
    """ "first" up to four candidates, above "1"."""
    return ordinal(position) if n <= WORDS_UP_TO else str(position + 1)


def bias_tables(findings: Sequence[Finding], names: Sequence[str]) -> list[PlotTable]:
    """Figure 1: shares by position and by label, one table per protocol."""
    tables = []
    for caption, sub, protocol, what in (
        ("As the judge is normally asked", "{coupled}", "coupled", "position"),
        ("Position alone", "labels balanced over positions", "order", "position"),
        ("Label alone", "positions balanced over labels", "label", "label"),
    ):
        blocks = [
            _rate_block(finding, n, protocol, what, run_name)
            for finding, run_name in zip(findings, names, strict=True)
            for n in finding.audit.sizes
            if finding.audit.rates(protocol, what, n)
        ]
        if not blocks:
            continue
        subtitle = sub.replace("{coupled}", _coupled_sub(findings))
        tables.append(_rate_table(caption, subtitle, blocks))
    return tables


def _rate_block(finding: Finding, n: int, protocol: str, what: str, run_name: str) -> Block:
    rates = finding.audit.rates(protocol, what, n)
    expected = 1 / n
    rows = tuple(
        row(
            rate_name(finding.labels, index, n, protocol, what),
            rate,
            expected=expected,
            on=above(rate, expected),
        )
        for index, rate in enumerate(rates)
    )
    sized = f"{n} candidates" if len(finding.audit.sizes) > 1 else ""
    title = ", ".join(part for part in (run_name, sized) if part)
    return Block(rows, title=title, note=note(f"no bias: {expected_text(n)}", expected))


def _rate_table(caption: str, sub: str, blocks: Sequence[Block]) -> PlotTable:
    shared = len({block.note for block in blocks}) == 1
    return PlotTable(
        caption,
        sub,
        "bar",
        tuple(replace(block, note=None) for block in blocks) if shared else tuple(blocks),
        note=blocks[0].note if shared else None,
        unit="%, 95\u202f% interval",
    )


def rate_name(labels: Sequence[str], index: int, n: int, protocol: str, what: str) -> str:
    """The name of a row of Figure 1: "first, A" up to four candidates, above "1 A"."""
    symbol = labels[index] if index < len(labels) else str(index + 1)
    if what == "label":
        return symbol
    if protocol == "order":
        return position_name(index, n)
    position = position_name(index, n)
    comma = ", " if n <= WORDS_UP_TO else " "
    return position if position == symbol else f"{position}{comma}{symbol}"


def _coupled_sub(findings: Sequence[Finding]) -> str:
    if len(findings) == 1:
        return f"first position carries the label {findings[0].labels[0]}"
    return "labels stay with the positions"


PROTOCOLS = (
    ("coupled", "Order and labels"),
    ("order", "Order only"),
    ("label", "Labels only"),
)


def _flow(finding: Finding, protocol: str) -> str:
    """What the protocol changes, drawn with the labels for two candidates."""
    a, b = finding.labels[0], finding.labels[1]
    if finding.n == 2 and {len(a), len(b)} == {1} and not {a, b} & {"x", "y"}:
        after = {
            "coupled": f"{a}:y {b}:x",
            "order": f"{b}:y {a}:x",
            "label": f"{b}:x {a}:y",
        }
        return f"{a}:x {b}:y → {after[protocol]}"
    return {
        "coupled": "options change label",
        "order": "labels move along",
        "label": "options stay put",
    }[protocol]


def cause_table(findings: Sequence[Finding], names: Sequence[str]) -> PlotTable:
    """Figure 2: consistency by protocol."""
    blocks = []
    for protocol, title in PROTOCOLS:
        shown = [
            (finding, run_name, finding.metrics.protocols[protocol].get("consistency"))
            for finding, run_name in zip(findings, names, strict=True)
            if protocol in finding.metrics.protocols
        ]
        if not any(estimate for _, _, estimate in shown):
            continue
        flow = _flow(shown[0][0], protocol)
        on = protocol == "coupled"
        if len(findings) == 1:
            blocks.append(Block((row(title, shown[0][2], on=on, flow=flow),)))
        else:
            rows = tuple(row(run_name, estimate, on=on) for _, run_name, estimate in shown)
            blocks.append(Block(rows, title=title, flow=flow))
    return PlotTable(
        "Consistency by protocol",
        "",
        "dot",
        tuple(blocks),
        ticks=(0, 0.25, 0.5, 0.75, 1),
        height=56 if len(findings) == 1 else 28,
        wide="l" if len(findings) == 1 else "r",
        classes="tall" if len(findings) == 1 else "",
        hidden_caption=True,
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """One of the two group panels."""

    caption: str
    sub: str
    metric: str
    reference_name: str


def group_tables(findings: Sequence[Finding], names: Sequence[str]) -> tuple[list[PlotTable], int]:
    """Figure 4: consistency and the favoured position's share by group.

    Groups stand in the order of the first run's consistency; several runs are rows of each group.

    Returns:
        The tables, and how many groups in the middle were left out to keep them readable.
    """
    first = findings[0]
    order = list(
        dict.fromkeys(group for finding in findings for group, _ in groups_of(finding).rows)
    )
    left_out = max(0, len(order) - MOST_GROUPS)
    if left_out:
        half = MOST_GROUPS // 2
        order = [*order[:half], *order[-half:]]
    sub = "% with the same verdict in both orders"
    if first.n > 2:
        sub = "% of an item's orders that agree"
    no_bias = expected_text(first.n).removesuffix("%").rstrip()
    place = f"{ordinal(first.position).capitalize()} position chosen"
    columns = [
        _Column("Consistency", sub, "consistency", "all: "),
        _Column(place, "% of calls, same rows", "position", f"no bias: {no_bias}"),
    ]
    tables = [_group_table(column, findings, names, order) for column in columns]
    return [table for table in tables if table is not None], left_out


def _group_table(
    column: _Column, findings: Sequence[Finding], names: Sequence[str], order: Sequence[str]
) -> PlotTable | None:
    position = findings[0].position
    references = [_reference(finding, column.metric) for finding in findings]
    rows_of = [dict(groups_of(finding).rows) for finding in findings]
    blocks: list[Block] = []
    for group in order:
        rows = []
        for rows_by_group, reference, run_name in zip(rows_of, references, names, strict=True):
            estimate = _group_estimate(rows_by_group.get(group), column.metric, position)
            on = estimate is not None and reference is not None and _off(estimate, reference)
            label = run_name or group
            rows.append(row(label, estimate, expected=reference, on=on))
        blocks.append(Block(tuple(rows), title=group if len(findings) > 1 else ""))
    if not any(line.mark for block in blocks for line in block.rows):
        return None
    if len(findings) == 1:
        blocks = [Block(tuple(line for block in blocks for line in block.rows))]
    shared = references[0] if len(set(references)) == 1 else None
    text = column.reference_name
    if column.metric == "consistency" and shared is not None:
        text += share(shared)
    return PlotTable(
        column.caption,
        column.sub,
        "dot",
        tuple(blocks),
        note=None if shared is None else note(text, shared),
        ticks=(0, 0.5, 1),
        height=27,
        wide="g" if len(findings) == 1 else "r",
        spaced=True,
    )


def _reference(finding: Finding, metric: str) -> float | None:
    if metric == "position":
        return finding.expected
    overall = finding.audit.base_row.get("consistency")
    return None if overall is None else overall.value


def _group_estimate(group_row: Row | None, metric: str, position: int) -> Estimate | None:
    if group_row is None:
        return None
    if metric == "consistency":
        return group_row.get("consistency")
    rates = group_row.position_rate
    return rates[position] if len(rates) > position else None


def _off(estimate: Estimate, reference: float) -> bool:
    return above(estimate, reference) or below(estimate, reference)
