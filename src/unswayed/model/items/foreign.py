"""Items in other people's columns: what each column means is decided once, from all records, and reported.

Nothing is guessed: where two columns could be the same field, or a column of gold can be read in two ways
that name different candidates, the records are refused with the option that settles it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from unswayed.base.counts import plural
from unswayed.base.errors import ItemError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.items.foreign_gold import (
    READINGS,
    Paths,
    agree,
    gold_of,
    gold_reading,
    tie_words,
)
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
            raise UsageError(f"--columns {part!r}: write field=column, such as prompt=question.")
        columns[ours.strip()] = tuple(name.strip() for name in divided(theirs, "|"))
    return columns


def written_columns(columns: str | Mapping[str, str | Sequence[str]] | None) -> str | None:
    """Return columns as `--columns` takes them."""
    if columns is None or isinstance(columns, str):
        return columns
    lists = {ours: [own] if isinstance(own, str) else own for ours, own in columns.items()}
    parts = (f"{ours}={'|'.join(own.replace('|', '||') for own in lists[ours])}" for ours in lists)
    return ",".join(part.replace(",", ",,") for part in parts)


def reading_of(
    records: Sequence[Record], given: Mapping[str, str | Sequence[str]], name: str
) -> ColumnReading:
    """Decide what the columns of all records mean.

    `given` are paths by field of ours, as `--columns` gives them, and perhaps `gold_from`.
    """
    names = list(dict.fromkeys(key for record in records for key in record))
    columns = _given_columns(given, records, name, names)
    said = {ours: f"{' | '.join(paths)} as {ours}" for ours, paths in columns.items()}
    draft = _Draft(records, name, names, columns, said, ColumnReading(columns, None, ()).used)
    draft.settle_candidates()
    if draft.is_preference and "gold" in names:
        raise ItemError(f"{name}: gold could be chosen or gold. Choose with --columns gold=gold")
    for ours in ("id", "prompt", "gold", "group"):
        if ours not in columns and not (ours == "gold" and draft.is_preference):
            draft.settle(ours)
    gold_from = None if draft.is_preference else gold_reading(records, columns, given, name)
    if "gold_from" in given and gold_from is None:
        raise UsageError(
            f"--columns gold_from: {name} has no column that names the right candidate. Name it with gold=FIELD."
        )
    if gold_from is not None and (columns["gold"][0], gold_from) != ("gold", "0"):
        said.pop("gold", None)  # to stand behind what was found in the meantime
        ties = tie_words(records, columns)
        also = f"; {' and '.join(ties)} as a tie" if ties else ""
        said["gold"] = f"{columns['gold'][0]} as gold ({READINGS[gold_from]}{also})"
    draft.settle_ids()
    draft.settle_rest()
    return ColumnReading(columns, gold_from, tuple(said.values()))


@dataclass(frozen=True)
class _Draft:
    """A reading that is being made: what is settled so far, and in which words it is reported."""

    records: Sequence[Record]
    name: str
    names: list[str]  # of all columns
    columns: dict[str, Paths]
    said: dict[str, str]  # by field
    taken: set[str]  # names of settled columns

    @property
    def is_preference(self) -> bool:
        """True if the columns say which candidate is better."""
        return self.columns.get("candidates") == CHOSEN and "gold" not in self.columns

    def settle_candidates(self) -> None:
        """Find the one way in which candidates are given."""
        families = [own for own in self.names if is_candidate_column(own) and own not in self.taken]
        if not {"a", "A"} & set(families):
            families = [own for own in families if len(own) > 1]  # x and y are no answers
        if "candidates" in self.columns:
            return
        ways = _candidate_ways(self.names, self.taken, families)
        if len(ways) != 1:
            raise ItemError(f"{self.name}: {_no_candidates(ways, self.names)}")
        (way,) = ways
        if way != tuple(families):
            self.columns["candidates"] = way
            if self.is_preference:
                self.said["candidates"] = (
                    "chosen as the right candidate and rejected as the other, in an order drawn by a hash"
                )
            elif way != ("candidates",):
                self.said["candidates"] = f"{' and '.join(way)} as candidates"
        self.taken.update(way, families)

    def settle(self, ours: str) -> None:
        """Find the column of a field by the names it usually has."""
        possible = [
            own for own in (ours, *ALIASES[ours]) if own in self.names and own not in self.taken
        ]
        if ours in possible:
            possible = [ours]
        is_gold = ours == "gold" and len(possible) > 1
        if is_gold and agree(self.records, self.columns, possible, self.name):
            self.taken.update(possible)
            possible = possible[:1]
        if len(possible) > 1:
            raise ItemError(
                f"{self.name}: {ours} could be {' or '.join(possible)}. Choose with --columns {ours}={possible[0]}"
            )
        if possible:
            self.columns[ours] = (possible[0],)
            self.taken.add(possible[0])
            if possible != [ours]:
                self.said[ours] = f"{possible[0]} as {ours}"
        elif ours == "prompt" and not self.is_preference:
            raise ItemError(
                f"{self.name}: no prompt among its fields ({', '.join(self.names)}). Name it with "
                "--columns prompt=FIELD."
            )

    def settle_ids(self) -> None:
        """Keep a column of ids only if they differ; one called `id` stays, so that a repeated id is an error."""
        path = self.columns.get("id")
        if path is None:
            self.said["id"] = "ids made from the texts"
            return
        ids = [at(record, path[0]) for record in self.records]
        filled = [str(own) for own in ids if not is_missing(own)]
        if path != ("id",) and len(set(filled)) < len(filled):
            del self.columns["id"]
            self.said.pop("id", None)
            self.said["id"] = f"ids made from the texts; {path[0]}, which is not unique, into meta"
        elif blank := len(ids) - len(filled):
            self.said["blank"] = (
                f"{plural(blank, 'id')} made from the texts, where {path[0]} is empty"
            )

    def settle_rest(self) -> None:
        """Put other columns into `meta`, unless one looks like a misspelt field of ours."""
        rest = [own for own in self.names if own not in self.taken and not _is_ours(own)]
        free = [field for field in Item.__struct_fields__ if field not in self.columns]
        for column in rest:
            close = get_close_matches(column, free, n=1, cutoff=0.74)
            if close and close[0][0] == column[0]:
                raise ItemError(
                    f"{self.name}: {column} is not a field of an item. Did you mean {close[0]!r}? Otherwise name it "
                    f"meta.{column}."
                )
        if rest:
            self.said["rest"] = f"{', '.join(rest)} into meta"


def _given_columns(
    given: Mapping[str, str | Sequence[str]], records: Sequence[Record], name: str, names: list[str]
) -> dict[str, Paths]:
    fields = (*Item.__struct_fields__, "gold_from")
    columns: dict[str, Paths] = {}
    for ours, theirs in given.items():
        if ours not in fields:
            meant = next((field for field, own in ALIASES.items() if ours in own), ours)
            raise UsageError(
                f"--columns: {ours} is not a field of an item. {did_you_mean(meant, fields)}"
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


def our_record(record: Record, reading: ColumnReading) -> dict[str, Any]:
    """Return a record with our fields, for `item_with_id`; a `BadFieldError` names their column."""
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
            reason = "has no list of at least two candidates (two columns: candidates=FIRST|SECOND)"
            raise BadFieldError(paths[0], reason)
        if len(row["candidates"]) > 2 and "values" not in row:
            row.setdefault("task", "mcq")
    names = columns.get("candidates_by", ("",))
    is_heading = len(names) > 1 and names == paths  # columns of one model each
    if authors := names if is_heading else candidates_in(record, names)[0]:
        row["candidates_by"] = authors
    if "gold" in columns and (gold := gold_of(record, columns, reading.gold_from)) is not None:
        row["gold"] = gold
    extra = {key: own for key, own in kept.items() if key not in row and not _is_ours(key)}
    if meta := {key: own for key, own in extra.items() if not is_candidate_column(key)}:
        given = row.get("meta", {})
        if not isinstance(given, Mapping):
            raise BadFieldError("meta", f"expected an object, got {type(given).__name__}")
        row["meta"] = {**given, **meta}
    row["id"] = at(record, columns["id"][0]) if "id" in columns else None
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
