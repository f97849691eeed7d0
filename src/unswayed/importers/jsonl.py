"""JSON Lines: our own decisions file, or any log whose fields are named by a map."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from unswayed.decisions import Choice, Decision, check_decision
from unswayed.errors import ItemError
from unswayed.importers.mapping import FieldMap, Meaning, look_up
from unswayed.importers.protocol import BadFieldError, Judged, Record, Source, read_as
from unswayed.items import Item, Task
from unswayed.permutations import Order, invert

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
        written = self._candidates(record)
        names = self._names(record)
        order = self._order(record, written, names)
        symbols = fields.labels[: len(order)]
        if len(symbols) < len(order):
            raise BadFieldError("labels", f"{len(fields.labels)} given for {len(order)} candidates")
        own_names = tuple(sorted(names))
        by_position = bool(names) or fields.candidates_are == "shown"
        candidates = _own(written, order) if by_position else written
        gold = self._gold(record, order, own_names)
        text, prompt, group, model = (
            self._text(record, path)
            for path in (fields.text, fields.prompt, fields.group, fields.model)
        )
        item = Item(
            id=";".join((str(name), *own_names)),
            prompt=prompt or "",
            candidates=candidates or ("",) * len(order),
            task=Task.PAIRWISE if len(order) == 2 else Task.MCQ,
            gold=gold,
            group=group,
            meta={"names": list(own_names)} if own_names else {},
        )
        decision = Decision(
            item_id=item.id,
            order=order,
            labels=symbols,
            label_set=symbols,
            sample=self._sample(record),
            choice=self._read(record, fields.verdict, order, own_names, fields.verdict_is),
            text=text,
            model=model,
        )
        return Judged(item, (decision,))

    def _candidates(self, record: Record) -> tuple[str, ...]:
        """The texts as the record lists them."""
        paths = self.fields.candidates
        if not paths:
            return ()
        texts = [look_up(record, path) for path in paths]
        if len(texts) == 1 and isinstance(texts[0], list):
            texts = texts[0]
        if len(texts) < 2 or not all(isinstance(candidate, str) for candidate in texts):
            raise BadFieldError("|".join(paths), "needs at least two texts")
        return tuple(str(candidate) for candidate in texts)

    def _names(self, record: Record) -> tuple[str, ...]:
        """The names of what was shown, by position."""
        names = tuple(self._text(record, path) or "" for path in self.fields.names)
        if "" in names or len({name.casefold() for name in names}) < len(names):
            raise BadFieldError("|".join(self.fields.names), f"{list(names)} are not two names")
        return names

    def _order(self, record: Record, written: tuple[str, ...], names: tuple[str, ...]) -> Order:
        """`order[p]`, from the names shown, from a field, or from the texts shown."""
        path = self.fields.order
        if names:
            if written and len(written) != len(names):
                raise BadFieldError("candidates", f"{len(written)} for {len(names)} names")
            return _ranks(names)
        if path is not None:
            return self._order_in(path, record, len(written) or len(self.fields.labels))
        if not written or self.fields.candidates_are == "own":
            return tuple(range(len(written) or len(self.fields.labels)))
        if len(set(written)) < len(written):
            raise BadFieldError(
                "|".join(self.fields.candidates),
                "are equal texts, which tell no order; give order=",
            )
        return _ranks(written)

    def _order_in(self, path: str, record: Record, n: int) -> Order:
        """`order[p]` from a list of candidates, a string of symbols, or a flag "swapped"."""
        value = _listed(look_up(record, path))
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

    def _gold(self, record: Record, order: Order, names: tuple[str, ...]) -> int | str | None:
        if self.fields.gold is None:
            return None
        value = look_up(record, self.fields.gold)
        if value is None or value == "":
            return None
        gold = self._read(record, self.fields.gold, order, names, self.fields.gold_is)
        if gold is None and (index := _number(value)) is not None and index < len(order):
            return index  # where the symbols are no numbers
        if gold is None:
            raise BadFieldError(self.fields.gold, f"{value!r} names no candidate and no tie")
        return gold

    def _read(
        self, record: Record, path: str, order: Order, names: tuple[str, ...], means: Meaning
    ) -> Choice:
        """The candidate that a symbol or name means, "tie", or None where it means nothing."""
        value = look_up(record, path)
        if value is None or isinstance(value, list | dict):
            return None
        said = str(value).strip().casefold()
        if said in {tie.casefold() for tie in self.fields.tie}:
            return "tie"
        known = names if means == "name" else self.fields.labels[: len(order)]
        symbols = [symbol.casefold() for symbol in known]
        if said not in symbols:
            return None
        place = symbols.index(said)
        return order[place] if means == "label" else place

    def _text(self, record: Record, path: str | None) -> str | None:
        value = None if path is None else look_up(record, path)
        return None if value is None else str(value)

    def _sample(self, record: Record) -> int:
        path = self.fields.sample
        value = None if path is None else look_up(record, path)
        if path is None or value is None or value == "":
            return 0
        number = _number(value)
        if number is None:
            raise BadFieldError(path, f"{value!r} is not a number")
        return number


def _ranks(shown: tuple[str, ...]) -> Order:
    """`order[p]` where the own order is the alphabet's."""
    own = sorted(shown)
    return tuple(own.index(text) for text in shown)


def _own(shown: tuple[str, ...], order: Order) -> tuple[str, ...]:
    """Texts by position as texts by candidate."""
    if len(shown) != len(order):
        return shown
    return tuple(shown[position] for position in invert(order))


def _number(value: object) -> int | None:
    """A whole number from 0, also where a table holds it as text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdecimal() else None


def _listed(value: object) -> object:
    """The list that a table's cell holds as JSON; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    return words.get(str(value).strip().lower())
