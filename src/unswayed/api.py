"""The Python façade: audit in one call, data by name or path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unswayed.auditing.opening import check_recorded, open_or_replay
from unswayed.auditing.run import (
    Asked,
    AuditRecord,
    ask_model,
    measure_pool,
    plan_for,
    price_audit,
    read_from,
    write_record,
)
from unswayed.auditing.run_directory import check_kind, prepare_directory
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import Backend, BackendSettings
from unswayed.decisions import Decision
from unswayed.errors import BackendError, ItemError, UnknownNameError, UsageError
from unswayed.items import Item, ItemSet, Task, load_items
from unswayed.registry import did_you_mean
from unswayed.store import CallStore
from unswayed.sync import run_sync

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditResult", "audit", "load_data"]

BUILT_IN = ("tiny-judge", "tiny-mcq", "tiny-judge-train", "tiny-mcq-train")


def load_data(
    source: str | Path | ItemSet | Iterable[Item],
    *,
    limit: int | None = None,
    task: str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
) -> ItemSet:
    """Items from a built-in set, a file, or items already in memory.

    Args:
        source: `tiny-judge`, `tiny-mcq`, a `.jsonl`/`.jsonl.gz` path, `-`, or items.
        limit: Keep the first items.
        task: Keep the items of this task only.
        on_bad_item: For files: "stop" at the first bad line, or "skip" and count bad lines.

    Raises:
        UnknownNameError: If there is no such task.
        UsageError: If there is neither such a set nor such a file.
        ItemError: If an item is malformed, or none is left.
    """
    if task is not None and task not in set(Task):
        raise UnknownNameError(
            f"unknown task {task!r}. {did_you_mean(task, [one.value for one in Task])}"
        )
    if isinstance(source, str | Path) and str(source) not in BUILT_IN:
        path = _existing(str(source))
        return load_items(path, limit=limit, task=task, on_bad_item=on_bad_item)
    if isinstance(source, str | Path):
        from unswayed.tiny.items import builtin_items

        found = builtin_items(str(source))
    elif isinstance(source, ItemSet):
        found = source
    else:
        found = ItemSet.of(source, name="items")
    kept = [item for item in found if task is None or item.task == task]
    if not kept:
        raise ItemError(f"{found.name} has no items of task {task}; they are {found.task}.")
    if limit is None and len(kept) == len(found):
        return found
    return ItemSet.of(kept[:limit], name=found.name, bad_lines=found.bad_lines)


def _existing(source: str) -> str:
    looks_like_a_file = source == "-" or "." in source or "/" in source
    if not looks_like_a_file and not Path(source).exists():
        raise UsageError(
            f"no file and no built-in set is called {source!r}. {did_you_mean(source, BUILT_IN)}"
        )
    return source


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

    def __repr__(self) -> str:
        data = self.metrics["data"]
        methods = ", ".join(self.metrics["methods"])
        return f"<AuditResult of {self.metrics['model']} on {data['n_items']} items: {methods}>"

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
    methods: str | Sequence[str] = ("direct", "vote", "average"),
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
        methods: Methods to compare, as a list or separated by commas; "all" for all that apply.
        out: Run directory; None keeps the calls in memory only.
        limit: Use the first items only.
        budget: Spend no more USD than this.
        backend: How to reach the model.
        settings: Any field of `AuditSettings` (orders, protocol, seed, ...).

    Returns:
        What was found. Failed calls are counted in `metrics["calls"]` and said in
        `run["warnings"]`.

    Raises:
        UnswayedError: For input that cannot be audited, or if no call can succeed.
    """
    from unswayed.report.collect import write_report

    known = AuditSettings.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise UsageError(f"audit() has no option {name!r}. {did_you_mean(name, known)}")
    names = methods.split(",") if isinstance(methods, str) else methods
    chosen = AuditSettings(methods=tuple(name.strip() for name in names), **settings)
    data = load_data(items, limit=limit)
    command = f"unswayed.audit({model!r}, ...)"
    directory = None if out is None else Path(out)
    opened, missing = open_or_replay(model, backend, directory)
    if directory is None:
        store = CallStore.in_memory()  # it stays open for `decisions`
        asked = run_sync(_ask(data, chosen, opened, store, budget))
        return _result(measure_pool(asked, store, command=command))
    plan_for(data, chosen, opened)  # what cannot be audited leaves no directory behind
    check_kind(directory, recorded=False, model=opened.model, data=data.name)
    with CallStore.open(prepare_directory(directory)) as store:
        if missing is not None:
            check_recorded(price_audit(data, chosen, opened, store), missing)
        asked = run_sync(_ask(data, chosen, opened, store, budget))
        record = measure_pool(asked, store, command=command)
        write_record(directory, record)
        write_report(directory, record)
    # the result reads decisions when it is asked for them; others may write in the meantime
    reading = CallStore.open(directory, read_only=True)
    return _result(replace(record, source=read_from(asked, reading)))


async def _ask(
    items: ItemSet,
    settings: AuditSettings,
    backend: Backend,
    store: CallStore,
    budget: float | None,
) -> Asked:
    try:
        return await ask_model(items, settings, backend, store, budget_usd=budget)
    finally:
        await backend.close()


def _result(record: AuditRecord) -> AuditResult:
    calls = record.metrics["calls"]
    if record.run["fatal"] and not calls["made"] and not calls["cached"]:
        raise BackendError(str(record.run["fatal"]))
    return AuditResult(record.metrics, record.run, record)
