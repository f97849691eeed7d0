"""The map from the fields of a foreign log to ours, as written after `--map`.

    id=pair_id,order=swapped,verdict=winner,labels=A|B,tie=C|tie,gold=label,text=raw.response

Pairs are separated by commas, lists by bars, and a dot reaches into nested objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Literal, get_args

from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

__all__ = ["FieldMap", "Meaning", "look_up", "parse_map"]

Meaning = Literal["label", "candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMap:
    """Where the parts of a judge call stand in a foreign record.

    Attributes:
        id: Field with the item's id; the same in all orders.
        verdict: Field with the answer: one of `labels`, one of `tie`; anything else is unparsed.
        verdict_is: "label": the symbol displayed beside the chosen answer (its position, where the
            symbols are positions). "candidate": the symbol of the candidate in the item's own order.
        labels: The symbols, first position (or candidate) first.
        tie: Words for a tie.
        order: Field with the order shown: a list of candidates by position, a string of symbols, or
            a flag that is true where two candidates were swapped. None: always the own order.
        gold: Field with the right answer: a symbol, a word for a tie, or an index.
        gold_is: As `verdict_is`; by default gold is by candidate.
        prompt, candidates, group, model, text, sample: Fields with the rest; candidates is one field
            with a list, or one field for each.
    """

    id: str
    verdict: str
    verdict_is: Meaning = "label"
    labels: tuple[str, ...] = ("A", "B")
    tie: tuple[str, ...] = ("tie",)
    order: str | None = None
    gold: str | None = None
    gold_is: Meaning = "candidate"
    prompt: str | None = None
    candidates: tuple[str, ...] = ()
    group: str | None = None
    model: str | None = None
    text: str | None = None
    sample: str | None = None

    def __post_init__(self) -> None:
        """Check what a record cannot show.

        Raises:
            UsageError: Naming the part.
        """
        for name, value in (("verdict_is", self.verdict_is), ("gold_is", self.gold_is)):
            if value not in get_args(Meaning):
                raise UsageError(f"--map {name}={value}: write label or candidate.")
        folded = [symbol.casefold() for symbol in self.labels]
        if len(folded) < 2 or len(set(folded)) < len(folded):
            raise UsageError(f"--map labels={'|'.join(self.labels)}: needs different symbols.")
        if set(folded) & {word.casefold() for word in self.tie}:
            raise UsageError("--map: a symbol of labels is also a word for tie.")


def parse_map(text: str) -> FieldMap:
    """The map that is written after `--map`.

    Raises:
        UsageError: Naming the part that is unknown, repeated, missing or malformed.
    """
    known = {field.name: field for field in fields(FieldMap)}
    lists = {"labels", "tie", "candidates"}
    given: dict[str, str | tuple[str, ...]] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise UsageError(f"--map {pair.strip()!r}: write field=name, such as id=pair_id.")
        if name not in known:
            raise UsageError(f"--map: unknown part {name!r}. {did_you_mean(name, known)}")
        if name in given:
            raise UsageError(f"--map: {name} is given twice.")
        given[name] = tuple(value.split("|")) if name in lists else value
    lacking = [
        name for name, field in known.items() if field.default is MISSING and name not in given
    ]
    if lacking:
        raise UsageError(f"--map needs {' and '.join(lacking)}.")
    return FieldMap(**given)  # type: ignore[arg-type]


def look_up(record: Mapping[str, object], path: str) -> object:
    """The value at a dotted path; None where any step is missing."""
    if path in record:
        return record[path]
    value: object = record
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value
