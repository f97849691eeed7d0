"""Read foreign files, convert them to items and decisions, check and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from unswayed.base.counts import plural
from unswayed.base.errors import ItemError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.data.importers.decisions_file import question_key
from unswayed.data.importers.jsonl import read_mapped
from unswayed.data.importers.mapping import FieldMap, value_at
from unswayed.data.importers.protocol import Entry, Importer, ReadRecord, Record, Source
from unswayed.data.importers.reading import peeked, records_of, whole
from unswayed.data.importers.table import IMPORTERS
from unswayed.data.importers.unread import UnreadValues
from unswayed.model.decisions import Decision, check_decision
from unswayed.model.items import BadFieldError, BadLine, Item, check_item
from unswayed.model.items.paths import parts_of
from unswayed.model.parsing import ending

Convert = Callable[[Record, Source], ReadRecord]

LEFT_OUT: Final = "left out: "
OWN_FIELDS: Final = frozenset(("item_id", "order", "labels"))
FIELDS_SHOWN: Final = 12
OWN_LOG: Final = (
    "for your own log, map its fields: unswayed import jsonl FILE "
    "--map id=...,verdict=...,order=... (docs/your-data.md)."
)


@dataclass(frozen=True, slots=True)
class Imported:
    """Content of foreign files."""

    items: tuple[Item, ...]  # in order of appearance; empty where the format only names them
    # in order of appearance; empty where the records are items alone
    decisions: tuple[Decision, ...]
    # records, items, decisions, unparsed, ties, bad records, `left out: <reason>`, and what else
    # must be known about the decisions
    counts: Mapping[str, int]
    bad_records: tuple[BadLine, ...] = ()  # records left out with `on_bad_item="skip"`
    warning: str = ""  # that many answers are unparsed


@dataclass(slots=True)
class _Collected:
    """Growing state of one import."""

    items: dict[str, tuple[Item, Source]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    asked: dict[object, Source] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)
    unread: UnreadValues = field(default_factory=UnreadValues)
    records: int = 0
    bad: list[BadLine] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)  # parts of a map and their paths

    def see(self, record: Record) -> None:
        """Keep the names of a record's fields, and the paths that it lacks too."""
        self.names.update(dict.fromkeys(record))
        self.missing = [pair for pair in self.missing if value_at(record, pair[1]) is None]

    def add(self, judged: ReadRecord, source: Source, record: Record, answer: str) -> None:
        """Keep one record's item and decisions, all or nothing."""
        if judged.item is not None:
            self._check(judged.item)
        for decision in judged.decisions:
            try:
                check_decision(decision)
            except ItemError as error:
                raise BadFieldError("decision", str(error)) from None
        keys = [question_key(decision) for decision in judged.decisions]
        for decision, key in zip(judged.decisions, keys, strict=True):
            if key in self.asked:
                raise BadFieldError(
                    "item",
                    f"{decision.item_id!r} in order {list(decision.order)} was answered at "
                    f"{self.asked[key]} already (same model and sample). In --map, order= and sample= tell "
                    "calls apart",
                )
        if judged.item is not None:
            self.items.setdefault(judged.item.id, (judged.item, source))
        self.asked.update((key, source) for key in keys)
        self.decisions.extend(judged.decisions)
        if judged.left_out:
            self.remarks[f"{LEFT_OUT}{judged.left_out}"] += 1
        self.remarks.update(judged.remarks)
        self.unread.add(judged, record, answer)

    def _check(self, item: Item) -> None:
        check_item(item)
        earlier, place = self.items.get(item.id, (item, None))
        for name, before, now in (
            ("task", earlier.task, item.task),
            ("prompt", earlier.prompt, item.prompt),
            ("candidates", earlier.candidates, item.candidates),
            ("gold", earlier.gold, item.gold),
            ("group", earlier.group, item.group),
            ("unit", earlier.unit, item.unit),
        ):
            if before != now:
                raise BadFieldError(name, f"of item {item.id!r} is another one at {place}")


def import_files(
    kind: str,
    files: Sequence[str | Path],
    *,
    on_bad_item: Literal["stop", "skip"] = "stop",
    fields: FieldMap | None = None,
) -> Imported:
    """Read recorded outputs of another tool.

    Several files are joined: the same item may occur in all of them (other judges, other orders),
    the same question answered twice by one model is refused. Formats that keep questions and
    answers apart need all their files.

    Args:
        kind: A registered importer, or "auto" to tell it from each file's first record.
        files: JSON Lines, a JSON array or object, `.csv` or `.tsv`, plain or `.gz`; `-` for standard
            input; what the format has of its own (`.eval`).
        on_bad_item: "stop" at the first bad record, or "skip" and count them.
        fields: For kind "jsonl": the map of a foreign log's fields.

    Raises:
        ItemError: If a record is bad, no decision is left, or no value of a field could be read.
        UnknownNameError: If there is no such importer.
        UsageError: If a file cannot be read or its format is unknown, or the map does not fit.
    """
    if fields is not None and kind not in ("jsonl", "auto"):
        raise UsageError(f"--map is for jsonl; {kind} knows its own fields. Leave --map out.")
    if not files:
        raise UsageError("no files to import. Name at least one.")
    collected = _Collected(missing=[] if fields is None else list(fields.paths()))
    for convert, answer, entries in _readings(kind, [str(file) for file in files], fields):
        for source, record in entries:
            collected.records += 1
            try:
                if isinstance(record, BadFieldError):
                    raise record
                collected.see(record)
                collected.add(convert(record, source), source, record, answer)
            except BadFieldError as error:
                name = error.field if fields is None else fields.pair(error.field)
                problem = BadLine(source.file, source.number, name, error.reason)
                if on_bad_item == "stop":
                    raise ItemError(
                        f"{problem}. Fix the record, or skip invalid ones with --on-bad-item skip."
                    ) from None
                collected.bad.append(problem)
    return _imported(collected, files, fields)


