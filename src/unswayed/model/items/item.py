"""Items: validated, frozen records and their checks."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, cast

import msgspec

from unswayed.base.digests import digest
from unswayed.base.errors import field_and_reason
from unswayed.base.registry import Registry, did_you_mean
from unswayed.base.visible import one_line
from unswayed.model.items.tables import BadFieldError, fields_of


class TaskRules(Protocol):
    """Part of a task that an item reads; the whole task is `unswayed.model.tasks.TaskSpec`."""

    @property
    def check(self) -> Callable[[Item], None]:
        """Raises `BadFieldError` where the item is none of this task."""
        ...

    @property
    def gold(self) -> Callable[[Item], tuple[int, ...]]:
        """The right candidates."""
        ...

    @property
    def human(self) -> Callable[[Item], float | None] | None:
        """The human score; None if gold names candidates."""
        ...


TASKS: Registry[TaskRules] = Registry(
    "task",
    {
        "criteria": "unswayed.model.tasks.criteria:TASK",
        "listwise": "unswayed.model.tasks.listwise:TASK",
        "mcq": "unswayed.model.tasks.mcq:TASK",
        "pairwise": "unswayed.model.tasks.pairwise:TASK",
        "rubric": "unswayed.model.tasks.rubric:TASK",
    },
    like="unswayed.model.tasks.spec:TaskSpec",
)


class Task(StrEnum):
    """Names of tasks: those of the format and those that other packages register.

    A name from the entry-point group `unswayed.model.tasks` is a task too: `Task("best-worst")`.
    """

    PAIRWISE = "pairwise"
    MCQ = "mcq"
    LISTWISE = "listwise"
    RUBRIC = "rubric"
    CRITERIA = "criteria"

    @classmethod
    def _missing_(cls, value: object) -> Task | None:
        if not isinstance(value, str) or value not in TASKS:
            return None
        task = str.__new__(cls, value)
        task._name_ = task._value_ = value
        return cast("Task", cls._value2member_map_.setdefault(value, task))  # one object per name


class Message(msgspec.Struct, frozen=True, gc=False):
    """One chat message."""

    role: str
    content: str


Text = str | tuple[Message, ...]
"""A plain string, or the turns of a conversation."""

Gold = int | float | str | tuple[int, ...] | dict[str, float] | None


# gc=False: an item holds texts and what JSON holds, so a million of them need not be looked through.
class Item(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """One question with its candidates; the fields are those of `formats.md`.

    Attributes:
        gold: Candidate index, several indices, `"tie"` or None; for `rubric` the human score, or
            `{criterion: score}`.
        values: Of a scale: the score of each level, same length as `candidates`.
        response: Of a scale: the text that is scored.
        criteria: Of a scale: names of what is scored in one prompt, on the same levels.
        permutable: False for items whose candidates refer to each other ("all of the above").
        criterion: Criterion that an item of the task `criteria` is about, one of `criteria`.
        unit: What it counts once with; items of one unit are no evidence of their own.
        candidates_by: Model that wrote each candidate, for `unswayed rank`; no judge sees it.

    Raises:
        ItemError: If no task has that name, or the unit is not text. The name of a task becomes the `Task`.
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
    criterion: str | None = None
    unit: str | None = None
    candidates_by: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if type(self.task) is not Task:
            msgspec.structs.force_setattr(self, "task", _task_named(self.task))
        if self.unit is not None and not (self.unit and isinstance(self.unit, str)):
            expected = f"Expected text, got `{type(self.unit).__name__}`"
            raise BadFieldError("unit", expected if self.unit != "" else "empty; leave it out")

    @property
    def asked_as(self) -> str:
        """The id under which it is asked: one for all the criteria of an item."""
        return self.id if self.criterion is None else self.id.removesuffix(suffix(self.criterion))

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    def gold_candidates(self) -> tuple[int, ...]:
        """Return the right candidates; empty where gold is a tie or unknown, or a score of no level."""
        return TASKS.load(self.task).gold(self)

    def human_score(self) -> float | None:
        """Return the score that humans gave; None where there is none, or gold names candidates."""
        human = TASKS.load(self.task).human
        return None if human is None else human(self)


