"""The decisions of a finished run, read again from its recorded calls, and files of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from unswayed.auditing.planning import plan_audit
from unswayed.auditing.records import RunRecord, read_run
from unswayed.auditing.run_directory import read_bytes, write_text
from unswayed.auditing.settings import AuditSettings
from unswayed.auditing.table_files import as_csv, columns_of, write_dataset, write_parquet
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.calls import RunSettings
from unswayed.calls.questions import Drafter, agreed_logprobs
from unswayed.calls.reading import read_decisions
from unswayed.data.importers import as_filed, read_decisions_file, write_decisions
from unswayed.model.decisions import Decision
from unswayed.model.tasks import task_of
from unswayed.prompts import prompt_fingerprint
from unswayed.store import CallStore

Format = Literal["jsonl", "csv", "parquet", "dataset"]
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "csv", "parquet", "dataset")


def format_of(path: Path) -> Format:
    """Return the format that a file's name ends in; JSON Lines for plain text and where it has no ending."""
    files = [form for form in FORMATS if form != "dataset"]  # which is a folder
    endings: dict[str, Format] = {f".{form}": form for form in files}
    endings |= dict.fromkeys(("", ".json", ".txt"), "jsonl")
    ending = path.suffix.lower()
    if ending in endings:
        return endings[ending]
    raise UsageError(
        f"{path}: no format is written under this ending. Let the name end in "
        f"{', '.join(f'.{form}' for form in files)}, or name the format with --as."
    )


def decisions_of_run(directory: str | Path) -> Iterator[Decision]:
    """Every decision of a run, each question once, parsed by the current rules."""
    path = Path(directory)
    run = read_run(path)
    if run.recorded:
        read_bytes(path / "decisions.jsonl")  # checks the sum
        yield from read_decisions_file(path / "decisions.jsonl")
        return
    settings = _settings(run, path)
    with CallStore.open(path / "calls.sqlite", read_only=True) as store:
        items = store.items()
        plan = plan_audit(items, settings, gives=task_of(items.task).gives)
        run_settings = RunSettings(
            prompts=settings.prompts,
            sample_temperature=settings.sample_temperature,
            reask=settings.reask,
        )
        asks_logprobs = agreed_logprobs(store, run.model)
        drafter = Drafter(run.model, asks_logprobs, run_settings, keyed_by_item=store.keyed_by_item)
        n_read = 0
        source = partial(read_decisions, pool=store, drafter=drafter)
        for decision in plan.read(plan.questions(), source):
            n_read += 1
            yield decision
    if not run.calls.missing and n_read < (n_wanted := sum(1 for _ in plan.calls())):
        raise RunDirectoryError(
            f"{path / 'calls.sqlite'}: {n_wanted - n_read:,} of {plural(n_wanted, 'answer')} "
            f"{agrees(n_wanted - n_read, 'is', 'are')} missing or damaged. "
            f"Run the audit again in {path}: it makes only the missing calls."
        )


def _settings(run: RunRecord, directory: Path) -> AuditSettings:
    """Return the settings with which a run asked."""
    if run.prompt is None or not run.prompt_settings:
        raise RunDirectoryError(
            f"{directory} does not record its settings. Run the audit again in it: it reuses "
            "recorded calls."
        )
    try:
        asked = {"methods": run.planned} if run.planned else {}
        given = {**run.settings, **asked, "seed": run.seed, "prompts": run.prompt_settings}
        settings = msgspec.convert(given, AuditSettings)
    except msgspec.ValidationError as error:
        raise RunDirectoryError(
            f"{directory} does not record its settings ({error}). Run the audit again in it: it "
            "reuses recorded calls."
        ) from None
    if prompt_fingerprint(settings.prompts) != run.prompt.fingerprint:
        raise RunDirectoryError(
            f"the template {settings.prompts.template} has changed since {directory} was made. Restore it, or run "
            f"the audit again."
        )
    return settings


def export_decisions(decisions: Iterable[Decision], path: Path, form: Format) -> int:
    """Write decisions as JSON Lines, CSV, Parquet or a dataset's folder; returns how many.

    Tables hold one row a decision; lists and mappings are JSON text in CSV,
    and text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    if form == "jsonl":
        return write_decisions(path, decisions)
    rows = [msgspec.to_builtins(as_filed(decision)) for decision in decisions]
    if form == "csv":
        write_text(path, as_csv(rows, Decision.__struct_fields__))
        return len(rows)
    columns = columns_of(Decision, rows)
    if form == "parquet":
        write_parquet(columns, path)
    else:
        write_dataset(columns, path, name="decisions", what="Decisions of a judge, one call a row.")
    return len(rows)
