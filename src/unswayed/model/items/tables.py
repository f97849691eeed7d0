"""Tables: the rows of CSV and TSV, and the fields of an item whose candidates stand in columns.

A record without `candidates` may give them one by one, in one family of columns, counted from 0, 1 or
a: `candidate_0, candidate_1, …`, `option_a, option_b, …`, `answer_…` and `response_…` in the same way, or
`a, b, …`. The levels of a scale stand in columns by their values: `level_1, level_2, …`. `meta.x` is the field x of `meta`.
Everything else is named as in `formats.md`.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from unswayed.base.errors import ItemError
from unswayed.base.files import LARGEST

_CANDIDATE: Final = re.compile(
    r"(?:(candidate|option|answer|response)_(\d+|[a-z])|([a-z]))", re.IGNORECASE
)
_LEVEL: Final = re.compile(r"level_(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_JSON_CELLS: Final = (
    *("gold", "values", "criteria", "permutable"),
    *("candidates", "candidates_by", "meta"),
)
_TEXT_CELLS: Final = ("id", "prompt")


class BadFieldError(ItemError):
    """A field that is not what it should be; whoever knows the file and line adds them."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def is_table(path: str | Path) -> bool:
    """Return True if the file's name says CSV or TSV, plain or `.gz`."""
    return str(path).lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def read_rows(
    lines: Iterable[bytes], names: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str] | BadFieldError]]:
    """Yield the rows below a header, or of these columns, each with the number of its first line, from 1.

    The separator is the one of tab, comma and semicolon that the header has most of. A column
    without a name (pandas writes its index into one) is left out.
    """
    texts = _decoded(lines)
    first = next(texts, "")
    number, size = 1, 0

    def held() -> Iterator[str]:
        nonlocal size
        for text in chain([first], texts):
            size += len(text)
            if size > LARGEST:
                most = f"{LARGEST / 1e6:g} MB"
                raise BadFieldError(
                    f"line {number}", f"begins a row longer than {most}: check its quotation marks"
                )
            yield text

    csv.field_size_limit(2**31 - 1)  # its own limit is shorter than many a document; rows have ours
    separator = "," if names else max(",", ";", "\t", key=first.count)
    rows = csv.reader(held(), delimiter=separator, strict=True)
    header = list(names) or None
    while True:
        number, size = rows.line_num + 1, 0
        try:
            cells = next(rows, None)
        except csv.Error as error:
            yield number, BadFieldError("row", f"is not valid CSV ({error}): check its quotes")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = _header(cells)
        elif len(cells) != len(header):
            yield number, BadFieldError("row", f"{len(cells)} cells under {len(header)} columns")
        else:
            row = dict(zip(header, cells, strict=True))
            row.pop("", None)
            yield number, row


def typed_cells(row: Mapping[str, str]) -> dict[str, object]:
    """Return a row of text as a record of an item: empty cells left out, JSON where a field is not text."""
    record: dict[str, object] = {}
    for name, cell in row.items():
        if name in _TEXT_CELLS or is_candidate_column(name):
            record[name] = cell
        elif cell.strip():
            record[name] = _from_json(cell) if name in _JSON_CELLS else cell
    return record


def typed_values(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of values as a record of an item: JSON where a field of several types is text."""
    return {
        name: _from_json(value) if name in _JSON_CELLS and isinstance(value, str) else value
        for name, value in row.items()
    }


def fields_of(record: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of an item, with candidates and `meta` collected from their columns.

    Missing values (None, NaN) are left out, and a whole number written with a point (pandas does
    so beside missing ones) is a gold index. Without `task`, level columns or `values` mean `rubric`,
    and more than two candidate columns `mcq`. Behind the second candidate, empty columns at the end
    are left out.
    """
    fields = {
        name: value
        for name, value in record.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }
    gold = fields.get("gold")
    if isinstance(gold, float) and gold.is_integer():
        fields["gold"] = int(gold)
    inner = {name: fields.pop(name) for name in list(fields) if name.startswith("meta.")}
    if inner:
        meta = fields.get("meta", {})
        if not isinstance(meta, Mapping):
            raise BadFieldError("meta", f"expected an object, got {type(meta).__name__}")
        fields["meta"] = {**meta, **{name.removeprefix("meta."): inner[name] for name in inner}}
    values = {name: float(match[1]) for name in record if (match := _LEVEL.fullmatch(name))}
    levels = dict(sorted(values.items(), key=lambda column: column[1]))
    if levels:
        twice = [name for name in ("candidates", "values") if name in fields]
        if twice:
            raise BadFieldError(twice[0], f"is given, and so are the columns {', '.join(levels)}")
        fields["candidates"] = [_filled(fields.pop(name, None), name) for name in levels]
        fields["values"] = list(levels.values())
    columns = [] if "candidates" in fields else _candidate_columns(record)
    if columns:
        candidates = [fields.pop(name, None) for name in columns]
        fields["candidates"] = _without_empty_end(candidates, columns)
    if "values" in fields:
        fields.setdefault("task", "rubric")
    elif len(columns) > 2:
        fields.setdefault("task", "mcq")
    return fields


def _filled(level: object, column: str) -> object:
    if level is None or (isinstance(level, str) and not level.strip()):
        raise BadFieldError(column, "is empty: every level needs its description")
    return level


def _candidate_columns(names: Iterable[str]) -> list[str]:
    """Return the candidate columns in order; none where there are fewer than two."""
    families: dict[str, dict[int, str]] = {}
    for name in names:
        match = _CANDIDATE.fullmatch(name)
        if match:
            prefix, slot = (match[1] or "").lower(), (match[2] or match[3]).lower()
            place = int(slot) if slot.isdigit() else ord(slot) - ord("a")
            if families.setdefault(prefix, {}).setdefault(place, name) != name:
                raise BadFieldError(name, f"is the same candidate as {families[prefix][place]}")
    if not families:
        return []
    if len(families) > 1:
        both = ", ".join(name for family in families.values() for name in family.values())
        raise BadFieldError("candidates", f"are in columns of different kinds: {both}")
    (columns,) = families.values()
    places = sorted(columns)
    if places not in (list(range(len(places))), list(range(1, len(places) + 1))):
        have = ", ".join(columns.values())
        raise BadFieldError(
            "candidates", f"have columns {have}: count from 0, 1 or a without a gap"
        )
    return [columns[place] for place in places]


def is_candidate_column(name: str) -> bool:
    """Return True if a name belongs to a family of candidate columns, or is a level's."""
    return bool(_CANDIDATE.fullmatch(name)) or is_level_column(name)


def is_level_column(name: str) -> bool:
    """Return True if a name belongs to a column of one level of a scale."""
    return bool(_LEVEL.fullmatch(name))


def _without_empty_end(candidates: list[object], columns: list[str]) -> list[object]:
    kept = list(candidates)
    while len(kept) > 2 and kept[-1] in (None, ""):
        kept.pop()
    for candidate, column in zip(kept, columns, strict=False):
        if candidate is None or (candidate == "" and len(kept) > 2):
            raise BadFieldError(column, "is empty")
    return kept


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadFieldError(
                f"line {number}", "is not UTF-8; save the table as UTF-8 (Excel: CSV UTF-8)"
            ) from None


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            raise BadFieldError(name, "is the name of two columns")
    return names


def _from_json(cell: str) -> object:
    """Return the JSON value that a cell holds; a cell that is no JSON stays text (`tie`)."""
    text = cell.strip()
    try:
        return msgspec.json.decode(text.lower() if text.lower() in ("true", "false") else text)
    except (msgspec.DecodeError, RecursionError):
        return text
