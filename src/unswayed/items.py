"""Items: what is judged. JSON Lines in, validated frozen records out."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Literal, cast, overload

import msgspec

from unswayed.errors import ItemError, UsageError

__all__ = ["BadLine", "Item", "ItemSet", "Message", "Task", "blind", "load_items", "text_of"]


class Task(StrEnum):
    """What is asked about the candidates."""

    PAIRWISE = "pairwise"
    MCQ = "mcq"
    LISTWISE = "listwise"
    RUBRIC = "rubric"


class Message(msgspec.Struct, frozen=True, gc=False):
    """One chat message."""

    role: str
    content: str


Text = str | tuple[Message, ...]
"""A plain string, or the turns of a conversation."""

Gold = int | float | str | tuple[int, ...] | dict[str, float] | None


class Item(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One question with its candidates; the fields are those of `formats.md`.

    Attributes:
        gold: Candidate index, several indices, `"tie"` or None; for `rubric` the human score, or
            `{criterion: score}`.
        values: `rubric` only: the score of each level, same length as `candidates`.
        response: `rubric` only: the text that is scored.
        permutable: False for items whose candidates refer to each other ("all of the above").
    """

    id: str
    prompt: Text
    candidates: tuple[Text, ...]
    task: Task = Task.PAIRWISE
    gold: Gold = None
    values: tuple[float, ...] | None = None
    response: str | None = None
    criteria: tuple[str, ...] | None = None
    reference: str | None = None
    group: str | None = None
    meta: dict[str, Any] = {}
    permutable: bool = True

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    def gold_candidates(self) -> tuple[int, ...]:
        """The right candidates; empty where gold is a tie, a score or unknown."""
        if isinstance(self.gold, tuple):
            return self.gold
        if isinstance(self.gold, int) and self.task is not Task.RUBRIC:
            return (self.gold,)
        return ()


def text_of(text: Text) -> str:
    """The plain text of a string or of a conversation (roles before turns)."""
    if isinstance(text, str):
        return text
    return "\n\n".join(f"{message.role}: {message.content}" for message in text)


def blind(item: Item) -> Item:
    """The item without its gold: what methods and backends are given."""
    return item if item.gold is None else msgspec.structs.replace(item, gold=None)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a valid item."""

    file: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ItemSet(Sequence[Item]):
    """Items of one task, with where they came from.

    Attributes:
        name: Name for reports and run directories.
        items: In file order; ids are unique.
        fingerprint: sha256 over the items' canonical JSON.
        bad_lines: Lines left out with `on_bad_item="skip"`.
    """

    name: str
    items: tuple[Item, ...]
    fingerprint: str
    bad_lines: tuple[BadLine, ...] = field(default=())

    @property
    def task(self) -> Task:
        """The one task of the set."""
        return self.items[0].task

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.items[index]

    @classmethod
    def of(cls, items: Iterable[Item], *, name: str, bad_lines: Iterable[BadLine] = ()) -> ItemSet:
        """Collect items, checking that ids are unique and the task is one.

        Raises:
            ItemError: If the set is empty, mixes tasks or repeats an id.
        """
        kept = tuple(items)
        bad = tuple(bad_lines)
        if not kept:
            left_out = f" ({len(bad)} bad lines left out)" if bad else ""
            raise ItemError(f"{name}: no items{left_out}.")
        tasks = Counter(item.task.value for item in kept)
        if len(tasks) > 1:
            counts = ", ".join(f"{count} {task}" for task, count in tasks.most_common())
            raise ItemError(f"{name}: mixed tasks ({counts}). Choose one with --task.")
        seen: set[str] = set()
        for item in kept:
            if item.id in seen:
                raise ItemError(f"{name}: id {item.id!r} occurs more than once.")
            seen.add(item.id)
        return cls(name=name, items=kept, fingerprint=fingerprint(kept), bad_lines=bad)


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Item)


def fingerprint(items: Iterable[Item]) -> str:
    """sha256 over the items' canonical JSON, as `sha256:<hex>`."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(_ENCODER.encode(item))
        digest.update(b"\n")
    return f"sha256:{digest.hexdigest()}"


def encode_item(item: Item) -> bytes:
    """One JSON line, without the newline."""
    return _ENCODER.encode(item)


