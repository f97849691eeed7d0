"""Items in other people's columns: what each column means is decided once, from all records, and reported.

Nothing is guessed: where two columns could be the same field, or a column of gold can be read in two ways
that name different candidates, the records are refused with the option that settles it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from unswayed.base.errors import ItemError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.items.item import Item
from unswayed.model.items.tables import BadFieldError, fields_of, is_candidate_column

Record = Mapping[str, Any]
Paths = tuple[str, ...]

ALIASES: Final[Mapping[str, Paths]] = {
    "id": ("question_id", "item_id", "example_id", "uid", "qid", "idx"),
    "prompt": ("question", "instruction", "query", "input", "problem", "goal", "ctx"),
    "candidates": ("choices", "options", "answers", "responses", "completions", "endings"),
    "gold": (
        *("answer", "label", "target", "answerKey", "answer_key", "answer_idx", "answer_index"),
        *("correct_answer", "winner", "preference"),
    ),
    "group": ("subject", "category", "domain"),
}
CHOSEN: Final = ("chosen", "rejected")
PAIRS: Final = (
    CHOSEN,
    *(
        (f"{name}_{one}", f"{name}_{two}")
        for name in ("output", "completion")
        for one, two in ("12", "ab")
    ),
)
TIES: Final = frozenset({"tie", "tied", "both", "equal"})
READINGS: Final = {
    "0": "the right candidate counted from 0",
    "1": "the right candidate counted from 1",
    "letters": "the letter of the right candidate",
    "texts": "the text of the right candidate",
    "columns": "the name of the right column",
}
"""Ways to read a column of gold: the values of `gold_from`, with what each means."""
_PLACE: Final = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Reading:
    """Meaning of the columns of some records.

    Attributes:
        columns: Paths of each field of ours; without `candidates` these stand in a family of columns.
        gold_from: Key of `READINGS`; None where gold is as the format has it.
        said: What was taken for what, in phrases.
    """

    columns: Mapping[str, Paths]
    gold_from: str | None
    said: tuple[str, ...]

    @property
    def used(self) -> set[str]:
        """Names that are no part of `meta`."""
        paths = [path for own in self.columns.values() for path in own]
        return {*paths, *(_parts(path)[0] for path in paths)}


def is_ours(record: Record) -> bool:
    """Return True if a record has our id, prompt and candidates, so that it is read strictly."""
    return isinstance(record.get("id"), str) and "prompt" in record and "candidates" in record


def parse_columns(text: str) -> dict[str, Paths]:
    """Return what `--columns` says: `prompt=Question text,candidates=GPT|Claude`; `,,` and `||` are signs of a name."""
    found: dict[str, Paths] = {}
    for part in re.split(r"(?<!,),(?!,)", text):
        ours, equals, theirs = part.partition("=")
        if not equals:
            raise UsageError(f"--columns {part!r}: write ours=theirs, such as prompt=question.")
        names = re.split(r"(?<!\|)\|(?!\|)", theirs)
        found[ours.strip()] = tuple(
            name.strip().replace(",,", ",").replace("||", "|") for name in names
        )
    return found


def reading_of(
    records: Sequence[Record], given: Mapping[str, str | Sequence[str]], name: str
) -> Reading:
    """Decide what the columns of records mean.

    Args:
        records: All of them.
        given: Paths by field of ours, as `--columns` gives them, and perhaps `gold_from`.
        name: File or source, for messages.

    Raises:
        UsageError: If `given` names no field or no column.
        ItemError: If a field is missing or could be two columns.
    """
    names = list(dict.fromkeys(key for record in records for key in record))
    columns = _given_columns(given, records, name, names)
    said = [f"{' | '.join(paths)} as {ours}" for ours, paths in columns.items()]
    taken = Reading(columns, None, ()).used
    families = [one for one in names if is_candidate_column(one) and one not in taken]
    if not {"a", "A"} & set(families):
        families = [one for one in families if len(one) > 1]  # x and y are no answers
    if "candidates" not in columns:
        ways = _candidate_ways(names, taken, families)
        if len(ways) != 1:
            raise ItemError(f"{name}: {_no_candidates(ways, names)}")
        if ways[0] != tuple(families):
            columns["candidates"] = ways[0]
            if ways[0] == CHOSEN:
                said.append(
                    "chosen as the right candidate and rejected as the other, in an order drawn by a hash"
                )
            elif ways[0] != ("candidates",):
                said.append(f"{' and '.join(ways[0])} as candidates")
        taken |= {*ways[0], *families}
    paired = columns.get("candidates") == CHOSEN
    for ours in ("id", "prompt", "gold", "group"):
        if ours in columns or (ours == "gold" and paired):
            continue
        found = [one for one in (ours, *ALIASES[ours]) if one in names and one not in taken]
        if ours in found:
            found = [ours]
        if ours == "gold" and len(found) > 1 and _agree(records, columns, found, name):
            taken |= set(found)
            found = found[:1]
        if len(found) > 1:
            raise ItemError(
                f"{name}: {ours} could be {' or '.join(found)}. Choose with --columns {ours}={found[0]}"
            )
        if found:
            columns[ours] = (found[0],)
            taken.add(found[0])
            if found != [ours]:
                said.append(f"{found[0]} as {ours}")
        elif ours == "prompt" and not paired:
            raise ItemError(
                f"{name}: no prompt among its fields ({', '.join(names)}). Name it with "
                "--columns prompt=FIELD"
            )
    gold_from = None if paired else _gold_from(records, columns, given, name)
    if gold_from is not None and (columns["gold"][0], gold_from) != ("gold", "0"):
        said = [phrase for phrase in said if not phrase.endswith(" as gold")]
        said.append(f"{columns['gold'][0]} as gold ({READINGS[gold_from]})")
    _settle_ids(records, columns, said)
    rest = [one for one in names if one not in taken and not _is_ours(one)]
    for one in rest:
        _refuse_misspelt(one, columns, name)
    if rest:
        said.append(f"{', '.join(rest)} into meta")
    return Reading(columns, gold_from, tuple(said))


def _given_columns(
    given: Mapping[str, str | Sequence[str]], records: Sequence[Record], name: str, names: list[str]
) -> dict[str, Paths]:
    known = (*Item.__struct_fields__, "gold_from")
    columns: dict[str, Paths] = {}
    for ours, theirs in given.items():
        if ours not in known:
            raise UsageError(
                f"--columns: {ours} is not a field of an item. {did_you_mean(ours, known)}"
            )
        if ours != "gold_from":
            columns[ours] = (theirs,) if isinstance(theirs, str) else tuple(theirs)
            for path in columns[ours]:
                if all(at(record, path) is None for record in records):
                    raise UsageError(
                        f"--columns {ours}={path}: {name} has no such field. {did_you_mean(path, names)}"
                    )
    return columns


def _candidate_ways(names: list[str], taken: set[str], families: list[str]) -> list[Paths]:
    free = [one for one in names if one not in taken]
    pairs = [pair for pair in PAIRS if set(pair) <= set(free)]
    if "candidates" in free:
        return [("candidates",)]
    lists = [(one,) for one in ALIASES["candidates"] if one in free]
    return [*pairs, *lists, *([tuple(families)] if len(families) > 1 else [])]


def _no_candidates(ways: Sequence[Paths], names: Sequence[str]) -> str:
    if ways:
        shown = " or ".join(" and ".join(way) for way in ways)
        return (
            f"the candidates could be {shown}. Choose with --columns candidates={'|'.join(ways[0])}"
        )
    return (
        f"no candidates among its fields ({', '.join(names)}). Name them with --columns "
        "candidates=FIRST|SECOND, or candidates=LIST"
    )


def _is_ours(name: str) -> bool:
    return not name or name in Item.__struct_fields__ or name.startswith("meta.")


def _refuse_misspelt(name: str, columns: Mapping[str, Paths], source: str) -> None:
    free = [one for one in Item.__struct_fields__ if one not in columns]
    close = did_you_mean(name, free)
    if close.startswith("Did") and f"'{name[0]}" in close:
        raise ItemError(f"{source}: {name} is not a field of an item. {close}")


def _settle_ids(records: Sequence[Record], columns: dict[str, Paths], said: list[str]) -> None:
    """Keep a column of ids only if they differ; a column called `id` stays, so that a repeated id is an error."""
    path = columns.get("id")
    if path is None:
        said.append("ids made from the texts")
    elif path != ("id",) and len({str(at(record, path[0])) for record in records}) < len(records):
        del columns["id"]
        said[:] = [phrase for phrase in said if not phrase.endswith(" as id")]
        said += ["ids made from the texts", f"{path[0]}, which is not unique, into meta"]


# --- gold ----------------------------------------------------------------------------------------

Gold = tuple[Any, list[Any], list[str]]
"""Value of gold, candidates, symbols of the candidates."""


def _gold_from(
    records: Sequence[Record],
    columns: Mapping[str, Paths],
    given: Mapping[str, str | Sequence[str]],
    name: str,
) -> str | None:
    path = columns.get("gold")
    if path is None:
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
        if not _is_missing(gold) and not _is_tie(gold):
            with suppress(BadFieldError):  # which is reported with its line
                rows.append((gold, *candidates_in(record, headings)))
    if not rows:
        return "0"
    ways = {
        way: found
        for way in READINGS
        if None not in (found := [_index(*row, way, headings) for row in rows])
    }
    if "letters" in ways:  # a printed 1 is a symbol, not a count
        ways = {way: found for way, found in ways.items() if way not in ("0", "1")}
    if column == "gold" and "0" in ways:
        return None if not isinstance(rows[0][0], str) else "0"
    if column == "gold" and "1" in ways:
        raise ItemError(
            f"{name}: gold counts from 0, and {max(str(row[0]) for row in rows)} names no candidate. If it "
            "counts from 1 here: --columns gold=gold,gold_from=1"
        )
    if column == "gold" and any(not isinstance(row[0], str) for row in rows):
        return None  # as the format has it: a row that is not so is reported with its line
    if len({tuple(found) for found in ways.values()}) > 1:
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
            f"{name}: {column} is {str(gold)[:40]!r} where the candidates are {shown}: it is not a letter, an "
            "index or the text of one. Leave the column out, or write an index into gold."
        )
    return next(iter(ways))


def _is_missing(value: object) -> bool:
    return value is None or value == "" or value != value


def _is_tie(gold: object) -> bool:
    return isinstance(gold, str) and gold.strip().casefold() in TIES


def _index(
    gold: Any, cells: Sequence[Any], symbols: Sequence[str], way: str, headings: Sequence[str]
) -> int | None:
    """Return the candidate that gold names when it is read in one way; None if it names none, or several."""
    word = str(gold).strip()
    if way in ("0", "1"):
        try:
            place = float(gold) - int(way) if not isinstance(gold, bool) else -1.0
        except (TypeError, ValueError):
            return None
        return int(place) if place.is_integer() and 0 <= place < len(cells) else None
    if way == "letters":
        found = [place for place, symbol in enumerate(symbols) if symbol == word]
    elif way == "texts":
        found = [place for place, cell in enumerate(cells) if str(cell).strip() == word]
    else:
        found = [place for place, own in enumerate(headings) if word.casefold() in own.casefold()]
        found = found if len(headings) > 1 and word else []
    return found[0] if len(found) == 1 else None


def _agree(
    records: Sequence[Record], columns: Mapping[str, Paths], found: Sequence[str], name: str
) -> bool:
    """Return True if several columns of gold name the same candidates in every record."""
    seen = set()
    for column in found:
        own = {**columns, "gold": (column,)}
        try:
            reading = Reading(own, _gold_from(records, own, {}, name), ())
            seen.add(tuple(gold_of(record, reading) for record in records))
        except ItemError:
            return False
    return len(seen) == 1


def gold_of(record: Record, reading: Reading) -> Any:
    """Return the gold of a record as the format has it, None without one."""
    column = reading.columns["gold"][0]
    gold = at(record, column)
    if _is_missing(gold):
        return None
    if _is_tie(gold):
        return "tie"
    if reading.gold_from is None:
        return gold
    headings = reading.columns.get("candidates", ())
    index = _index(gold, *candidates_in(record, headings), reading.gold_from, headings)
    if index is None:
        raise BadFieldError(column, f"{str(gold)[:40]!r} is not {READINGS[reading.gold_from]}")
    return index


# --- records -------------------------------------------------------------------------------------


def at(record: Record, path: str) -> Any:
    """Return the value at a path such as `choices.text` or `responses[0].text`, None without one.

    A name that exists as it is goes first; JSON in a cell is opened.
    """
    if path in record:
        return record[path]
    value: Any = record
    for part in _parts(path):
        value = _opened(value)
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def _parts(path: str) -> list[str]:
    return _PLACE.sub(r".\1", path).split(".")


def _opened(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def candidates_in(record: Record, paths: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return the candidates of a record and their symbols: those of the layout, else letters."""
    if not paths:
        cells = list(fields_of(record).get("candidates") or ())  # type: ignore[call-overload]
    elif len(paths) > 1:
        cells = [at(record, path) for path in paths]
    else:
        value = _opened(at(record, paths[0]))
        if isinstance(value, Mapping):
            texts, labels = value.get("text", value), value.get("label", list(value))
            cells = list(texts.values() if isinstance(texts, Mapping) else texts)
            if len(labels) == len(cells):
                return cells, list(map(str, labels))
        else:
            cells = (
                list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
            )
    return cells, [chr(ord("A") + place) for place in range(len(cells))]