def _readings(
    kind: str, files: Sequence[str], fields: FieldMap | None
) -> Iterator[tuple[Convert, str, Iterator[Entry]]]:
    """Yield the entries of every file with their reader and answer field; files that belong together last, as one."""
    joined: dict[str, list[tuple[str, Iterator[Entry]]]] = {}
    for file in files:
        if fields is not None:
            answer = fields.pair(fields.answer)
            yield partial(read_mapped, fields), answer, map(whole, records_of(file))
            continue
        name, entries = _opened(kind, file)
        importer = IMPORTERS.load(name)
        entries = _unfolded(importer, entries)
        if importer.join is not None:
            joined.setdefault(name, []).append((file, entries))
        else:
            yield importer.convert, importer.answer, entries
    for name, parts in joined.items():
        importer = IMPORTERS.load(name)
        assert importer.join is not None
        yield importer.convert, importer.answer, importer.join(parts)


def _opened(kind: str, file: str) -> tuple[str, Iterator[Entry]]:
    if kind == "auto":
        kind = _kind_of_name(file) or kind
    opened = None if kind == "auto" else IMPORTERS.load(kind).opened
    if opened is not None and _kind_of_name(file) == kind:
        return kind, opened(file)
    entries = records_of(file)
    if kind not in ("auto", "jsonl"):
        return kind, entries
    record, entries = peeked(entries)
    if kind == "jsonl" and record is not None and not record.keys() & OWN_FIELDS:
        raise UsageError(
            f"{file}: not a decisions file of unswayed: the fields are "
            f"{_names(record)}. {OWN_LOG[0].upper()}{OWN_LOG[1:]}"
        )
    if kind == "jsonl" or record is None:
        return "jsonl", entries
    return _kind_of(record, file), entries


def _kind_of_name(file: str) -> str | None:
    for name in IMPORTERS:
        suffix = IMPORTERS.load(name).suffix
        if suffix is not None and file.lower().endswith(suffix):
            return name
    return None


def _unfolded(importer: Importer[Any], entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the records of entries, each of which may hold many."""
    for entry in entries:
        source, record = entry
        if importer.unfold is None or isinstance(record, BadFieldError):
            yield whole(entry)
            continue
        try:
            yield from map(whole, importer.unfold(record, source))
        except BadFieldError as error:
            yield source, error


def _imported(
    collected: _Collected, files: Sequence[str | Path], fields: FieldMap | None
) -> Imported:
    decisions, bad = collected.decisions, collected.bad
    unread = [decision for decision in decisions if decision.choice is None]
    ended = [d.finish_reason or "" for d in unread if not ending(d.finish_reason).is_read]
    collected.remarks.update(f"unparsed for finish reason {word}" for word in ended)
    reasons = [f"{n:,} {why.removeprefix(LEFT_OUT)}" for why, n in collected.remarks.items()]
    reasons += [f"{len(bad):,} bad records left out, the first: {bad[0]}"] if bad else []
    counted = "; ".join(reasons) or plural(collected.records, "record")
    names = ", ".join(str(file) for file in files)
    left_out = any(why.startswith(LEFT_OUT) for why in collected.remarks)
    if not decisions and (left_out or not collected.items):
        raise ItemError(
            f"{names}: no decisions ({counted}). Name files with recorded verdicts, or another format."
        )
    for part, path in collected.missing:
        name = path.partition("~")[0]
        if not {name, parts_of(name)[0]} & collected.names.keys():
            raise ItemError(
                f"{names}: no record has the field {name!r}, which --map gives as {part}. "
                f"{did_you_mean(name, collected.names)}"
            )
        if path not in collected.names:  # a column without values is no mistake
            raise ItemError(
                f"{names}: no record has a value at {path!r}, which --map gives as {part}. Correct this path."
            )
    items = tuple(item for item, _ in collected.items.values())
    kind, unread_values, first = collected.unread.problem(items, decisions)
    if kind:
        remedy = f"Name another format; or, {OWN_LOG}"
        if kind == "choice" and len(ended) == len(unread):
            remedy = "Use the finish reasons that docs/reference/formats.md#finish-reasons lists."
        elif fields is not None:
            remedy = fields.remedy(kind)
        elif kind != "choice":
            remedy = "Correct or remove this field."
        raise ItemError(
            f"{names}: none of the {unread_values} could be read ({counted}).{first} {remedy}"
        )
    counts = {
        "records": collected.records,
        "items": len(collected.items),
        "decisions": len(decisions),
        "unparsed": len(unread),
        "ties": sum(decision.choice == "tie" for decision in decisions),
        "bad records": len(bad),
        **collected.remarks,
    }
    for (kind, name), values in collected.unread.items():
        if kind != "choice":
            counts[f"unread: {name}"] = values.total()
    warning = collected.unread.warning(decisions)
    return Imported(items, tuple(decisions), counts, tuple(bad), warning)


def _kind_of(record: Record, file: str) -> str:
    for name in IMPORTERS:
        if IMPORTERS.load(name).detects(record):
            return name
    raise UsageError(
        f"{file}: unknown format; the fields are {_names(record)}. "
        f"Name one of {', '.join(IMPORTERS)}; or, {OWN_LOG} Items without a judge's answers are not imported: audit "
        f"them first (unswayed audit {file})."
    )


def _names(record: Record) -> str:
    more = f" and {len(record) - FIELDS_SHOWN} more" if len(record) > FIELDS_SHOWN else ""
    return f"{', '.join(sorted(record)[:FIELDS_SHOWN])}{more}"
