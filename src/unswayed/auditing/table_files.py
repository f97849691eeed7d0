"""Rows as files that others read: CSV, Parquet, and a folder that `datasets.load_dataset` opens."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import msgspec
from msgspec import inspect

from unswayed.auditing.run_directory import write_text
from unswayed.base.counts import plural
from unswayed.base.errors import RunDirectoryError
from unswayed.base.files import sweep, whole_file
from unswayed.base.registry import require
from unswayed.base.version import VERSION

Columns = Mapping[str, tuple[str, Sequence[Any]]]
"""By name: the type of its cells, such as `int64` or `string[]`, and the cells, None where there is none."""

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What makes spreadsheets take a cell for a formula, the wide forms included."""

KINDS: Final = {
    inspect.IntType: "int64",
    inspect.FloatType: "float64",
    inspect.BoolType: "bool",
    inspect.StructType: "turn",
}
"""Types of cells by those of values; all others are text."""


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows under a heading: lists and mappings as JSON, text guarded from being read as a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(columns), extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        cells = {
            key: as_text(value) if isinstance(value, list | tuple | dict) else _inert(value)
            for key, value in row.items()
        }
        writer.writerow(cells)
    return text.getvalue()


def _inert(value: object) -> object:
    """Text that a spreadsheet would run as a formula, with an apostrophe before it."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def columns_of(record: type[msgspec.Struct], rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows by column, one for each field of a record; a field of several types is JSON in text."""
    columns = {}
    for field in inspect.type_info(record).fields:  # type: ignore[attr-defined]
        kind, cells = _kind(field.type), [row[field.name] for row in rows]
        if kind == "string":
            cells = [own if isinstance(own, str | None) else as_text(own) for own in cells]
        columns[field.name] = kind, cells
    return columns


def _kind(values: inspect.Type) -> str:
    if isinstance(values, inspect.UnionType):
        values, *others = (own for own in values.types if not isinstance(own, inspect.NoneType))
        if others:
            return "string"
    if isinstance(values, inspect.VarTupleType):
        return f"{_kind(values.item_type)}[]"
    return KINDS.get(type(values), "string")


def as_text(value: object) -> str:
    """Return JSON as a cell holds it."""
    return json.dumps(value, ensure_ascii=False)


def write_parquet(columns: Columns, path: Path) -> None:
    """Write columns as one Parquet file, whole or not at all."""
    require("pyarrow", extra="parquet", feature="Parquet export")
    import pyarrow as pa
    import pyarrow.parquet as pq

    def typed(kind: str) -> pa.DataType:
        if kind.endswith("[]"):
            return pa.list_(typed(kind.removesuffix("[]")))
        turn = pa.struct([("role", pa.string()), ("content", pa.string())])
        return turn if kind == "turn" else pa.type_for_alias(kind)

    arrays = {name: pa.array(cells, type=typed(kind)) for name, (kind, cells) in columns.items()}
    try:
        with whole_file(path) as file:
            pq.write_table(pa.table(arrays), file)
    except OSError as error:
        raise RunDirectoryError(f"cannot write {path}: {error}. Choose another --out.") from None


def write_dataset(columns: Columns, folder: Path, *, name: str, what: str) -> None:
    """Write columns as a folder that `datasets.load_dataset(folder)` opens: Parquet and a card.

    The one split is `test`: what is judged is no training set. The folder must not hold anything else;
    `name` is that of the file of rows, and `what` a row is a sentence for the card.
    """
    file = f"{name}.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for own in (file, "README.md"):
            sweep(folder / own)  # of a run that was killed here
        strangers = sorted({entry.name for entry in folder.iterdir()} - {file, "README.md"})
    except OSError as error:
        raise RunDirectoryError.cannot(f"write {folder}", error) from None
    if strangers:
        raise RunDirectoryError(f"{folder} holds {strangers[0]}: give an empty or a new folder.")
    write_parquet(columns, folder / file)
    n = max((len(cells) for _, cells in columns.values()), default=0)
    features = "\n".join(
        f"  - name: {key}\n{indent(_feature(kind), '    ')}" for key, (kind, _) in columns.items()
    )
    card = f"""---
configs:
- config_name: default
  data_files:
  - split: test
    path: {file}
dataset_info:
  features:
{features}
---

{what} {plural(n, "row")}, written by unswayed {VERSION}.
"""
    write_text(folder / "README.md", card)


def _feature(kind: str) -> str:
    """Return the type of cells as the card of a dataset names it."""
    if kind == "turn":
        return "- name: role\n  dtype: string\n- name: content\n  dtype: string"
    inner = kind.removesuffix("[]")
    if "turn" in kind:
        return f"list:\n{indent(_feature(inner), '  ')}"
    return f"dtype: {kind}" if inner == kind else f"list: {inner}"
