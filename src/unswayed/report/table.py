"""The metrics tables: what is shown, in which order, and which values are highest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from unswayed.metrics.abstention import COVERAGE
from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.rows import Row
from unswayed.metrics.table import METRICS, compared_metrics, load_metrics
from unswayed.model.decisions import Estimate
from unswayed.report.findings import (
    ACCURACY,
    ACCURACY_FRACTIONAL,
    CONSISTENCY,
    POSITION_RATE,
    SPEARMAN,
    TIE_RATE,
    UNPARSED_RATE,
    Finding,
)
from unswayed.report.numerals import interval, number, share
from unswayed.report.words import plain, say, sentence


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of the table."""

    text: str = "–"
    below: str = ""  # the interval, or a word on why there is no value
    order: str = ""  # what it sorts by; empty sorts last
    best: str = ""  # "highest" or "lowest", where it is that and more, or less, is better
    by_construction: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A method; `kind` is "rec" for the recommended one, "ref" for the one in use now."""

    name: str
    remark: str
    kind: str
    calls: Cell
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """Methods and metrics of one run; `notes` say why values are missing."""

    run_name: str
    columns: tuple[Metric, ...]
    rows: tuple[TableRow, ...]
    notes: str

    @property
    def others(self) -> tuple[str, ...]:
        """Titles of the columns whose values are no shares."""
        return tuple(column.title for column in self.columns if not column.percent)

    @property
    def by_construction(self) -> bool:
        """True if any value holds by construction."""
        return any(cell.by_construction for row in self.rows for cell in row.cells)


def main_table(finding: Finding) -> MetricsTable:
    """All methods with the metrics that they are compared in, and what goes with them."""
    registered = load_metrics()
    columns = {key: registered[key] for key in _main(finding) if _shown(key, finding)}
    if finding.criterion == SPEARMAN:  # what a run is about stands first, however narrow the table
        rank = {key: (key != SPEARMAN, Need.HUMAN not in columns[key].needs) for key in columns}
        columns = {key: columns[key] for key in sorted(columns, key=rank.__getitem__)}
    for key, metric in columns.items():  # some words depend on the number of candidates
        words = [plain(text) for text in say("tables.column", key, finding)]
        if words:
            columns[key] = replace(metric, title=words[0], meaning=words[1])
    return _table(finding, columns)


def more_table(finding: Finding) -> MetricsTable | None:
    """Return the remaining metrics that were measured; None if there are none."""
    main = _main(finding)
    columns = {
        key: metric
        for key, metric in load_metrics().items()
        if key not in main and _shown(key, finding)
    }
    return _table(finding, columns) if columns else None


def _main(finding: Finding) -> tuple[str, ...]:
    others = {ACCURACY, ACCURACY_FRACTIONAL} - {finding.accuracy}
    compared = (key for key in compared_metrics() if key not in others)
    return (METRICS.name_of(COVERAGE), *compared, POSITION_RATE, TIE_RATE, UNPARSED_RATE)


def _shown(key: str, finding: Finding) -> bool:
    """Return True if there is a value; of some rates, whether there is trouble to tell of."""
    rows = finding.metrics.methods.values()
    if key in {ACCURACY, ACCURACY_FRACTIONAL} - {finding.accuracy}:
        pairs = ((row.get(finding.accuracy), row.get(key)) for row in rows)
        return any(whole and part and whole.value != part.value for whole, part in pairs)
    values = [e.value for row in rows if (e := estimate_of(row, key, finding)) is not None]
    return any(values) if key == UNPARSED_RATE else any(value is not None for value in values)


def decisive(finding: Finding) -> dict[str, Row]:
    """Return the rows of methods that withheld no verdict; others are not of the same verdicts."""
    coverage = METRICS.name_of(COVERAGE)
    rows = finding.metrics.methods.items()
    return {name: row for name, row in rows if (own := row.get(coverage)) is None or own.value == 1}


def estimate_of(row: Row, key: str, finding: Finding) -> Estimate | None:
    """Return a method's value for a column; of the shares by position, the one that is spoken about."""
    if key == POSITION_RATE:
        rates = row.positions(finding.n)[finding.position if finding.n > 2 else 0 :]
        return rates[0] if rates else row.estimates.get(key)
    return marked(row, key, row.estimates.get(key))