def our_record(record: Record, reading: Reading, counted: Counter[str]) -> dict[str, Any]:
    """Return a record with our fields.

    Args:
        record: One of the records that `reading` is about.
        reading: What its columns mean.
        counted: How often each text came; counts up, so that repeated texts get different ids.

    Raises:
        BadFieldError: Naming their column.
    """
    columns, used = reading.columns, reading.used
    paths = columns.get("candidates", ())
    kept = {key: own for key, own in record.items() if key not in used and not _is_missing(own)}
    row = {key: own for key, own in kept.items() if key and _is_ours(key)}
    if not paths:
        family = {key: own for key, own in record.items() if is_candidate_column(key)}
        row = fields_of({**row, **family})
    for ours in ("prompt", "group", *(set(columns) - {"id", "gold", "candidates"})):
        own = at(record, columns[ours][0]) if ours in columns else None
        if not _is_missing(own):
            row[ours] = str(own) if ours == "group" else own
    if paths == CHOSEN:
        row |= _preference(record, row)
    elif paths:
        row["candidates"] = candidates_in(record, paths)[0]
        if len(row["candidates"]) < 2:
            raise BadFieldError(paths[0], "has no list of at least two candidates")
        if len(row["candidates"]) > 2:
            row.setdefault("task", "mcq")
    if "gold" in columns and (gold := gold_of(record, reading)) is not None:
        row["gold"] = gold
    extra = {key: own for key, own in kept.items() if key not in row and not _is_ours(key)}
    if meta := {key: own for key, own in extra.items() if not is_candidate_column(key)}:
        row["meta"] = {**row.get("meta", {}), **meta}
    own_id = at(record, columns["id"][0]) if "id" in columns else None
    if _is_missing(own_id):
        texts = json.dumps(
            [row.get("prompt"), row.get("candidates")], ensure_ascii=False, default=str
        )
        mark = hashlib.sha256(texts.encode("utf-8", "replace")).hexdigest()[:16]
        counted[mark] += 1
        own_id = f"item-{mark}" + (f"-{counted[mark]}" if counted[mark] > 1 else "")
    row["id"] = (
        str(int(own_id)) if isinstance(own_id, float) and own_id.is_integer() else str(own_id)
    )
    return row


