"""The Python façade: audit in one call, data by name or path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.auditing.run import AuditRecord, audit_model, write_record
from unswayed.auditing.run_directory import prepare_directory
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import BackendSettings, open_backend
from unswayed.decisions import Decision
from unswayed.errors import UnswayedError, UsageError
from unswayed.items import Item, ItemSet, load_items
from unswayed.registry import did_you_mean
from unswayed.store import CallStore
from unswayed.sync import run_sync

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditResult", "audit", "load_data"]

BUILT_IN = ("tiny-judge", "tiny-mcq")


def load_data(
    source: str | Path | ItemSet | Iterable[Item], *, limit: int | None = None, **options: Any
) -> ItemSet:
    """Items from a built-in set, a file, or items already in memory.

    Args:
        source: `tiny-judge`, `tiny-mcq`, a `.jsonl`/`.jsonl.gz` path, `-`, or items.
        limit: Keep the first items.
        options: Passed on to `load_items` for files (`task`, `on_bad_item`).

    Raises:
        UsageError: If there is neither such a set nor such a file.
        ItemError: If the items are malformed.
    """
    if isinstance(source, ItemSet):
        kept = source
    elif isinstance(source, str | Path):
        kept = _named(str(source), limit, options)
    else:
        kept = ItemSet.of(source, name="items")
    if limit is not None and len(kept) > limit:
        kept = ItemSet.of(kept.items[:limit], name=kept.name, bad_lines=kept.bad_lines)
    return kept


def _named(source: str, limit: int | None, options: dict[str, Any]) -> ItemSet:
    if source in BUILT_IN:
        from unswayed.tiny.items import builtin_items

        return builtin_items(source)
    looks_like_a_file = source == "-" or "." in source or "/" in source
    if not looks_like_a_file and not Path(source).exists():
        raise UsageError(
            f"no file and no built-in set is called {source!r}. {did_you_mean(source, BUILT_IN)}"
        )
    return load_items(source, limit=limit, **options)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found.

    Attributes:
        metrics: The content of `metrics.json`.
        run: The content of `run.json`.
        record: The pool behind it.
    """

    metrics: dict[str, Any]
    run: dict[str, Any]
    record: AuditRecord

    @property
    def decisions(self) -> list[Decision]:
        """Every decision of the pool."""
        from unswayed.auditing.planning import questions_of

        seen: dict[tuple[str, object], Decision] = {}
        for decision in self.record.source(questions_of(self.record.plan)):
            seen.setdefault((decision.item_id, decision.ask), decision)
        return list(seen.values())

    def report(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML file."""
        from unswayed.auditing.run_directory import write_text
        from unswayed.report import render_report
        from unswayed.report.collect import run_data

        target = Path(path)
        write_text(target, render_report([run_data(self.record)]))
        return target

    def to_pandas(self) -> pd.DataFrame:
        """Methods and metrics as a data frame: one row per method and metric.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        from unswayed.registry import require

        require("pandas", extra="pandas", feature="to_pandas()")
        import pandas as pd

        rows = []
        for method, row in self.metrics["methods"].items():
            for metric, estimate in row.items():
                if isinstance(estimate, dict) and "value" in estimate:
                    rows.append({"method": method, "metric": metric, **estimate})
        return pd.DataFrame(rows)


def audit(
    model: str = "tiny/judge",
    items: str | Path | ItemSet | Iterable[Item] = "tiny-judge",
    *,
    methods: Sequence[str] = ("direct", "vote", "average"),
    out: str | Path | None = None,
    limit: int | None = None,
    budget: float | None = None,
    backend: BackendSettings | None = None,
    **settings: Any,
) -> AuditResult:
    """Audit a model on items; calls already recorded in `out` are not made again.

    Args:
        model: `provider/model`.
        items: Items, a path, or the name of a built-in set.
        methods: Methods to compare.
        out: Run directory; None keeps the calls in memory only.
        limit: Use the first items only.
        budget: Spend no more USD than this.
        backend: How to reach the model.
        settings: Any field of `AuditSettings` (orders, protocol, seed, ...).

    Raises:
        UnswayedError: For input that cannot be audited.
    """
    known = AuditSettings.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise UsageError(f"audit() has no option {name!r}. {did_you_mean(name, known)}")
    chosen = AuditSettings(methods=tuple(methods), **settings)
    data = load_data(items, limit=limit)
    with ExitStack() as stack:
        directory = None if out is None else prepare_directory(Path(out))
        path = ":memory:" if directory is None else str(directory / "calls.sqlite")
        store = CallStore.open(path)
        if directory is not None:
            stack.callback(store.close)  # in memory it stays open for `decisions`

        async def work() -> AuditRecord:
            opened = open_backend(model, backend)
            try:
                return await audit_model(
                    data,
                    chosen,
                    opened,
                    store,
                    command=f"unswayed.audit({model!r}, ...)",
                    budget_usd=budget,
                )
            finally:
                await opened.close()

        record = run_sync(work())
        if record.run["fatal"] and not record.metrics["calls"]["made"]:
            raise UnswayedError(str(record.run["fatal"]))
        if directory is not None:
            write_record(directory, record)
    return AuditResult(record.metrics, record.run, record)