def decode_item(line: bytes | str) -> Item:
    """Parse and validate one JSON line.

    Raises:
        ItemError: With the field and the reason.
    """
    try:
        item = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        raise _bad(where.strip("`.") or "item", reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _bad("JSON", f"not valid JSON ({error})") from None
    check_item(item)
    return item


class _FieldError(ItemError):
    field: str
    reason: str


def _bad(field_name: str, reason: str) -> _FieldError:
    error = _FieldError(f"{field_name}: {reason}")
    error.field, error.reason = field_name, reason
    return error


def check_item(item: Item) -> None:
    """Check what types alone cannot say.

    Raises:
        ItemError: With the field and the reason.
    """
    if not item.id:
        raise _bad("id", "is empty")
    n = item.n
    if n < 2:
        raise _bad("candidates", f"needs at least 2, got {n}")
    if item.task is Task.PAIRWISE and n != 2:
        raise _bad("candidates", f"pairwise needs exactly 2, got {n} (task mcq takes more)")
    if item.task is Task.RUBRIC:
        _check_rubric(item)
        return
    gold = item.gold
    if isinstance(gold, str):
        if gold != "tie":
            raise _bad("gold", f"{gold!r} is not a candidate index, a list, 'tie' or null")
    elif isinstance(gold, float | dict):
        raise _bad("gold", f"{gold!r} is not a candidate index (0 to {n - 1})")
    elif isinstance(gold, tuple):
        if not gold:
            raise _bad("gold", "is an empty list; use null for unknown")
        if len(set(gold)) != len(gold):
            raise _bad("gold", f"{list(gold)} repeats an index")
    for index in item.gold_candidates():
        if isinstance(index, bool) or not 0 <= index < n:
            raise _bad("gold", f"{index} is out of range: there are {n} candidates (0 to {n - 1})")


def _check_rubric(item: Item) -> None:
    if item.values is None or len(item.values) != item.n:
        got = "none" if item.values is None else str(len(item.values))
        raise _bad("values", f"rubric needs one score per level: {item.n} levels, values: {got}")
    if item.response is None:
        raise _bad("response", "rubric needs the text that is scored")
    if isinstance(item.gold, str | tuple):
        raise _bad("gold", "for rubric gold is a number, {criterion: number} or null")
    if isinstance(item.gold, dict):
        unknown = set(item.gold) - set(item.criteria or ())
        if unknown:
            raise _bad("gold", f"names criteria that the item does not have: {sorted(unknown)}")


def open_text(path: str | Path) -> IO[bytes]:
    """Open a `.jsonl`, `.jsonl.gz` or `-` (standard input) for reading bytes.

    Raises:
        UsageError: If the file does not exist or cannot be read.
    """
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        if str(path).endswith(".gz"):
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from None


def iter_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """The non-empty lines of a file with their numbers, from 1.

    Raises:
        UsageError: If the file cannot be read or is a damaged gzip file.
    """
    with open_text(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line
        except (gzip.BadGzipFile, EOFError, OSError) as error:
            raise UsageError(f"cannot read {path}: {error}.") from None


def load_items(
    path: str | Path,
    *,
    task: Task | str | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
) -> ItemSet:
    """Read items from JSON Lines.

    Args:
        path: `.jsonl`, `.jsonl.gz`, or `-` for standard input.
        task: Keep the items of this task only.
        on_bad_item: "stop" at the first bad line, or "skip" and count bad lines.
        limit: Keep the first `limit` items.

    Raises:
        ItemError: If a line is bad, an id is repeated, tasks are mixed, or nothing is left.
        UsageError: If the file cannot be read.
    """
    kept: list[Item] = []
    bad: list[BadLine] = []
    seen: dict[str, int] = {}
    others: Counter[str] = Counter()
    for number, line in iter_lines(path):
        try:
            item = decode_item(line)
            if item.id in seen:
                raise _bad("id", f"{item.id!r} was used on line {seen[item.id]} already")
        except _FieldError as error:
            problem = BadLine(str(path), number, error.field, error.reason)
            if on_bad_item == "stop":
                raise ItemError(
                    f"{problem}. Mend the line, or leave bad lines out with --on-bad-item skip."
                ) from None
            bad.append(problem)
            continue
        seen[item.id] = number
        if task is None or item.task == task:
            kept.append(item)
        else:
            others[item.task.value] += 1
        if limit is not None and len(kept) >= limit:
            break
    if not kept:
        found = ", ".join(f"{count} {other}" for other, count in others.most_common())
        why = f" of task {task} ({found})" if found else ""
        left_out = f" ({len(bad)} bad lines left out, the first: {bad[0]})" if bad else ""
        raise ItemError(f"{path}: no items{why}{left_out}.")
    name = (
        "stdin" if str(path) == "-" else Path(path).name.removesuffix(".gz").removesuffix(".jsonl")
    )
    return ItemSet.of(kept, name=name, bad_lines=bad)


def to_json(value: object) -> str:
    """Deterministic JSON for fingerprints and keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
