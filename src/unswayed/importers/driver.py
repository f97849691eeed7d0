"""From foreign files to items and decisions: read, convert, check, count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from unswayed.decisions import Decision
from unswayed.errors import ItemError, UsageError
from unswayed.importers.decisions_file import question_key
from unswayed.importers.jsonl import MappedLog
from unswayed.importers.mapping import FieldMap
from unswayed.importers.protocol import BadRecordError, Importer, Judged, Record, Source
from unswayed.importers.table import IMPORTERS
from unswayed.items import BadLine, Item, check_item, iter_lines

__all__ = ["Imported", "detect", "import_files"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What foreign files hold.

    Attributes:
        items: In order of appearance; empty where the format only names them.
        decisions: In order of appearance.
        counts: records, items, decisions, unparsed, ties, bad_records, and `left_out: <reason>`.
        bad_records: Records left out with `on_bad_item="skip"`.
    """

    items: tuple[Item, ...]
    decisions: tuple[Decision, ...]
    counts: Mapping[str, int]
    bad_records: tuple[BadLine, ...] = ()


@dataclass(slots=True)
class _Collected:
    """Growing state of one import."""

    items: dict[str, tuple[Item, Source]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    asked: dict[object, Source] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    records: int = 0
    bad: list[BadLine] = field(default_factory=list)

    def add(self, judged: Judged, source: Source) -> None:
        """Keep one record's item and decisions, all or nothing."""
        item = judged.item
        if item is not None:
            _check(item)
            known = self.items.get(item.id)
            differing = None if known is None else _differing(known[0], item)
            if known is not None and differing is not None:
                raise BadRecordError(differing, f"of item {item.id!r} is another one at {known[1]}")
        keys = [question_key(decision) for decision in judged.decisions]
        for decision, key in zip(judged.decisions, keys, strict=True):
            if key in self.asked:
                raise BadRecordError(
                    "item",
                    f"{decision.item_id!r} in order {list(decision.order)} was answered at "
                    f"{self.asked[key]} already (same model and sample)",
                )
        if item is not None:
            self.items.setdefault(item.id, (item, source))
        self.asked.update((key, source) for key in keys)
        self.decisions.extend(judged.decisions)
        if judged.left_out:
            self.left_out[judged.left_out] += 1


def import_files(
    kind: str,
    files: Sequence[str | Path],
    *,
    on_bad_item: Literal["stop", "skip"] = "stop",
    fields: FieldMap | None = None,
) -> Imported:
    """Read recorded outputs of another tool.

    Several files are joined: the same item may occur in all of them (other judges, other orders),
    the same question answered twice by one model is refused.

    Args:
        kind: A registered importer, or "auto" to tell it from each file's first record.
        files: `.jsonl` or a JSON array, plain or `.gz`; `-` for standard input.
        on_bad_item: "stop" at the first bad record, or "skip" and count them.
        fields: For kind "jsonl": the map of a foreign log's fields.

    Raises:
        ItemError: If a record is bad, or nothing is left.
        UnknownNameError: If there is no such importer.
        UsageError: If a file cannot be read or its format cannot be told, or the map does not fit.
    """
    if fields is not None and kind not in ("jsonl", "auto"):
        raise UsageError(f"--map is for jsonl; {kind} knows its own fields.")
    if not files:
        raise UsageError("no files to import.")
    collected = _Collected()
    for file in files:
        _read_file(kind, str(file), collected, on_bad_item=on_bad_item, fields=fields)
    return _imported(collected, files, fields)


def _read_file(
    kind: str,
    file: str,
    collected: _Collected,
    *,
    on_bad_item: Literal["stop", "skip"],
    fields: FieldMap | None,
) -> None:
    importer: Importer | None = None
    if fields is not None:
        importer = MappedLog(fields)
    elif kind != "auto":
        importer = IMPORTERS.load(kind)()
    for source, record in _records(file):
        collected.records += 1
        try:
            if isinstance(record, BadRecordError):
                raise record
            if importer is None:
                importer = IMPORTERS.load(_kind_of(record, file))()
            collected.add(importer.convert(record, source), source)
        except BadRecordError as error:
            problem = BadLine(source.file, source.number, error.field, error.reason)
            if on_bad_item == "stop":
                raise ItemError(
                    f"{problem}. Mend the record, or leave bad ones out with --on-bad-item skip."
                ) from None
            collected.bad.append(problem)


def _imported(
    collected: _Collected, files: Sequence[str | Path], fields: FieldMap | None
) -> Imported:
    decisions = collected.decisions
    names = ", ".join(str(file) for file in files)
    if not decisions:
        why = f" ({len(collected.bad)} bad records left out)" if collected.bad else ""
        raise ItemError(f"{names}: no decisions{why}.")
    unparsed = sum(decision.choice is None for decision in decisions)
    if fields is not None and unparsed == len(decisions):
        raise ItemError(
            f"{names}: no verdict could be read from the field {fields.verdict!r}: none is one of "
            f"{'|'.join(fields.labels)} or {'|'.join(fields.tie)}. Mend labels= or tie= of --map."
        )
    counts = {
        "records": collected.records,
        "items": len(collected.items),
        "decisions": len(decisions),
        "unparsed": unparsed,
        "ties": sum(decision.choice == "tie" for decision in decisions),
        "bad_records": len(collected.bad),
        **{f"left_out: {reason}": count for reason, count in collected.left_out.items()},
    }
    items = tuple(item for item, _ in collected.items.values())
    return Imported(items, tuple(decisions), counts, tuple(collected.bad))


def detect(file: str | Path) -> str:
    """The importer that a file's first record is for.

    Raises:
        UsageError: If none claims it, or the file cannot be read or is empty.
    """
    for source, record in _records(str(file)):
        if isinstance(record, BadRecordError):
            raise UsageError(f"{source}: {record}.")
        return _kind_of(record, str(file))
    raise UsageError(f"{file}: no records.")


def _kind_of(record: Record, file: str) -> str:
    for name in IMPORTERS:
        if IMPORTERS.load(name)().detects(record):
            return name
    raise UsageError(
        f"{file}: the format cannot be told from the fields {', '.join(sorted(record))}. "
        f"Name one of {', '.join(IMPORTERS)}, or describe the fields: jsonl --map id=...,verdict=..."
    )


def _records(file: str) -> Iterator[tuple[Source, Record | BadRecordError]]:
    """The JSON objects of JSON Lines or of one JSON array, bad ones as the error they are."""
    lines = iter_lines(file)
    for number, line in lines:
        if number == 1 and line.lstrip().startswith(b"["):
            rest = b"".join(more for _, more in lines)
            yield from _array(file, line + rest)
            return
        yield Source(file, number), _object(line)


def _array(file: str, text: bytes) -> Iterator[tuple[Source, Record | BadRecordError]]:
    try:
        entries = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        yield Source(file, 1), BadRecordError("JSON", f"not a valid JSON array ({error})")
        return
    for number, entry in enumerate(entries, start=1):
        yield Source(file, number), _as_object(entry)


def _object(line: bytes) -> Record | BadRecordError:
    try:
        return _as_object(msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadRecordError("JSON", f"not valid JSON ({error})")


def _as_object(value: object) -> Record | BadRecordError:
    if isinstance(value, dict):
        return value
    return BadRecordError("JSON", f"expected an object, got {type(value).__name__}")


def _check(item: Item) -> None:
    try:
        check_item(item)
    except ItemError as error:
        field_name, _, reason = str(error).partition(": ")
        raise BadRecordError(field_name, reason) from None


def _differing(first: Item, second: Item) -> str | None:
    """The field in which two records about one item contradict each other."""
    parts = ("task", "prompt", "candidates", "gold")
    return next((part for part in parts if getattr(first, part) != getattr(second, part)), None)
