"""JSON Lines: our own decisions file, or any log whose fields are named by a map."""

from __future__ import annotations

from dataclasses import dataclass

from unswayed.decisions import Choice, Decision, check_decision
from unswayed.errors import ItemError
from unswayed.importers.mapping import FieldMap, look_up
from unswayed.importers.protocol import BadFieldError, Judged, Record, Source, read_as
from unswayed.items import Item, Task
from unswayed.permutations import Order

__all__ = ["MappedLog", "OwnDecisions"]


@dataclass(frozen=True, slots=True)
class OwnDecisions:
    """Our own decisions.jsonl; with --map any log of one judge call per line."""

    def detects(self, record: Record) -> bool:
        """The fields that every decision of ours has."""
        return {"item_id", "order", "labels"} <= record.keys()

    def convert(self, record: Record, source: Source) -> Judged:
        """One decision, checked."""
        decision = read_as(Decision, record)
        try:
            check_decision(decision)
        except ItemError as error:
            field, _, reason = str(error).removeprefix(f"{decision.item_id}: ").partition(": ")
            raise BadFieldError(field, f"{reason} (item {decision.item_id})") from None
        return Judged(None, (decision,))


@dataclass(frozen=True, slots=True)
class MappedLog:
    """A foreign log with one judge call per record, its fields named by a map.

    Attributes:
        fields: Where things stand.
    """

    fields: FieldMap

    def detects(self, record: Record) -> bool:
        """A map is given by hand; nothing is detected."""
        return False

    def convert(self, record: Record, source: Source) -> Judged:
        """One call and, as far as the map names its parts, its item."""
        fields = self.fields
        name = look_up(record, fields.id)
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            raise BadFieldError(fields.id, f"{name!r} is not an id")
        candidates = self._candidates(record)
        order = self._order(record, len(candidates) or len(fields.labels))
        symbols = fields.labels[: len(order)]
        if len(symbols) < len(order):
            raise BadFieldError("labels", f"{len(fields.labels)} given for {len(order)} candidates")
        gold = self._gold(record, order)
        text, prompt, group, model = (
            self._text(record, path)
            for path in (fields.text, fields.prompt, fields.group, fields.model)
        )
        item = Item(
            id=str(name),
            prompt=prompt or "",
            candidates=candidates or ("",) * len(order),
            task=Task.PAIRWISE if len(order) == 2 else Task.MCQ,
            gold=gold,
            group=group,
        )
        decision = Decision(
            item_id=item.id,
            order=order,
            labels=symbols,
            label_set=symbols,
            sample=self._sample(record),
            choice=self._read(record, fields.verdict, order, fields.verdict_is),
            text=text,
            model=model,
        )
        return Judged(item, (decision,))

    def _candidates(self, record: Record) -> tuple[str, ...]:
        paths = self.fields.candidates
        if not paths:
            return ()
        found = [look_up(record, path) for path in paths]
        if len(found) == 1 and isinstance(found[0], list):
            found = found[0]
        if len(found) < 2 or not all(isinstance(candidate, str) for candidate in found):
            raise BadFieldError("|".join(paths), "needs at least two texts")
        return tuple(str(candidate) for candidate in found)

    def _order(self, record: Record, n: int) -> Order:
        """`order[p]` from a list of candidates, a string of symbols, or a flag "swapped"."""
        path = self.fields.order
        own = tuple(range(n))
        if path is None:
            return own
        value = look_up(record, path)
        if isinstance(value, list) and all(type(candidate) is int for candidate in value):
            order = tuple(value)
        elif isinstance(value, str) and sorted(value) == sorted(self.fields.labels[: len(value)]):
            order = tuple(self.fields.labels.index(symbol) for symbol in value)
        elif (flag := _flag(value)) is not None and n == 2:
            order = (1, 0) if flag else (0, 1)
        else:
            raise BadFieldError(
                path,
                f"{value!r} is not an order: give a list of candidates, a string such as BCDA, or "
                "(two candidates) true where they were swapped",
            )
        if sorted(order) != list(range(len(order))) or (self.fields.candidates and len(order) != n):
            raise BadFieldError(path, f"{value!r} is not a permutation of 0..{n - 1}")
        return order

    def _gold(self, record: Record, order: Order) -> int | str | None:
        if self.fields.gold is None:
            return None
        value = look_up(record, self.fields.gold)
        if value is None:
            return None
        gold = self._read(record, self.fields.gold, order, self.fields.gold_is)
        if gold is None and isinstance(value, int) and 0 <= value < len(order):
            return value  # an index, where the symbols are no numbers
        if gold is None:
            raise BadFieldError(self.fields.gold, f"{value!r} names no candidate and no tie")
        return gold

    def _read(self, record: Record, path: str, order: Order, means: str) -> Choice:
        """The candidate that a symbol names, "tie", or None where it names nothing."""
        value = look_up(record, path)
        if value is None or isinstance(value, list | dict):
            return None
        said = str(value).strip().casefold()
        if said in {tie.casefold() for tie in self.fields.tie}:
            return "tie"
        symbols = [symbol.casefold() for symbol in self.fields.labels[: len(order)]]
        if said not in symbols:
            return None
        place = symbols.index(said)
        return order[place] if means == "label" else place

    def _text(self, record: Record, path: str | None) -> str | None:
        value = None if path is None else look_up(record, path)
        return None if value is None else str(value)

    def _sample(self, record: Record) -> int:
        value = None if self.fields.sample is None else look_up(record, self.fields.sample)
        if value is None:
            return 0
        if not isinstance(value, int):
            raise BadFieldError(str(self.fields.sample), f"{value!r} is not a number")
        return value


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    return words.get(str(value).strip().lower())
