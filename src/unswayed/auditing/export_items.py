"""Items as files that others read, and that load as the same items again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from unswayed.auditing.export import Format
from unswayed.auditing.records import read_run
from unswayed.auditing.run_directory import write_text
from unswayed.auditing.table_files import (
    Columns,
    as_csv,
    as_text,
    columns_of,
    write_dataset,
    write_parquet,
)
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.model.items import Item, ItemSet, encode_item
from unswayed.store import CallStore


def items_of_run(directory: str | Path) -> ItemSet:
    """Return the items that a run asked about, with their gold."""
    path = Path(directory)
    if read_run(path).recorded:
        raise RunDirectoryError(
            f"{path} audited recorded decisions and holds no items. Export the file of items they "
            "were audited with."
        )
    with CallStore.open(path / "calls.sqlite", read_only=True) as store:
        return store.items()


def export_items(items: Sequence[Item], path: Path, form: Format) -> int:
    """Write items as JSON Lines, CSV, Parquet or a dataset's folder; returns how many.

    `load_items` reads all but the folder again, as the same items; in CSV but for text that a
    spreadsheet would run as a formula, which has an apostrophe before it.
    """
    if form == "jsonl":
        write_text(path, "".join(f"{encode_item(item).decode()}\n" for item in items))
        return len(items)
    rows = [_row(item) for item in items]
    if form == "csv":
        for item in items:
            if not isinstance(item.prompt, str):
                raise UsageError(
                    f"{item.id}: a conversation as a prompt has no place in a CSV. Write jsonl or parquet."
                )
        for row in rows:
            empty = [name for name in ("response", "reference", "group") if row[name] == ""]
            if empty:
                raise UsageError(
                    f"{row['id']}: a CSV cannot hold an empty {empty[0]}: it reads as a missing one. "
                    "Write jsonl or parquet."
                )
        write_text(path, as_csv(rows, _used(rows)))
        return len(items)
    columns = _columns(rows)
    if form == "parquet":
        write_parquet(columns, path)
    else:
        write_dataset(columns, path, name="items", what="Questions with their candidates.")
    return len(items)


def _row(item: Item) -> dict[str, Any]:
    """Return the fields of an item; None and the defaults of empty ones where nothing is said."""
    given = msgspec.to_builtins(item)
    return {
        name: given.get(name, True if name == "permutable" else None)
        for name in Item.__struct_fields__
    } | {"task": item.task.value}


def _used(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the fields that some item has; `permutable` where one is not."""
    return [
        name
        for name in Item.__struct_fields__
        if any(row[name] is not (True if name == "permutable" else None) for row in rows)
    ]


def _columns(rows: Sequence[dict[str, Any]]) -> Columns:
    # JSON of a text too, so that "1" and 1 stay apart
    rows = [row | {"gold": None if row["gold"] is None else as_text(row["gold"])} for row in rows]
    columns = dict(columns_of(Item, rows))
    prompts, candidates = ([row[name] for row in rows] for name in ("prompt", "candidates"))
    columns["prompt"] = _kind_of("prompt", prompts), prompts
    each = itertools.chain.from_iterable(candidates)
    columns["candidates"] = f"{_kind_of('candidates', each)}[]", candidates
    return columns


def _kind_of(name: str, cells: Iterable[Any]) -> str:
    """Return the type of texts or of conversations."""
    plain = {isinstance(cell, str) for cell in cells}
    if len(plain) > 1:
        raise UsageError(
            f"{name}: text in some items, conversations in others, and a Parquet column has one type. Write jsonl."
        )
    return "string" if plain <= {True} else "turn[]"
