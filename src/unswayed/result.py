"""Result of an audit: metrics, decisions, summary, table and report."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.recommendation import Recommendation
from unswayed.auditing.rows import as_json
from unswayed.base.errors import UnknownNameError
from unswayed.base.registry import did_you_mean
from unswayed.metrics.rows import Row
from unswayed.model.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

WIDTH: Final = 120


def drawn(shown: RenderableType) -> str:
    """Return what the terminal shows, without colours."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=WIDTH, color_system=None, force_jupyter=False)
    console.print(shown, crop=False)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Result of an audit.

    Attributes:
        record: The figures as typed records, and the pool behind them.
        directory: Where it was written; None if nowhere.
    """

    record: AuditRecord
    directory: Path | None = None

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The content of `metrics.json`."""
        metrics: dict[str, Any] = as_json(self.record.metrics)
        return metrics

    @cached_property
    def run(self) -> dict[str, Any]:
        """The content of `run.json`."""
        return self.record.run.to_json()

    @property
    def recommendation(self) -> Recommendation:
        """Recommended method with its reason; `method` is None where nothing is shown to be better."""
        return self.record.metrics.recommendation or Recommendation()

    def __getitem__(self, method: str) -> Row:
        """Return the figures of a method: `result["direct"].consistency.value`.

        Raises:
            UnknownNameError: If it was not measured.
        """
        methods = self.record.metrics.methods
        if method not in methods:
            raise UnknownNameError(f"no figures of {method!r}. {did_you_mean(method, methods)}")
        return methods[method]

    def __repr__(self) -> str:
        metrics = self.record.metrics
        methods = ", ".join(metrics.methods)
        return f"<AuditResult of {metrics.model} on {metrics.data.n_items} items: {methods}>"

    def __str__(self) -> str:
        """Return the summary that the terminal shows, without colours."""
        from unswayed.report.collect import without_items
        from unswayed.report.terminal import terminal_report

        return drawn(terminal_report(without_items(self.record.metrics, self.record.run)))

    def _repr_html_(self) -> str:
        from unswayed.report.collect import without_items
        from unswayed.report.page import render_summary

        return render_summary(without_items(self.record.metrics, self.record.run))

    @property
    def decisions(self) -> list[Decision]:
        """Every decision of the pool."""
        return list(self.record.source(self.record.plan.questions()))

    def report(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML file."""
        from unswayed.auditing.run_directory import write_text
        from unswayed.report.collect import run_data
        from unswayed.report.page import render_report

        target = Path(path)
        write_text(target, render_report([run_data(self.record)]))
        return target

    def to_pandas(self) -> pd.DataFrame:
        """Methods and metrics as a data frame: one row per method and metric.

        A metric by position or label (`position_rate`) has a row for each, with its `place`; what a
        method costs (`calls_per_item`) has a value and no interval.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        from unswayed.base.registry import require

        require("pandas", extra="pandas", feature="to_pandas()")
        import pandas as pd

        columns = ("method", "metric", "place", "value", "low", "high", "n")
        rows = list(self._rows())
        rest = sorted({key for row in rows for key in row} - set(columns))
        return pd.DataFrame(rows, columns=[*columns, *rest]).astype({"place": "Int64"})

    def _rows(self) -> Iterator[dict[str, Any]]:
        for method, row in self.metrics["methods"].items():
            for metric, value in row.items():
                named = {"method": method, "metric": metric}
                if isinstance(value, dict) and "value" in value:
                    yield {**named, **value}
                elif isinstance(value, list):
                    for place, estimate in enumerate(value):
                        yield {**named, "place": place, **estimate}
                elif isinstance(value, int | float):
                    yield {**named, "value": value}