def _task_named(name: str) -> Task:
    try:
        return Task(name)
    except ValueError:
        written = [task for task in TASKS if task != Task.CRITERIA]  # of files: rubric
        reason = f"there is no task {name!r} ({did_you_mean(str(name), written).removesuffix('.')})"
        raise BadFieldError("task", reason) from None


def suffix(criterion: str) -> str:
    """Return the suffix of an item's id in the id of one of its criteria."""
    return f"#{criterion}"


def text_of(text: Text) -> str:
    """Return the plain text of a string or of a conversation (roles before turns)."""
    if isinstance(text, str):
        return text
    return "\n\n".join(f"{message.role}: {message.content}" for message in text)


def turns_of(text: Text) -> tuple[str, ...]:
    """Return the contents of the turns of a conversation; a string is one turn."""
    return (text,) if isinstance(text, str) else tuple(message.content for message in text)


def texts_of(item: Item) -> Iterator[str]:
    """Yield the texts that a judge reads and may quote: the turns of every text of the item."""
    for text in (item.prompt, *item.candidates, item.reference or "", item.response or ""):
        yield from turns_of(text)


def question_mark(item: Item) -> str:
    """Return a hash of what an item asks, whatever its id and the order of its candidates, as hex."""
    try:
        texts = (item.prompt, item.response or "", *sorted(item.candidates))
        return digest(*texts).hex()  # type: ignore[arg-type]  # quick where all of them are plain
    except TypeError:
        candidates = sorted(map(text_of, item.candidates))
        return digest(text_of(item.prompt), item.response or "", *candidates).hex()


def made_id(item: Item) -> str:
    """Return an id made of what an item asks, so that equal questions get equal verdicts from every door.

    The order of the candidates is no part of it, because the tie rule hashes it.
    """
    return f"item-{digest(question_mark(item), item.reference or '').hex()[:16]}"


PLACEHOLDER_ITEMS: Final = 20
"""Items with the same short text from which it is taken for a placeholder."""
PLACEHOLDER_LENGTH: Final = 40
"""Characters from which a text is none, however often it stands there."""


def unit_of(item: Item) -> str:
    """Return the unit that an item counts once with: its named unit, else its question, else itself.

    The criteria of an item share its unit. Recorded decisions may come without text; there the id
    is all there is to tell items apart.
    """
    if item.unit is not None:
        return item.unit
    return question_mark(item) if item.prompt and all(item.candidates) else item.asked_as


def units_of(items: Iterable[Item]) -> tuple[tuple[str, ...], str | None]:
    """Return the unit of each item, itself where its text is a placeholder; a warning where some are."""
    units: list[str] = []
    short: dict[str, tuple[str, list[tuple[int, str]]]] = {}
    for place, item in enumerate(items):
        units.append(mark := unit_of(item))
        texts = (item.prompt, *item.candidates, item.response or "")
        parts = [part for text in texts for part in turns_of(text)]
        if item.unit is None and sum(map(len, parts)) < PLACEHOLDER_LENGTH:
            own = short.setdefault(mark, (one_line(" ".join(parts)), []))
            own[1].append((place, item.asked_as))
    repeated = [
        own for own in short.values() if len({name for _, name in own[1]}) >= PLACEHOLDER_ITEMS
    ]
    for place, name in (pair for _, pairs in repeated for pair in pairs):
        units[place] = name
    if not repeated:
        return tuple(units), None
    return tuple(units), (
        f"{sum(len(pairs) for _, pairs in repeated)} items have "
        f'{"the same text" if len(repeated) == 1 else "texts such as"} "{repeated[0][0]}": taken for a '
        'placeholder, so every item counts by itself. Give items a "unit" to say otherwise.'
    )


