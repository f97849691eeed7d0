"""The metrics tables: what is shown, in which order, and which values are the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unswayed.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.numerals import MINUS, interval, ordinal, percent, share
from unswayed.report.reading import Row
from unswayed.report.wording import listed
from unswayed.visible import one_line

__all__ = ["Cell", "Column", "MetricsTable", "TableRow", "main_table", "more_table"]

TIES_MATTER = 0.1
"""Share of verdicts without a winner from which a sentence says so."""


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
    better: int
    meaning: str
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
    """A method.

    Attributes:
        remark: "recommended", "as it is used now" or nothing.
    """

    name: str
    remark: str
    kind: str
    calls: Cell
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """Methods and metrics of one run."""

    run_name: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


def main_columns(found: Finding) -> list[Column]:
    """The columns of the main table, in order."""
    orders = "both orders" if found.n == 2 else "every order"
    where = ordinal(found.position) if found.n > 2 else "first"
    consistency = (
        "share of items with the same verdict in both orders; unparsed never agrees, two ties do"
        if found.n == 2
        else f"share of an item's {found.audit.orders_each or ''} orders that agree with its "
        "most frequent answer, mean over items; few orders push it up".replace("  ", " ")
    )
    return [
        Column(
            "accuracy", "Accuracy", 1,
            f"share of right verdicts, averaged over {orders}; ties and unparsed answers count as "
            "wrong",
        ),
        Column(
            "agreement", "Agreement", 1,
            "share of verdicts like those of the average over every order; stands in for accuracy "
            "where there is no gold",
        ),
        Column("consistency", "Consistency", 1, consistency),
        Column(
            "consistent_accuracy",
            "Right in both orders" if found.n == 2 else "Right most often", 1,
            "share of items judged right in every order (consistent accuracy)" if found.n == 2
            else "share of items whose one most frequent answer is right (consistent accuracy)",
        ),
        Column(
            "rstd", "RStd", -1,
            "spread (standard deviation) of recall over the labels; 0 when "
            f"{listed(found.labels[: found.n])} are recognised equally often",
        ),
        Column(
            "position", f"{where.capitalize()} position", 0,
            f"share of parsed choices that fall on the {where} position; "
            f"{share(found.expected, 0 if 100 % found.n == 0 else 1)}\u202f% without bias"
            + (f" (items with {found.n} candidates)" if len(found.audit.sizes) > 1 else ""),
        ),
        Column("tie_rate", "Ties", -1, "share of verdicts that name no winner"),
        Column("unparsed_rate", "Unparsed", -1, "share of answers that could not be read"),
    ]  # fmt: skip


MORE_COLUMNS = (
    Column(
        "accuracy_fractional", "Accuracy, ties shared", 1,
        "accuracy in which a tie between k candidates earns 1/k",
    ),
    Column(
        "ckld", "CKLD", -1,
        "Kullback-Leibler divergence from the gold labels to the chosen ones, smoothed; 0 when "
        "labels are chosen as often as they are right", percent=False,
    ),
    Column(
        "fleiss_kappa", "Fleiss κ", 1,
        "agreement between orders beyond chance; 1 is full agreement", percent=False,
    ),
    Column(
        "icc2k", "ICC(2,k)", 1,
        "agreement of probabilities between orders, shifts counted as disagreement",
        percent=False,
    ),
    Column(
        "icc3k", "ICC(3,k)", 1,
        "agreement of probabilities between orders, shifts left out", percent=False,
    ),
    Column(
        "score_sd",
        "Score sd",
        0,
        "standard deviation of the probabilities behind the ICC; near 0 the ICC says little",
        percent=False,
    ),
    Column(
        "kendall_tau", "Kendall τ", 1, "rank agreement between orders", percent=False,
    ),
    Column("spearman", "Spearman ρ", 1, "rank correlation with the human score", percent=False),
    Column("pearson", "Pearson r", 1, "linear correlation with the human score", percent=False),
    Column(
        "within_item_sd", "Within-item sd", -1,
        "standard deviation of an item's scores over orders", percent=False,
    ),
    Column(
        "label_mass", "Label mass", 0,
        "probability that fell on the labels before it was renormalised",
    ),
)  # fmt: skip


def estimate_of(row: Row, column: Column, found: Finding) -> Estimate | None:
    """A method's value for a column."""
    if column.key != "position":
        return row.estimates.get(column.key)
    position = found.position if found.n > 2 else 0
    rates = row.positions(found.n)
    return rates[position] if len(rates) > position else row.estimates.get("position_rate")


