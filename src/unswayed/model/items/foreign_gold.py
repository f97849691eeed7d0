"""Gold in other people's columns: a letter, a text, a column's name, or a number counted from 0 or 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items.paths import Record, at, candidates_in, is_missing
from unswayed.model.items.tables import BadFieldError, is_level_column, typed_values

Paths = tuple[str, ...]

TIES: Final = frozenset({"tie", "tied", "both", "equal"})
READINGS: Final = {
    "0": "the right candidate counted from 0",
    "1": "the right candidate counted from 1",
    "letters": "the letter of the right candidate",
    "texts": "the text of the right candidate",
    "columns": "the name of the right column",
}
"""Ways to read a column of gold: the values of `gold_from`, with what each means."""


Gold = tuple[Any, list[Any], list[str]]
"""Value of gold, candidates, symbols of the candidates."""


def gold_reading(
    records: Sequence[Record],
    columns: Mapping[str, Paths],
    given: Mapping[str, str | Sequence[str]],
    name: str,
) -> str | None:
    """Return the one way to read the column of gold (a key of `READINGS`).

    None without gold, where it is as the format has it, and where it names no candidate at all.
    """
    path = columns.get("gold")
    if path is None:
        return None
    if is_scale(records, columns):
        return None
    told = given.get("gold_from")
    if told is not None:
        way = told if isinstance(told, str) else str(told[0])
        if way not in READINGS:
            raise UsageError(f"gold_from={way}: write one of {', '.join(READINGS)}.")
        return way
    column, headings = path[0], columns.get("candidates", ())
    rows: list[Gold] = []
    for record in records:
        gold = at(record, column)
        if not is_missing(gold):
            with suppress(BadFieldError):  # which is reported with its line
                row = (gold, *candidates_in(record, headings))
                is_tie = _is_tie(gold, () if column == "gold" else row[1])
                rows += [row] * (len(row[1]) > 1 and not is_tie)
    if not rows:
        return None
    ways = {
        way: places
        for way in READINGS
        if None not in (places := [_index(*row, way, headings) for row in rows])
    }
    if "letters" in ways:  # a printed 1 is a symbol, not a count
        ways = {way: places for way, places in ways.items() if way not in ("0", "1")}
    if column == "gold" and "0" in ways:
        return None if not isinstance(rows[0][0], str) else "0"
    if column == "gold" and "1" in ways:
        raise ItemError(
            f"{name}: gold counts from 0, and {max(str(row[0]) for row in rows)} names no candidate. If it counts "
            f"from 1, add --columns gold=gold,gold_from=1."
        )
    if column == "gold" and any(not isinstance(row[0], str) for row in rows):
        return None  # as the format has it: a row that is not so is reported with its line
    if len({tuple(places) for places in ways.values()}) > 1:
        raise ItemError(
            f"{name}: {column} could be {' or '.join(READINGS[way] for way in ways)}, which differ. Choose "
            f"with --columns gold={column},gold_from={next(iter(ways))}"
        )
    if not ways:
        readable = [
            any(_index(*row, way, headings) is not None for way in READINGS) for row in rows
        ]
        gold, cells, _ = rows[readable.index(False) if False in readable else 0]
        shown = ", ".join(f"{str(cell)[:20]!r}" for cell in cells)
        raise ItemError(
            f"{name}: {column} is {str(gold)[:40]!r} where the candidates are {shown}. Write letters, indices, "
            "texts or column names, and tie for a tie, or leave the column out."
        )
    return next(iter(ways))


def is_scale(records: Sequence[Record], columns: Mapping[str, Paths]) -> bool:
    """Return True for records with the values of levels, whose gold is a score."""
    names = {name for record in records for name in record}
    return "values" in columns or "values" in names or any(map(is_level_column, names))


def _is_tie(gold: object, cells: Sequence[object]) -> bool:
    """Return True for a word for a tie that is not the text of a candidate."""
    word = gold.strip().casefold() if isinstance(gold, str) else ""
    return word in TIES and word not in {str(cell).strip().casefold() for cell in cells}


def tie_words(records: Sequence[Record], columns: Mapping[str, Paths]) -> list[str]:
    """Return the words of a column of gold that are read as a tie, without "tie" itself."""
    column = columns["gold"][0]
    headings = () if column == "gold" else columns.get("candidates", ())
    words: set[str] = set()
    for record in records:
        gold = at(record, column)
        if isinstance(gold, str) and gold.strip().casefold() in TIES - {"tie"}:
            with suppress(BadFieldError):
                cells = () if column == "gold" else candidates_in(record, headings)[0]
                words |= {gold.strip()} if _is_tie(gold, cells) else set()
    return sorted(words)


def _index(
    gold: Any, cells: Sequence[Any], symbols: Sequence[str], way: str, headings: Sequence[str]
) -> int | None:
    """Return the candidate that gold names when it is read in one way; None if it names none, or several."""
    word = str(gold).strip()
    if way in ("0", "1"):
        try:
            place = float(gold) - int(way) if not isinstance(gold, bool) else -1.0
        except (TypeError, ValueError, OverflowError):
            return None
        return int(place) if place.is_integer() and 0 <= place < len(cells) else None
    if way == "letters":
        places = [
            place for place, symbol in enumerate(symbols) if symbol.casefold() == word.casefold()
        ]
    elif way == "texts":
        words = {word, str(int(gold)) if isinstance(gold, float) and gold.is_integer() else word}
        places = [place for place, cell in enumerate(cells) if str(cell).strip() in words]
    else:
        places = [place for place, own in enumerate(headings) if word.casefold() in own.casefold()]
        places = places if len(headings) > 1 and word else []
    return places[0] if len(places) == 1 else None


def agree(
    records: Sequence[Record], columns: Mapping[str, Paths], candidates: Sequence[str], name: str
) -> bool:
    """Return True if several columns of gold name the same candidates in every record."""
    seen: list[list[Any]] = []
    for column in candidates:
        own = {**columns, "gold": (column,)}
        try:
            way = gold_reading(records, own, {}, name)
            seen.append([gold_of(record, own, way) for record in records])
        except ItemError:
            return False
    return all(golds == seen[0] for golds in seen)


def gold_of(record: Record, columns: Mapping[str, Paths], gold_from: str | None) -> Any:
    """Return the gold of a record as the format has it, None without one."""
    column = columns["gold"][0]
    gold = at(record, column)
    if is_missing(gold):
        return None
    if gold_from is None:  # as the format has it, in a table as text
        return "tie" if _is_tie(gold, ()) else typed_values({"gold": gold})["gold"]
    headings = columns.get("candidates", ())
    cells, symbols = candidates_in(record, headings)
    if _is_tie(gold, () if column == "gold" else cells):
        return "tie"
    index = _index(gold, cells, symbols, gold_from, headings)
    if index is None:
        raise BadFieldError(column, f"{str(gold)[:40]!r} is not {READINGS[gold_from]}")
    return index
