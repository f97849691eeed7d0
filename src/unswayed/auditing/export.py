"""The decisions of a finished run, read again from its recorded calls."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from unswayed.auditing.planning import calls_of, plan_audit
from unswayed.auditing.run_directory import read_json, write_text
from unswayed.auditing.settings import AuditSettings
from unswayed.decisions import Decision
from unswayed.errors import RunDirectoryError
from unswayed.importers import read_decisions_file, write_decisions
from unswayed.prompts import PromptSettings, prompt_fingerprint
from unswayed.registry import require
from unswayed.runner import RunSettings, read_decisions
from unswayed.store import CallStore

__all__ = ["FORMATS", "Format", "decisions_of_run", "export_decisions", "format_of"]

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "csv", "parquet")


def format_of(path: Path) -> Format:
    """The format that a file's name ends in; JSON Lines for any other name."""
    endings: dict[str, Format] = {".csv": "csv", ".parquet": "parquet"}
    return endings.get(path.suffix.lower(), "jsonl")


def decisions_of_run(directory: str | Path) -> Iterator[Decision]:
    """Every decision of a run, each question once; parsed anew, so a better parser shows.

    Raises:
        RunDirectoryError: If the directory holds no finished run, or its template has changed.
        StoreError: If the recorded calls are damaged.
    """
    path = Path(directory)
    run = read_json(path / "run.json")
    if run.get("recorded"):
        yield from read_decisions_file(path / "decisions.jsonl")
        return
    prompts = _prompts(run, path)
    with CallStore.open(path / "calls.sqlite", read_only=True) as store:
        settings = AuditSettings(**_settings(run), seed=int(run["seed"]), prompts=prompts)
        plan = plan_audit(store.items(), settings, gives_probs=True)
        how = RunSettings(prompts=prompts, sample_temperature=settings.sample_temperature)
        asked = set()
        for decision in read_decisions(calls_of(plan), store, how, model=str(run["model"])):
            key = (decision.item_id, decision.ask)
            if key not in asked:
                asked.add(key)
                yield decision


def _settings(run: Mapping[str, Any]) -> dict[str, Any]:
    known = AuditSettings.__dataclass_fields__
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in run["settings"].items()
        if name in known
    }


def _prompts(run: Mapping[str, Any], directory: Path) -> PromptSettings:
    try:
        prompts = msgspec.convert(run["prompt_settings"], PromptSettings)
    except (KeyError, msgspec.ValidationError) as error:
        raise RunDirectoryError(
            f"{directory} does not say how it asked ({error}). Run the audit again in it: recorded "
            "calls are not made again."
        ) from None
    if prompt_fingerprint(prompts) != run["prompt"]["fingerprint"]:
        raise RunDirectoryError(
            f"the template {prompts.template} has changed since {directory} was made."
        )
    return prompts


def export_decisions(decisions: Iterable[Decision], path: Path, form: Format) -> int:
    """Write decisions as JSON Lines, CSV or Parquet; returns how many.

    CSV and Parquet hold one row a decision; lists and mappings are JSON text in CSV.

    Raises:
        MissingExtraError: If Parquet is wanted and pyarrow is not installed.
        RunDirectoryError: If the file cannot be written.
    """
    if form == "jsonl":
        return write_decisions(path, decisions)
    rows = [msgspec.to_builtins(decision) for decision in decisions]
    if form == "csv":
        write_text(path, _as_csv(rows))
    else:
        _write_parquet(rows, path)
    return len(rows)


def _as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(Decision.__struct_fields__), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {
            key: json.dumps(value, ensure_ascii=False)
            if isinstance(value, list | tuple | dict)
            else value
            for key, value in row.items()
        }
        writer.writerow(cells)
    return text.getvalue()


def _write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    require("pyarrow", extra="parquet", feature="Parquet export")
    import pyarrow as pa
    import pyarrow.parquet as pq

    # a choice is an index, "tie" or null: text holds all three
    columns = {
        name: [
            json.dumps(row[name])
            if name == "flags" and row[name] is not None
            else str(row[name])
            if name == "choice" and row[name] is not None
            else row[name]
            for row in rows
        ]
        for name in Decision.__struct_fields__
    }
    try:
        pq.write_table(pa.table(columns), path)
    except OSError as error:
        raise RunDirectoryError(f"cannot write {path}: {error}.") from None
