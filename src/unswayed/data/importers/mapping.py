"""The map from the fields of a foreign log to ours, as written after `--map`.

    id=pair_id,order=swapped,verdict=winner,labels=A|B,tie=C|tie,gold=label,text=raw.response

Pairs are separated by commas, lists by bars. A path such as `responses[0].text` reaches into nested values.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import MISSING, asdict, dataclass, fields
from math import isfinite
from typing import Final, Literal, get_args

from unswayed.base.errors import UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.items import TASKS
from unswayed.model.items.paths import parts_of

Meaning = Literal["label", "candidate", "name"]
Arrangement = Literal["own", "shown"]

MEANINGS: Final = frozenset(
    {"verdict_is", "labels", "tie", "gold_is", "candidates_are", "task", "values"}
)
"""The parts of a map that say what fields hold; the others name fields."""
LETTERS: Final = ("A", "B")


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
        if self.task is not None and self.task not in TASKS:
            raise UsageError(f"--map task={self.task}: write {', '.join(TASKS)}.")
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
                "--map names=first|second are the names by position; they tell the order, so give "
                "two or more and leave out order=."
            )
        folded = [symbol.casefold() for symbol in self.labels]
        if len(folded) < 2 or len(set(folded)) < len(folded):
            raise UsageError(f"--map labels={'|'.join(self.labels)}: needs different symbols.")
        if set(folded) & {word.casefold() for word in self.tie}:
            raise UsageError("--map: a symbol of labels is also a word for tie.")

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
                    f"--map values={'|'.join(self.values)}: {value!r} is not a number."
                )
        if self.values and self.labels == LETTERS:
            object.__setattr__(self, "labels", self.values)

    def absent(self, names: Container[str]) -> dict[str, str]:
        """Return the parts whose field is none of `names`, with the field; paths by their head."""
        return {
            part: value
            for part, values in asdict(self).items()
            if part not in MEANINGS
            for value in (values if isinstance(values, tuple) else (values,))
            if value is not None and value not in names and parts_of(value)[0] not in names
        }


def parse_map(text: str) -> FieldMap:
    """Return the map that is written after `--map`."""
    parts = {field.name: field for field in fields(FieldMap)}
    lists = {"labels", "tie", "candidates", "names", "scores", "values"}
    given: dict[str, str | tuple[str, ...]] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise UsageError(f"--map {pair.strip()!r}: write field=name, such as id=pair_id.")
        if name not in parts:
            raise UsageError(f"--map: unknown part {name!r}. {did_you_mean(name, parts)}")
        if name in given:
            raise UsageError(f"--map: {name} is given twice.")
        given[name] = tuple(value.split("|")) if name in lists else value
    lacking = [
        name for name, field in parts.items() if field.default is MISSING and name not in given
    ]
    if lacking:
        raise UsageError(f"--map needs {' and '.join(lacking)}.")
    return FieldMap(**given)  # type: ignore[arg-type]
