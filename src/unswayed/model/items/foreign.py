"""Items in other people's columns: what each column means is decided once, from all records, and reported.

Nothing is guessed: where two columns could be the same field, or a column of gold can be read in two ways
that name different candidates, the records are refused with the option that settles it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from unswayed.base.errors import ItemError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.items.foreign_gold import READINGS, Paths, agree, gold_of, gold_reading
from unswayed.model.items.item import Item
from unswayed.model.items.paths import (
    Record,
    at,
    candidates_in,
    divided,
    is_missing,
    opened,
    parts_of,
)
from unswayed.model.items.tables import BadFieldError, fields_of, is_candidate_column

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
        (f"{name}_{first}", f"{name}_{second}")
        for name in ("output", "completion")
        for first, second in ("12", "ab")
    ),
)


@dataclass(frozen=True)
class ColumnReading:
    """Meaning of the columns of some records.

    Attributes:
        columns: Paths of each field of ours; without `candidates` these stand in a family of columns.
        gold_from: Key of `READINGS`; None where gold is as the format has it.
        said: What was taken for what, in phrases.
    """

    columns: Mapping[str, Paths]
    gold_from: str | None
    said: tuple[str, ...]

    @cached_property
    def used(self) -> set[str]:
        """Names that are no part of `meta`."""
        paths = [path for own in self.columns.values() for path in own]
        return {*paths, *(parts_of(path)[0] for path in paths)}


def is_ours(record: object) -> bool:
    """Return True if a record has our id, prompt and candidates, so that it is read strictly."""
    if not isinstance(record, Mapping) or not isinstance(record.get("id"), str):
        return False
    return "prompt" in record and "candidates" in record


def parse_columns(text: str) -> dict[str, Paths]:
    """Return what `--columns` says: `prompt=Question text,candidates=GPT|Claude`; `,,` and `||` are signs of a name."""
    columns: dict[str, Paths] = {}
    for part in divided(text, ","):
        ours, equals, theirs = part.partition("=")
        if not equals:
            raise UsageError(f"--columns {part!r}: write ours=theirs, such as prompt=question.")
        columns[ours.strip()] = tuple(name.strip() for name in divided(theirs, "|"))
    return columns


def reading_of(
    records: Sequence[Record], given: Mapping[str, str | Sequence[str]], name: str
) -> ColumnReading:
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
    taken = ColumnReading(columns, None, ()).used
    families = [column for column in names if is_candidate_column(column) and column not in taken]
    if not {"a", "A"} & set(families):
        families = [column for column in families if len(column) > 1]  # x and y are no answers
    if "candidates" not in columns:
        ways = _candidate_ways(names, taken, families)
        if len(ways) != 1:
            raise ItemError(f"{name}: {_no_candidates(ways, names)}")
        if ways[0] != tuple(families):
            columns["candidates"] = ways[0]
            if ways[0] == CHOSEN and "gold" not in columns:
                said.append(
                    "chosen as the right candidate and rejected as the other, in an order drawn by a hash"
                )
            elif ways[0] != ("candidates",):
                said.append(f"{' and '.join(ways[0])} as candidates")
        taken |= {*ways[0], *families}
    paired = columns.get("candidates") == CHOSEN and "gold" not in columns
    if paired and "gold" in names:
        raise ItemError(f"{name}: gold could be chosen or gold. Choose with --columns gold=gold")
    for ours in ("id", "prompt", "gold", "group"):
        if ours in columns or (ours == "gold" and paired):
            continue
        possible = [
            column for column in (ours, *ALIASES[ours]) if column in names and column not in taken
        ]
        if ours in possible:
            possible = [ours]
        if ours == "gold" and len(possible) > 1 and agree(records, columns, possible, name):
            taken |= set(possible)
            possible = possible[:1]
        if len(possible) > 1:
            raise ItemError(
                f"{name}: {ours} could be {' or '.join(possible)}. Choose with --columns {ours}={possible[0]}"
            )
        if possible:
            columns[ours] = (possible[0],)
            taken.add(possible[0])
            if possible != [ours]:
                said.append(f"{possible[0]} as {ours}")
        elif ours == "prompt" and not paired:
            raise ItemError(
                f"{name}: no prompt among its fields ({', '.join(names)}). Name it with "
                "--columns prompt=FIELD."
            )
    gold_from = None if paired else gold_reading(records, columns, given, name)
    if gold_from is not None and (columns["gold"][0], gold_from) != ("gold", "0"):
        said = [phrase for phrase in said if not phrase.endswith(" as gold")]
        said.append(f"{columns['gold'][0]} as gold ({READINGS[gold_from]})")
    _settle_ids(records, columns, said)
    rest = [column for column in names if column not in taken and not _is_ours(column)]
    free = [field for field in Item.__struct_fields__ if field not in columns]
    for column in rest:
        close = get_close_matches(column, free, n=1, cutoff=0.74)
        if close and close[0][0] == column[0]:
            raise ItemError(
                f"{name}: {column} is not a field of an item. Did you mean {close[0]!r}? Else call it "
                f"meta.{column}."
            )
    if rest:
        said.append(f"{', '.join(rest)} into meta")
    return ColumnReading(columns, gold_from, tuple(said))


def _given_columns(
    given: Mapping[str, str | Sequence[str]], records: Sequence[Record], name: str, names: list[str]
) -> dict[str, Paths]:
    fields = (*Item.__struct_fields__, "gold_from")
    columns: dict[str, Paths] = {}
    for ours, theirs in given.items():
        if ours not in fields:
            raise UsageError(
                f"--columns: {ours} is not a field of an item. {did_you_mean(ours, fields)}"
            )
        if ours != "gold_from":
            columns[ours] = (theirs,) if isinstance(theirs, str) else tuple(theirs)
            for path in columns[ours]:
                if path not in names and all(at(record, path) is None for record in records):
                    raise UsageError(
                        f"--columns {ours}={path}: {name} has no such field. {did_you_mean(path, names)}"
                    )
    return columns


def _candidate_ways(names: list[str], taken: set[str], families: list[str]) -> list[Paths]:
    free = [column for column in names if column not in taken]
    pairs = [pair for pair in PAIRS if set(pair) <= set(free)]
    if "candidates" in free:
        return [("candidates",)]
    lists = [(column,) for column in ALIASES["candidates"] if column in free]
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


def _settle_ids(records: Sequence[Record], columns: dict[str, Paths], said: list[str]) -> None:
    """Keep a column of ids only if they differ; a column called `id` stays, so that a repeated id is an error."""
    path = columns.get("id")
    if path is None:
        said.append("ids made from the texts")
    elif path != ("id",) and len({str(at(record, path[0])) for record in records}) < len(records):
        del columns["id"]
        said[:] = [phrase for phrase in said if not phrase.endswith(" as id")]
        said += ["ids made from the texts", f"{path[0]}, which is not unique, into meta"]


def our_record(record: Record, reading: ColumnReading, counted: Counter[str]) -> dict[str, Any]:
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
    kept = {key: own for key, own in record.items() if key not in used and not is_missing(own)}
    row = {key: own for key, own in kept.items() if key and _is_ours(key)}
    if not paths:
        family = {key: own for key, own in record.items() if is_candidate_column(key)}
        row = fields_of({**row, **family})
    for ours in ("prompt", "group", *(set(columns) - {"id", "gold", "candidates"})):
        own = at(record, columns[ours][0]) if ours in columns else None
        if not is_missing(own):
            row[ours] = str(own) if ours == "group" else own
        elif ours == "prompt" and columns.get(ours) == (ours,) and own == "":
            row[ours] = own  # of decisions that came without texts
        elif ours == "prompt" and ours in columns:
            raise BadFieldError(columns[ours][0], "is empty")
    if paths == CHOSEN and "gold" not in columns:
        row |= _preference(record, row)
    elif paths:
        row["candidates"] = candidates_in(record, paths)[0]
        if len(row["candidates"]) < 2:
            raise BadFieldError(paths[0], "has no list of at least two candidates")
        if len(row["candidates"]) > 2 and "values" not in row:
            row.setdefault("task", "mcq")
    if "gold" in columns and (gold := gold_of(record, columns, reading.gold_from)) is not None:
        row["gold"] = gold
    extra = {key: own for key, own in kept.items() if key not in row and not _is_ours(key)}
    if meta := {key: own for key, own in extra.items() if not is_candidate_column(key)}:
        given = row.get("meta", {})
        if not isinstance(given, Mapping):
            raise BadFieldError("meta", f"expected an object, got {type(given).__name__}")
        row["meta"] = {**given, **meta}
    own_id = at(record, columns["id"][0]) if "id" in columns else None
    if is_missing(own_id):
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
    texts: list[Any] = []
    for column in CHOSEN:
        if is_missing(cell := record.get(column)):
            raise BadFieldError(column, "is empty")
        turns = opened(cell)
        is_talk = isinstance(turns, list | tuple) and all(isinstance(own, Mapping) for own in turns)
        texts.append(turns if is_talk and turns else str(cell))
    (good, bad), talk = texts, dict[str, Any]()
    if "prompt" not in row:
        least = 0 if isinstance(good, str) or isinstance(bad, str) else min(len(good), len(bad)) - 1
        shared = next((k for k in range(least) if good[k] != bad[k]), least)
        if not shared:
            raise BadFieldError(
                "prompt", "is missing, and chosen and rejected share no first turns"
            )
        talk["prompt"] = good[:shared]
        good, bad = [
            own[shared].get("content") if len(own) == shared + 1 else own[shared:]
            for own in (good, bad)
        ]
    drawn = hashlib.sha256(f"{good}\n{bad}".encode("utf-8", "replace")).digest()[0] & 1
    return {**talk, "candidates": [bad, good] if drawn else [good, bad], "gold": drawn}


def their_name(field: str, columns: Mapping[str, Paths]) -> str:
    """Return the path of a field of ours, such as `candidates[1]`, in their columns."""
    ours, _, place = field.partition("[")
    paths = columns.get(ours, ())
    if len(paths) > 1 and place and paths != CHOSEN:
        return paths[int(place.partition("]")[0])]
    return " and ".join(paths) + field[len(ours) :] * (len(paths) == 1) if paths else field


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