def _preference(record: Record, row: Record) -> dict[str, Any]:
    """Return prompt, candidates and gold of `chosen` and `rejected`, in an order drawn by a hash.

    The first turns that two conversations share become the prompt.
    """
    good, bad = [_opened(record.get(column)) for column in CHOSEN]
    made: dict[str, Any] = {}
    if (
        isinstance(good, Sequence)
        and isinstance(bad, Sequence)
        and not isinstance(good, str)
        and "prompt" not in row
    ):
        pairs = zip(good, bad, strict=False)
        shared = next(
            (k for k, (one, other) in enumerate(pairs) if one != other), min(len(good), len(bad))
        )
        made["prompt"] = good[:shared]
        good, bad = (
            own[shared]["content"] if len(own) == shared + 1 else own[shared:]
            for own in (good, bad)
        )
    drawn = hashlib.sha256(f"{good}\n{bad}".encode("utf-8", "replace")).digest()[0] & 1
    return {**made, "candidates": [bad, good] if drawn else [good, bad], "gold": drawn}


def reader(
    records: Sequence[Record], given: Mapping[str, str | Sequence[str]], name: str
) -> tuple[Reading, Callable[[Record], dict[str, Any]]]:
    """Return what the columns of records mean, and a function that gives a record our fields."""
    reading = reading_of(records, given, name)
    return reading, partial(our_record, reading=reading, counted=Counter())


def rows_of_columns(source: Mapping[str, Any]) -> Iterable[Record]:
    """Return the rows of a mapping of equally long lists."""
    if source and all(
        hasattr(own, "column_names") or hasattr(own, "features") for own in source.values()
    ):
        raise UsageError(f"items has the splits {', '.join(source)}: give one of them.")
    lists = [
        own for own in source.values() if isinstance(own, Sequence) and not isinstance(own, str)
    ]
    if len(lists) < len(source) or len({len(own) for own in lists}) != 1:
        raise UsageError("items: one mapping is one item; give a list of them.")
    return [dict(zip(source, row, strict=True)) for row in zip(*lists, strict=True)]