def _used(columns: Sequence[Column], found: Finding) -> tuple[Column, ...]:
    """The columns with a value anywhere; rates of trouble only where there is trouble."""

    def shown(column: Column) -> bool:
        values = [estimate_of(row, column, found) for row in found.audit.methods.values()]
        known = [e for e in values if e is not None and e.value is not None]
        if column.key == "unparsed_rate":
            return any(e.value for e in known)
        if column.key == "accuracy_fractional":
            return any(_differs(row) for row in found.audit.methods.values())
        return bool(known)

    return tuple(column for column in columns if shown(column))


def _differs(row: Row) -> bool:
    whole, shared = row.get("accuracy"), row.get("accuracy_fractional")
    return whole is not None and shared is not None and whole.value != shared.value


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


def _table(found: Finding, run_name: str, columns: tuple[Column, ...]) -> MetricsTable:
    methods = sorted(
        found.audit.methods.items(),
        key=lambda one: float("inf") if one[1].calls is None else one[1].calls,
    )
    by_column = [[estimate_of(row, c, found) for _, row in methods] for c in columns]
    best = [_best(c, estimates) for c, estimates in zip(columns, by_column, strict=True)]
    rows = []
    for index, (method, row) in enumerate(methods):
        cells = tuple(
            _cell(by_column[c][index], column, best[c]) for c, column in enumerate(columns)
        )
        kind, remark = "", ""
        if method == found.recommended:
            kind, remark = "rec", "recommended"
        elif method == found.audit.base and len(methods) > 1:
            kind, remark = "ref", "as it is used now"
        calls = Cell("–") if row.calls is None else _calls_cell(row.calls)
        rows.append(TableRow(method, remark, kind, calls, cells))
    return MetricsTable(run_name, columns, tuple(rows), tuple(_notes(found, columns)))


def _calls_cell(calls: float) -> Cell:
    return Cell(f"{calls:.2f}", "", f"{calls:.6f}")


def main_table(found: Finding, run_name: str = "") -> MetricsTable:
    """All methods with the metrics that the page speaks about."""
    made = _table(found, run_name, _used(main_columns(found), found))
    return replace(made, notes=(*_tied(found), *made.notes))


def more_table(found: Finding, run_name: str = "") -> MetricsTable | None:
    """The remaining metrics that were measured; None if there are none."""
    columns = _used(MORE_COLUMNS, found)
    return _table(found, run_name, columns) if columns else None


def _tied(found: Finding) -> list[str]:
    """Methods that often name no winner, whose accuracy would otherwise be misread as harm."""
    told = []
    for method, row in found.audit.methods.items():
        ties, shared = row.get("tie_rate"), row.get("accuracy_fractional")
        if ties is None or ties.value is None or ties.value < TIES_MATTER:
            continue
        text = f"{one_line(method)} names no winner in {percent(ties.value)}"
        if shared is not None and shared.value is not None:
            text += f", which counts as wrong (accuracy {percent(shared.value)} if ties are shared)"
        told.append(f"{text}.")
    return told


def _notes(found: Finding, columns: Sequence[Column]) -> list[str]:
    """Why values are missing: one sentence per reason."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        for method, row in found.audit.methods.items():
            estimate = estimate_of(row, column, found)
            if estimate is not None and estimate.value is None and estimate.reason:
                lacking.setdefault((column.title, estimate.reason), []).append(one_line(method))
    together: dict[tuple[str, str], list[str]] = {}
    for (title, reason), methods in lacking.items():
        together.setdefault((listed(methods), reason), []).append(title)
    return [
        f"No {listed(titles, 'or')} for {methods}: {one_line(reason).rstrip('.')}."
        for (methods, reason), titles in together.items()
    ]
