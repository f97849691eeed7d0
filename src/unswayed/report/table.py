"""The metrics tables: what is shown, in which order, and which values are the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unswayed.auditing.rows import Row
from unswayed.decisions import Estimate
from unswayed.metrics import METRICS
from unswayed.report.findings import Finding
from unswayed.report.numerals import MINUS, interval, share
from unswayed.report.words import plain, say, sentence

__all__ = ["Cell", "Column", "MetricsTable", "TableRow", "column_of", "main_table", "more_table"]

TIES_MATTER = 0.1
"""Share of verdicts without a winner from which a sentence says so."""

POSITION = "position"
"""The column of one position's share, out of the metric `position_rate`."""

MAIN = (
    "accuracy", "agreement", "consistency", "consistent_accuracy", "rstd", POSITION, "tie_rate",
    "unparsed_rate",
)  # fmt: skip
"""What the page speaks about, in order; everything else that is registered is folded away."""


@dataclass(frozen=True, slots=True)
class Column:
    """A metric as the report shows it.

    Attributes:
        better: 1 if more is better, -1 if less is, 0 if neither.
        percent: Shown in percent; otherwise as a plain number with three decimals.
        meaning: Its definition for the reader.
    """

    key: str
    title: str
    meaning: str = ""
    better: int = 0
    percent: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of the table.

    Attributes:
        below: The interval, or a word on why there is no value.
        order: What it sorts by; empty sorts last.
    """

    text: str
    below: str = ""
    order: str = ""
    best: bool = False
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
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: str

    @property
    def by_construction(self) -> bool:
        """Whether any value holds by construction."""
        return any(cell.by_construction for row in self.rows for cell in row.cells)


def column_of(key: str) -> Column:
    """A metric's column in its own words."""
    metric = METRICS.load(key)
    return Column(key, metric.title, metric.meaning, metric.better, metric.percent)


def columns_of(finding: Finding) -> tuple[list[Column], list[Column]]:
    """The columns with a value: those of the main table, and all others that are registered.

    Some titles and meanings are said anew for the number of candidates and the position at hand.
    """
    main = []
    for key in MAIN:
        column = Column(key, "") if key == POSITION else column_of(key)
        title, meaning = (*map(plain, say("tables.column", key, finding)), "", "")[:2]
        if title:
            column = replace(column, title=title, meaning=meaning)
        main.append(column)
    more = [column_of(key) for key in METRICS if key not in MAIN]
    return [c for c in main if _shown(c, finding)], [c for c in more if _shown(c, finding)]


def _shown(column: Column, finding: Finding) -> bool:
    """Whether there is a value; of some rates, whether there is trouble to tell of."""
    rows = finding.metrics.methods.values()
    values = [e for row in rows if (e := estimate_of(row, column, finding)) and e.value is not None]
    if column.key == "unparsed_rate":
        return any(e.value for e in values)
    if column.key == "accuracy_fractional":
        return any(_differs(row) for row in rows)
    return bool(values)


def _differs(row: Row) -> bool:
    whole, shared = row.get("accuracy"), row.get("accuracy_fractional")
    return whole is not None and shared is not None and whole.value != shared.value


def estimate_of(row: Row, column: Column, finding: Finding) -> Estimate | None:
    """A method's value for a column."""
    if column.key != POSITION:
        return row.estimates.get(column.key)
    position = finding.position if finding.n > 2 else 0
    rates = row.positions(finding.n)
    return rates[position] if len(rates) > position else row.estimates.get("position_rate")


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", MINUS)


def _plain_interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{_number(estimate.low)} to {_number(estimate.high)}"


def _cell(estimate: Estimate | None, column: Column, best: float | None) -> Cell:
    if estimate is None or estimate.value is None:
        return Cell("–")
    text = share(estimate.value) if column.percent else _number(estimate.value)
    order = f"{estimate.value:.6f}"
    if estimate.by_construction:
        return Cell(text, "", order, by_construction=True)
    settled = estimate.low == estimate.high == estimate.value
    below = "" if settled else interval(estimate) if column.percent else _plain_interval(estimate)
    return Cell(text, below, order, best=best is not None and estimate.value == best)


def _best(column: Column, estimates: Sequence[Estimate | None]) -> float | None:
    """The best measured value; values that hold by construction are not compared."""
    values = [
        e.value
        for e in estimates
        if e is not None and e.value is not None and not e.by_construction
    ]
    if not column.better or column.key in {"tie_rate", "unparsed_rate"} or len(values) < 2:
        return None
    return max(values) if column.better > 0 else min(values)


def _table(finding: Finding, run_name: str, columns: Sequence[Column], notes: str) -> MetricsTable:
    methods = sorted(
        finding.metrics.methods.items(),
        key=lambda pair: float("inf") if pair[1].calls is None else pair[1].calls,
    )
    by_column = [[estimate_of(row, c, finding) for _, row in methods] for c in columns]
    best = [_best(c, estimates) for c, estimates in zip(columns, by_column, strict=True)]
    rows = []
    for index, (method, row) in enumerate(methods):
        cells = tuple(
            _cell(by_column[c][index], column, best[c]) for c, column in enumerate(columns)
        )
        kind, remark = "", ""
        if method == finding.recommended:
            kind, remark = "rec", "recommended"
        elif method == finding.audit.base and len(methods) > 1:
            kind, remark = "ref", "as it is used now"
        rows.append(TableRow(method, remark, kind, _calls(row.calls), cells))
    return MetricsTable(run_name, tuple(columns), tuple(rows), notes)


def _calls(calls: float | None) -> Cell:
    return Cell("–") if calls is None else Cell(f"{calls:.2f}", "", f"{calls:.6f}")


def main_table(finding: Finding, run_name: str = "") -> MetricsTable:
    """All methods with the metrics that the page speaks about."""
    columns, _ = columns_of(finding)
    notes = sentence("tables.notes", ties_of(finding), lacking(finding, columns))
    return _table(finding, run_name, columns, plain(notes))


def more_table(finding: Finding, run_name: str = "") -> MetricsTable | None:
    """The remaining metrics that were measured; None if there are none."""
    _, columns = columns_of(finding)
    notes = sentence("tables.notes", (), lacking(finding, columns))
    return _table(finding, run_name, columns, plain(notes)) if columns else None


def ties_of(finding: Finding) -> list[tuple[str, float, float | None]]:
    """Methods that often name no winner, whose accuracy would otherwise be misread as harm.

    Returns:
        Method, how often it names no winner, and its accuracy if ties are shared.
    """
    told = []
    for method, row in finding.metrics.methods.items():
        ties, shared = row.get("tie_rate"), row.get("accuracy_fractional")
        if ties is not None and ties.value is not None and ties.value >= TIES_MATTER:
            told.append((method, ties.value, None if shared is None else shared.value))
    return told


def lacking(
    finding: Finding, columns: Sequence[Column]
) -> list[tuple[list[str], tuple[str, ...], str]]:
    """Why values are missing: titles, methods and the reason, those alike together."""
    methods_by: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        for method, row in finding.metrics.methods.items():
            estimate = estimate_of(row, column, finding)
            if estimate is not None and estimate.value is None and estimate.reason:
                methods_by.setdefault((column.title, estimate.reason), []).append(method)
    titles_by: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (title, reason), methods in methods_by.items():
        titles_by.setdefault((tuple(methods), reason), []).append(title)
    return [(titles, methods, reason) for (methods, reason), titles in titles_by.items()]