def blind(item: Item) -> Item:
    """Return the item without its gold: what methods and backends are given."""
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


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Item)

MOST_NESTED: Final = 64
"""Levels of lists and objects in `meta`; far below where writing it again fails."""
TOO_DEEP: Final = f"nested too deeply; the most is {MOST_NESTED} levels"


def fingerprint(items: Iterable[Item]) -> str:
    """sha256 over the items' canonical JSON, as `sha256:<hex>`."""
    whole = hashlib.sha256()
    for item in items:
        whole.update(_ENCODER.encode(item))
        whole.update(b"\n")
    return f"sha256:{whole.hexdigest()}"


def encode_item(item: Item) -> bytes:
    """One JSON line, without the newline."""
    return _ENCODER.encode(item)


def decode_item(line: bytes | str | msgspec.Raw) -> Item:
    """Parse and validate one JSON object."""
    try:
        item = _DECODER.decode(line)
        if item.values is not None and item.task is Task.PAIRWISE:  # unless said, a rubric
            return _from_object(line)
        check_item(item)
        if item.group is not None:  # one text for all items of a group
            msgspec.structs.force_setattr(item, "group", sys.intern(item.group))
    except (msgspec.ValidationError, BadFieldError):
        return _from_object(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(error) from None
    return item


def _from_object(line: bytes | str | msgspec.Raw) -> Item:
    """Read an item that the fast path rejected: one in columns, or raise the reason."""
    try:
        return item_of(msgspec.json.decode(line, type=dict[str, Any]))
    except msgspec.ValidationError as error:
        raise BadFieldError("item", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(error) from None


def _not_json(error: Exception) -> BadFieldError:
    deep = isinstance(error, RecursionError)
    return BadFieldError("JSON", TOO_DEEP if deep else f"not valid JSON ({error})")


def item_of(record: Mapping[str, object]) -> Item:
    """Return the item that a record describes: fields by name, or candidates in columns (`tables`)."""
    given = fields_of(record)
    for name in given:
        if name not in Item.__struct_fields__:
            raise _unknown_field(str(name))
    try:
        item = msgspec.convert(given, Item)
    except msgspec.ValidationError as error:
        place, reason = field_and_reason(error)
        if place == "task" and isinstance(task := given.get("task"), str):
            _task_named(task)
        raise BadFieldError(place or "item", reason) from None
    check_item(item)
    try:
        encode_item(item)
    except (TypeError, ValueError, OverflowError) as error:  # a lone surrogate, an object in meta
        raise BadFieldError("item", f"cannot be written as JSON ({error})") from None
    return item


def _unknown_field(name: str) -> BadFieldError:
    close = did_you_mean(name, Item.__struct_fields__)
    hint = f"{close} " if close.startswith("Did") else ""
    return BadFieldError(
        name,
        f"is not a field of an item. {hint}Put your own fields into meta (in a table: meta.{name})",
    )


def check_item(item: Item) -> None:
    """Check what types alone cannot say."""
    if not item.id:
        raise BadFieldError("id", "is empty")
    if item.meta and _is_deeper(item.meta, MOST_NESTED):
        raise BadFieldError("meta", TOO_DEEP)
    if item.n < 2:
        raise BadFieldError("candidates", f"needs at least 2, got {item.n}")
    if item.criteria is not None and item.task not in (Task.RUBRIC, Task.CRITERIA):
        raise BadFieldError("criteria", f"are for task rubric; this item's is {item.task.value}")
    TASKS.load(item.task).check(item)
    if item.values is not None and len(item.values) != item.n:
        raise BadFieldError("values", f"{len(item.values)} for {item.n} candidates")
    authors = item.candidates_by
    if authors is not None and (
        len(authors) != item.n or any(name != name.strip() or not name for name in authors)
    ):
        raise BadFieldError("candidates_by", f"{list(authors)} are not names of {item.n} models")


def _is_deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in value)


def to_json(value: object) -> str:
    """Deterministic JSON for fingerprints and keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
