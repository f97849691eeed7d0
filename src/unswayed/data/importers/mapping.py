"""The map from the fields of a foreign log to ours, as written after `--map`.

    id=pair_id,order=swapped,verdict=winner,labels=A|B,tie=C|tie,gold=label,text=raw.response

Pairs are separated by commas (`,,` is a comma itself), lists by bars. A path such as `responses[0].text` reaches into
nested values; `FIELD~REGEX` is the first group of what matches in its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Final, Literal, get_args

from unswayed.base.errors import UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.items import TASKS
from unswayed.model.items.paths import at, divided

Meaning = Literal["label", "candidate", "name"]
Arrangement = Literal["own", "shown"]

MEANINGS: Final = frozenset(
    {"verdict_is", "labels", "tie", "gold_is", "candidates_are", "task", "values"}
)
"""The parts of a map that say what fields hold; the others name fields."""
LETTERS: Final = ("A", "B")
PIPE: Final = " If the map had a |, quote the map: a shell reads an unquoted | as a pipe."


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMap:
    """Fields of a foreign record that hold the parts of a judge call."""

    id: str  # field with the item's id; the same in all orders
    # Field with the answer: one of `labels` (or a name), one of `tie`; anything else is unparsed.
    # None: what `scores` and `ranking` put first, or else what `text` says, read as the task's
    # replies are.
    verdict: str | None = None
    # "label": the symbol displayed beside the chosen answer (its position, where the symbols are
    # positions). "candidate": the symbol of the candidate in the item's own order. "name": one of
    # `names`.
    verdict_is: Meaning = "label"
    # The symbols, first position (or candidate) first. By default A and B; where there are `values`
    # these, each of which is printed beside its level wherever that stands, so that a verdict is a
    # value.
    labels: tuple[str, ...] = LETTERS
    tie: tuple[str, ...] = ("tie",)  # words for a tie
    # Field with the order shown: a list of candidates by position, a string of symbols, or a flag
    # that is true where two candidates were swapped. None: always the own order.
    order: str | None = None
    # field with the answer to the same two candidates exchanged, where a record has both calls
    swapped: str | None = None
    # field with the right answer: a symbol, a name, a word for a tie, or an index
    gold: str | None = None
    gold_is: Meaning = "candidate"  # as `verdict_is`; by default gold is by candidate
    prompt: str | None = None  # field with the question
    candidates: tuple[str, ...] = ()  # one field with a list, or one field for each text
    # "own": in the item's own order, whatever was shown. "shown": first position first; without
    # `order` the own order is that of the texts.
    candidates_are: Arrangement = "own"
    # fields with the names of what was shown (models), first position first; the own order is the
    # alphabet's, and an item is a pair of names under an id
    names: tuple[str, ...] = ()
    group: str | None = None  # field with the group
    unit: str | None = None  # field with the unit of an item, such as the id of its question
    model: str | None = None  # field with the judge's name
    text: str | None = None  # field with the judge's answer as written
    finish_reason: str | None = None  # field with the finish reason: stop, length, refusal,
    sample: str | None = None  # field with the number of the repetition, from 0
    # The items' task. None: `rubric` with `values`, `listwise` with `scores` or `ranking`, else
    # `pairwise` or `mcq` by the number of candidates.
    task: str | None = None
    # one field with a list (or an object by symbol), or one field for each score; in the order that
    # `verdict_is` says
    scores: tuple[str, ...] = ()
    # field with the symbols, best first: a list, or a string such as BCA
    ranking: str | None = None
    values: tuple[str, ...] = ()  # the values of the levels, first candidate first
    response: str | None = None  # field with the text that is scored

    def __post_init__(self) -> None:
        """Check what a record cannot show."""
        if not (self.verdict or self.scores or self.ranking or self.text):
            raise UsageError(
                "--map needs verdict, scores, ranking or text. Name the field of one of them."
            )
        if self.swapped and (self.scores or self.ranking):
            raise UsageError(
                f"--map swapped={self.swapped} needs verdict= or text=, without scores= and ranking=, which hold one call. Remove these."
            )
        if self.task is not None and self.task not in TASKS:
            raise UsageError(f"--map task={self.task}: write {', '.join(TASKS)}.")
        for part, path in self.paths():
            _, tilde, pattern = path.partition("~")
            with suppress(re.error):
                if not tilde or re.compile(pattern).groups:
                    continue
            raise UsageError(
                f"--map {part}={path}: {pattern!r} is not a regular expression with a group. "
                "Write FIELD~REGEX with parentheses, such as custom_id~^(.+)-AB$."
            )
        self._take_values()
        for name, value in (("verdict_is", self.verdict_is), ("gold_is", self.gold_is)):
            if value not in get_args(Meaning):
                raise UsageError(f"--map {name}={value}: write label, candidate or name.")
            if value == "name" and not self.names:
                raise UsageError(
                    f"--map {name}=name needs names=, the fields with the names shown."
                )
        if self.candidates_are not in get_args(Arrangement):
            raise UsageError(f"--map candidates_are={self.candidates_are}: write own or shown.")
        if self.names and (self.order or len(self.names) < 2):
            raise UsageError(
                "--map names= lists the names by position, which give the order. Name two or more fields, and leave "
                "out order=."
            )
        folded = [symbol.casefold() for symbol in self.labels]
        if len(folded) < 2 or len(set(folded)) < len(folded):
            raise UsageError(f"--map labels={'|'.join(self.labels)}: needs different symbols.")
        if set(folded) & {word.casefold() for word in self.tie}:
            raise UsageError("--map: a symbol of labels= is also in tie=. Change one of them.")

    @property
    def label_is_value(self) -> bool:
        """True if the symbol beside a level is its value, and moves with it."""
        return bool(self.values) and self.labels == self.values

    def _take_values(self) -> None:
        """Check the values of levels; they are the symbols where no others are given."""
        if self.task == "rubric" and not self.values:
            raise UsageError("--map task=rubric needs values=, the scores of the levels: 1|2|3.")
        for value in self.values:
            try:
                is_number = isfinite(float(value))
            except ValueError:
                is_number = False
            if not is_number:
                raise UsageError(
                    f"--map values={'|'.join(self.values)}: {value!r} is not a number. Correct it."
                )
        if self.values and self.labels == LETTERS:
            object.__setattr__(self, "labels", self.values)

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the parts that name fields, with each path."""
        for part in fields(self):
            given = getattr(self, part.name)
            if part.name not in MEANINGS and given is not None:
                for path in given if isinstance(given, tuple) else (given,):
                    yield part.name, path

    @property
    def answer(self) -> str:
        """Part with the answer."""
        parts = ("verdict", "scores", "ranking", "text")
        return next(part for part in parts if getattr(self, part))

    def pair(self, part: str) -> str:
        """Return a part with its fields as written in the map; anything else as it is."""
        given = getattr(self, part, None) if part in {own.name for own in fields(self)} else None
        if not given:
            return part
        if part == self.answer and given == self.swapped:  # the map of the second call
            part = "swapped"
        return f"{part}={'|'.join(given) if isinstance(given, tuple) else given}"

    def remedy(self, kind: str) -> str:
        """Return what to change if no record gives a kind of value."""
        part = self.answer if kind == "choice" else kind
        if part in ("scores", "ranking"):
            return f"Fix labels= or {part}= in --map."
        words = f"{'|'.join(self.labels)} or {'|'.join(self.tie)}"
        return f"None is one of {words}. Fix labels= or tie= in --map."


