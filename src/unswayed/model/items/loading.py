"""Items from files and from records in memory: one way in, the same checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from unswayed.base.arguments import checked
from unswayed.base.errors import ItemError
from unswayed.model.items.foreign import is_ours, our_record, parse_columns, reading_of, their_name
from unswayed.model.items.item import BadLine, Item, Task, decode_item, item_of, made_id
from unswayed.model.items.lines import is_parquet, iter_objects, read_parquet, read_table
from unswayed.model.items.paths import is_missing
from unswayed.model.items.sets import ItemSet
from unswayed.model.items.tables import BadFieldError, is_table, typed_cells, typed_values

Columns = str | Mapping[str, str | Sequence[str]]
"""As `--columns` writes it, or by field."""
Entry = bytes | msgspec.Raw | Mapping[str, object] | BadFieldError | Item

LINES: Final = (bytes, msgspec.Raw)
MOST_BAD: Final = 10_000
"""Most bad lines counted before a file is refused."""


@checked
def load_items(
    path: str | Path,
    *,
    task: Task | str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
    columns: Columns | None = None,
) -> ItemSet:
    """Read items from a file.

    Args:
        path: JSON Lines, one JSON array, or a table (`.csv`, `.tsv`), plain or `.gz`; `.parquet`;
            `-` for JSON on standard input.
        task: Keep the items of this task only.
        on_bad_item: "stop" where a line is bad, or "skip" and count bad lines.
        limit: Keep the first `limit` items.
        columns: Path of each field whose column has another name (`foreign.at`); the usual names of others
            are known without it. Several paths, or one of a list, for `candidates`. The text of `--columns` works, too.

    Raises:
        ItemError: If lines are bad, an id is repeated, tasks are mixed, or nothing is left.
        UsageError: If the file cannot be read.
    """
    collect = partial(
        collect_items,
        source=str(path),
        task=task,
        on_bad_item=on_bad_item,
        limit=limit,
        columns=columns,
    )
    if is_table(path):
        rows = read_table(path)
        return collect((k, typed_cells(row) if isinstance(row, dict) else row) for k, row in rows)
    if is_parquet(path):
        return collect((number, typed_values(row)) for number, row in read_parquet(path))
    return collect(iter_objects(path))


def items_of(
    records: Iterable[Mapping[str, object]],
    *,
    name: str = "items",
    task: Task | str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
    columns: Columns | None = None,
) -> ItemSet:
    """Items from records in memory, read and checked as the objects of a JSON Lines file are.

    Errors say `name:3` for the third record; the other options are those of `load_items`.
    """
    return collect_items(
        enumerate(records, start=1),
        source=name,
        task=task,
        on_bad_item=on_bad_item,
        limit=limit,
        columns=columns,
    )


def encoded(record: object) -> Mapping[str, object]:
    """Return a record as plain values: cells may be arrays."""
    if isinstance(record, Item):
        return {name: getattr(record, name) for name in Item.__struct_fields__}
    if not isinstance(record, Mapping):
        raise ItemError(
            f"{record!r:.60} is neither an item nor a mapping with its fields. Read a file or a data "
            "frame with us.load_data."
        )
    fields = {str(name): value for name, value in record.items()}
    for name, value in fields.items():  # an array or a time of pandas, which JSON does not know
        if as_plain := getattr(value, "tolist", None) or getattr(value, "isoformat", None):
            fields[name] = as_plain()
    return fields


def item_with_id(record: Mapping[str, Any]) -> Item:
    """Return the item of a record whose id may be a whole number, or missing and made of its texts."""
    own = record.get("id")
    if is_missing(own):
        item = item_of({**record, "id": "item"})
        return msgspec.structs.replace(item, id=made_id(item))
    whole = int(own) if isinstance(own, float) and own.is_integer() else own
    return item_of({**record, "id": str(whole)})


def as_item(given: object, place: int = 1) -> Item:
    """Return an item as it is, or the item of a mapping; `place` is for its error."""
    if isinstance(given, Item):
        return given
    try:
        return item_with_id(encoded(given))
    except BadFieldError as error:
        raise ItemError(str(BadLine("items", place, error.field, error.reason))) from None


def _read(entry: Entry) -> Item:
    if isinstance(entry, LINES):
        return decode_item(entry)
    if isinstance(entry, BadFieldError):
        raise entry
    return entry if isinstance(entry, Item) else item_of(entry)


def _record(entry: Entry) -> Entry:
    """Return an entry as a record, if it is one."""
    if isinstance(entry, Mapping | BadFieldError | Item):
        return entry
    try:
        return msgspec.json.decode(entry, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return entry


def is_foreign(line: bytes) -> bool:
    """Return True if a line is a record that has to be read by its columns, together with all others."""
    with suppress(BadFieldError):
        decode_item(line)
        return False
    record = _record(line)
    return isinstance(record, Mapping) and not is_ours(record)


def collect_items(
    entries: Iterable[tuple[int, Entry]],
    *,
    source: str,
    task: Task | str | None,
    on_bad_item: Literal["stop", "skip"],
    limit: int | None,
    columns: Columns | None,
) -> ItemSet:
    """Return the items of numbered entries, read and checked in one way; see `load_items`."""
    entries, read, read_as = _readable(iter(entries), columns, source)
    kept: list[Item] = []
    bad: list[BadLine] = []
    seen: dict[str, int] = {}
    others: Counter[str] = Counter()
    for number, entry in entries:
        try:
            item = read(entry)
            if item.id in seen:
                raise BadFieldError("id", f"{item.id!r} was used on line {seen[item.id]} already")
        except BadFieldError as error:
            bad.append(BadLine(source, number, error.field, error.reason))
            if on_bad_item == "stop" and len(bad) == MOST_BAD:
                break
            continue
        seen[item.id] = number
        if task is None or item.task == task:
            kept.append(item)
        else:
            others[item.task.value] += 1
        if limit is not None and len(kept) >= limit:
            break
    if bad and on_bad_item == "stop":
        raise ItemError(_refusal(source, bad))
    if not kept:
        counts = ", ".join(f"{count} {other}" for other, count in others.most_common())
        why = f" of task {task} ({counts})" if counts else ""
        left_out = f" ({len(bad)} bad lines left out, the first: {bad[0]})" if bad else ""
        remedy = " Write each item's task in its field (or column) task." if counts else ""
        raise ItemError(f"{source}: no items{why}{left_out}.{remedy}")
    endings = r"(\.jsonl|\.json|\.csv|\.tsv|\.parquet)?(\.gz)?$"
    name = re.sub(endings, "", Path(source).name, flags=re.IGNORECASE)
    items = ItemSet.of(kept, name="stdin" if source == "-" else name, bad_lines=bad)
    return replace(items, read_as=read_as)


def _readable(
    entries: Iterator[tuple[int, Entry]], columns: Columns | None, source: str
) -> tuple[Iterable[tuple[int, Entry]], Callable[[Entry], Item], str]:
    """Return the entries, what reads one, and how: strictly if the first is ours, by all their columns if not."""
    first = next(entries, None)
    entries = entries if first is None else chain([first], entries)
    if first is None or (not columns and is_ours(_record(first[1]))):
        return entries, _read, ""
    held = [(number, _record(entry)) for number, entry in entries]
    rows = [entry for _, entry in held if isinstance(entry, Mapping)]
    if not rows or (not columns and is_ours(rows[0])):
        return held, _read, ""
    if not columns:
        with suppress(BadFieldError):  # columns of ours, in every record as the format has it
            return [(number, _read(entry)) for number, entry in held], _read, ""
    given = parse_columns(columns) if isinstance(columns, str) else columns or {}
    reading, counted = reading_of(rows, given, source), Counter[str]()

    def read(entry: Entry) -> Item:
        if not isinstance(entry, Mapping):
            return _read(entry)
        try:
            row = our_record(entry, reading)
            item = item_with_id(row)
        except BadFieldError as error:
            theirs = their_name(error.field, reading.columns)
            raise BadFieldError(theirs, error.reason) from None
        counted[item.id] += is_missing(row["id"])
        if counted[item.id] < 2:
            return item
        return msgspec.structs.replace(item, id=f"{item.id}-{counted[item.id]}")

    return held, read, f"{source}: took {'; '.join(reading.said)}." if reading.said else ""


def _refusal(source: str, bad: Sequence[BadLine]) -> str:
    way_out = "or skip invalid lines with --on-bad-item skip."
    if len(bad) == 1:
        return f"{bad[0]}. Fix the line, {way_out}"
    faults: dict[tuple[str, str], list[BadLine]] = {}
    for problem in bad:
        faults.setdefault((problem.field, problem.reason), []).append(problem)
    alike = list(faults.values())
    shown = "\n".join(f"  {lines[0]}{_others(lines[1:])}" for lines in alike[:5])
    rest = sum(map(len, alike[5:]))
    more = f"\n  and {rest:,} more" if rest else ""
    least = "at least " if len(bad) == MOST_BAD else ""
    return f"{source}: {least}{len(bad):,} bad lines:\n{shown}{more}\nFix them, {way_out}"


def _others(lines: Sequence[BadLine]) -> str:
    if not lines:
        return ""
    numbers = ", ".join(f"{line.line:,}" for line in lines[:4])
    more = f" and {len(lines) - 4:,} more" if len(lines) > 4 else ""
    return f" (so it is on line {numbers}{more})"