def marked(row: Row, key: str, estimate: Estimate | None) -> Estimate | None:
    """Mark a consistency that only unparsed answers lower: other figures of the method hold by construction."""
    parts = (own for values in row.values.values() for own in values)
    if estimate is None or key != CONSISTENCY or not any(own.by_construction for own in parts):
        return estimate
    return msgspec.structs.replace(estimate, by_construction=True)


def _table(
    finding: Finding,
    columns: Mapping[str, Metric],
) -> MetricsTable:
    """Return a table, the cheapest method first."""
    methods = sorted(
        finding.metrics.methods.items(),
        key=lambda pair: math.inf if pair[1].calls is None else pair[1].calls,
    )
    cells, comparable = [], decisive(finding)
    for key, metric in columns.items():
        estimates = [estimate_of(row, key, finding) for _, row in methods]
        measured = [
            own for (name, _), own in zip(methods, estimates, strict=True) if name in comparable
        ]
        best = None if key in (TIE_RATE, UNPARSED_RATE) else _best(metric, measured)
        cells.append([_cell(estimate, metric, best) for estimate in estimates])
    rows, compared = [], finding.metrics.differences
    for (method, row), *own in zip(methods, *cells, strict=True):
        kind, remark = "", ""
        if method == finding.recommended:
            kind, remark = "rec", "recommended"
        elif method == finding.base and len(methods) > 1:
            kind, remark = "ref", "current use"
        elif compared and f"{method}-{finding.base}" not in compared:
            remark = "fewer verdicts"
        calls = Cell() if row.calls is None else Cell(f"{row.calls:.2f}", "", f"{row.calls:.6f}")
        rows.append(TableRow(method, remark, kind, calls, tuple(own)))
    notes = plain(sentence("tables.notes", lacking(finding, columns)))
    return MetricsTable(finding.name, tuple(columns.values()), tuple(rows), notes)


def _best(metric: Metric, estimates: Sequence[Estimate | None]) -> float | None:
    """Return the highest measured value, or lowest; those that hold by construction are not compared."""
    measured = [e.value for e in estimates if e is not None and not e.by_construction]
    values = [value for value in measured if value is not None]
    if not metric.better or len(values) < 2:
        return None
    return max(values) if metric.better > 0 else min(values)


def _cell(estimate: Estimate | None, metric: Metric, best: float | None) -> Cell:
    if estimate is None or estimate.value is None:
        return Cell()
    text = share(estimate.value) if metric.percent else number(estimate.value)
    order = f"{estimate.value:.6f}"
    if estimate.by_construction:
        return Cell(text, "", order, by_construction=True)
    low, high = estimate.low, estimate.high
    below = (interval(estimate) if metric.percent else "") or estimate.reason or ""
    if not metric.percent and low is not None and high is not None:
        below = f"{number(low)} to {number(high)}"
    extreme = "highest" if metric.better > 0 else "lowest"
    settled = low == high == estimate.value
    return Cell(
        text, "" if settled else below, order, best=extreme if estimate.value == best else ""
    )


def lacking(
    finding: Finding, columns: Mapping[str, Metric]
) -> list[tuple[list[str], tuple[str, ...], str]]:
    """Why values are missing: titles, methods and the reason, those alike together."""
    titles: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for key, metric in columns.items():
        methods: dict[str, list[str]] = {}
        for method, row in finding.metrics.methods.items():
            estimate = estimate_of(row, key, finding)
            if estimate is not None and estimate.value is None and estimate.reason:
                methods.setdefault(estimate.reason, []).append(method)
        for reason, names in methods.items():
            titles.setdefault((tuple(names), reason), []).append(metric.title)
    return [(alike, methods, reason) for (methods, reason), alike in titles.items()]