def value_at(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path; of `FIELD~REGEX` the first group of the match, None without one."""
    field, tilde, pattern = path.partition("~")
    if not tilde or path in record:
        return at(record, path)
    value = at(record, field)
    match = None if value is None else re.search(pattern, str(value))
    return match and match[1]


def parse_map(text: str) -> FieldMap:
    """Return the map that is written after `--map`."""
    parts = [part.name for part in fields(FieldMap)]
    lists = {"labels", "tie", "candidates", "names", "scores", "values"}
    given: dict[str, str | tuple[str, ...]] = {}
    hint = ""
    for pair in divided(text, ","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise UsageError(f"--map {pair.strip()!r}: write field=name, such as id=pair_id.")
        if name not in parts:
            raise UsageError(f"--map: unknown part {name!r}. {did_you_mean(name, parts)}")
        if name in given:
            raise UsageError(f"--map: {name} is given twice. Give it once.")
        given[name] = tuple(divided(value, "|")) if name in lists else value
        hint = PIPE if name in lists and "|" not in value else ""
    if "id" not in given:
        raise UsageError(f"--map needs id.{hint}")
    if "swapped" in given and given["swapped"] in (given.get("verdict"), given.get("text")):
        raise UsageError(
            f"--map swapped={given['swapped']} names the first call. Name the field of the other call."
        )
    try:
        return FieldMap(**given)  # type: ignore[arg-type]
    except UsageError as error:
        raise UsageError(f"{error}{hint}") from None
