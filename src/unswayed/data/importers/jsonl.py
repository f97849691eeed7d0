"""JSON Lines: our own decisions file, or any log whose fields are named by a map."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, nan
from typing import Final, Literal

import msgspec

from unswayed.data.importers.mapping import FieldMap, Meaning, value_at
from unswayed.data.importers.protocol import ReadRecord, Record, Source, by_candidate, importer
from unswayed.model.calls import Response
from unswayed.model.decisions import Choice, Decision
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.items.paths import at, opened
from unswayed.model.permutations import Order
from unswayed.model.tasks import task_of
from unswayed.model.tasks.listwise import best_candidate

FAILED: Final = "a call that failed (error)"

OWN_DECISIONS: Final = importer(
    "decisions.jsonl of Unswayed; with --map any log of one judge call per line.",
    Decision,
    lambda decision, source: (decision,),  # which brings no item
    answer="choice",
)


def read_mapped(fields: FieldMap, record: Record, source: Source) -> ReadRecord:
    """One call of a foreign log and, as far as the map names its parts, its item."""
    if "custom_id" in record:  # batch output: of OpenAI with `response`, of Anthropic with `result`
        kind, status = at(record, "result.type"), at(record, "response.status_code")
        if record.get("error") or kind not in (None, "succeeded") or status not in (None, 200):
            return ReadRecord(None, (), left_out=FAILED)
    read = _MappedRecord(fields, record).judged()
    if fields.swapped is None:
        return read
    other = _MappedRecord(_of_swapped(fields), record, exchanged=True).judged()
    return replace(
        read,
        decisions=(*read.decisions, *other.decisions),
        unread={**other.unread, **read.unread},
    )


@cache
def _of_swapped(fields: FieldMap) -> FieldMap:
    """Return the map of the call with the candidates exchanged."""
    if fields.answer == "text":
        return replace(fields, text=fields.swapped)
    return replace(fields, verdict=fields.swapped, text=None)


@dataclass(frozen=True, slots=True)
class _MappedRecord:
    """One record, read through a map."""

    fields: FieldMap
    record: Record
    exchanged: bool = False  # the candidates, against the order that the record gives

    def judged(self) -> ReadRecord:
        """Return the call and its item."""
        fields = self.fields
        name = self._at(fields.id)
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            value = at(self.record, fields.id.partition("~")[0]) if name is None else name
            says = "is not an id" if value == name else "gives no id"
            raise self._bad("id", f"{value!r} {says}")
        written, names = self._candidates(), self._names()
        order = self._order(written, names)
        symbols = fields.labels[: len(order)]
        if len(symbols) < len(order):
            raise self._bad("labels", f"{len(fields.labels)} given for {len(order)} candidates")
        own_names = tuple(sorted(names))
        if (names or fields.candidates_are == "shown") and len(written) == len(order):
            written = by_candidate(order, written)
        item = Item(
            id=";".join((str(name), *own_names)),
            prompt=self._text(fields.prompt) or "",
            candidates=written or ("",) * len(order),
            task=self._task(len(order)),
            gold=self._gold(order, own_names),
            values=self._values(len(order)),
            response=(self._text(fields.response) or "") if fields.values else None,
            group=self._text(fields.group),
            unit=self._text(fields.unit) or (str(name) if names else None),
            candidates_by=own_names or None,
        )
        if fields.swapped is not None and len(order) != 2:
            raise self._bad("swapped", f"is for two candidates, not {len(order)}")
        order = order[::-1] if self.exchanged else order
        labels = tuple(symbols[c] for c in order) if fields.label_is_value else symbols
        decision = Decision(
            item_id=item.id,
            order=order,
            labels=labels,
            label_set=symbols,
            sample=self._sample(),
            text=self._text(fields.text),
            model=self._text(fields.model),
            finish_reason=self._text(fields.finish_reason),
        )
        decision = self._answered(item, decision, own_names)
        unread = {
            kind: (fields.pair(part), value)
            for kind, part in {
                "choice": fields.answer,
                "scores": "scores",
                "ranking": "ranking",
            }.items()
            if getattr(decision, kind) is None and (value := self._given(part)) not in (None, "")
        }
        return ReadRecord(item, (decision,), unread=unread)

    def _given(self, part: str) -> object:
        """Return the value of the first field of a part."""
        paths = getattr(self.fields, part)
        return self._at(paths[0] if paths and isinstance(paths, tuple) else paths or None)

    def _bad(self, part: str, reason: str) -> BadFieldError:
        return BadFieldError(self.fields.pair(part), reason)

    def _answered(self, item: Item, decision: Decision, names: tuple[str, ...]) -> Decision:
        fields, order = self.fields, decision.order
        if fields.verdict or fields.scores or fields.ranking:
            scores, ranking = self._scores(order), self._ranking(order, names)
            stated = best_candidate(scores or (None,), ranking)
            if fields.verdict:
                stated = self._choice("verdict", order, names)
            return msgspec.structs.replace(decision, choice=stated, scores=scores, ranking=ranking)
        read = task_of(item.task).reply.read(
            item,
            decision.ask,
            decision.label_set,
            Response(text=decision.text or "", finish_reason=decision.finish_reason or "stop"),
            model=decision.model or "",
            answer_only=False,
        )
        return msgspec.structs.replace(
            decision, choice=read.choice, scores=read.scores, ranking=read.ranking, flags=read.flags
        )

    def _task(self, n: int) -> Task:
        fields = self.fields
        if fields.task is not None:
            return Task(fields.task)
        if fields.values:
            return Task.RUBRIC
        if fields.scores or fields.ranking:
            return Task.LISTWISE
        return Task.PAIRWISE if n == 2 else Task.MCQ

    def _values(self, n: int) -> tuple[float, ...] | None:
        """Return the values of the levels; None for a task without."""
        values = self.fields.values
        if values and len(values) != n:
            raise self._bad("values", f"{len(values)} given for {n} levels")
        return tuple(map(float, values)) or None

    def _scores(self, order: Order) -> tuple[float | None, ...] | None:
        """Scores by candidate; None where none is given."""
        paths = self.fields.scores
        cells = [opened(self._at(path)) for path in paths]
        if len(cells) == 1 and isinstance(cells[0], dict):
            cells = [cells[0].get(symbol) for symbol in self.fields.labels[: len(order)]]
        elif len(cells) == 1 and isinstance(cells[0], list):
            cells = cells[0]
        if not paths or all(cell is None for cell in cells):
            return None
        if len(cells) != len(order):
            raise self._bad("scores", f"{len(cells)} scores for {len(order)} candidates")
        scores = tuple(_score(cell, self.fields.pair("scores")) for cell in cells)
        if self.fields.verdict_is == "candidate" or self.fields.label_is_value:
            return scores
        return by_candidate(order, scores)

    def _ranking(self, order: Order, names: tuple[str, ...]) -> tuple[int, ...] | None:
        """Candidates, best first; None where the record names not all of them once."""
        path = self.fields.ranking
        symbols = opened(self._at(path))
        if not isinstance(symbols, list | str):
            return None
        meaning = self.fields.verdict_is
        choices = [self._meant(str(symbol), order, names, meaning) for symbol in symbols]
        ranking = tuple(choice for choice in choices if isinstance(choice, int))
        return ranking if sorted(ranking) == sorted(order) and len(choices) == len(order) else None

    def _at(self, path: str | None) -> object:
        return None if path is None else value_at(self.record, path)

    def _text(self, path: str | None) -> str | None:
        value = self._at(path)
        return None if value is None else str(value)

    def _candidates(self) -> tuple[str, ...]:
        paths = self.fields.candidates
        texts = [self._at(path) for path in paths]
        if len(texts) == 1 and isinstance(texts[0], list):
            texts = texts[0]
        if paths and (len(texts) < 2 or not all(isinstance(text, str) for text in texts)):
            raise self._bad(
                "candidates", "needs at least two texts, such as first|second in quotes"
            )
        return tuple(str(text) for text in texts)

    def _names(self) -> tuple[str, ...]:
        names = tuple(self._text(path) or "" for path in self.fields.names)
        if "" in names or len({name.casefold() for name in names}) < len(names):
            raise self._bad("names", f"{list(names)} are not two names")
        return names

    def _order(self, written: tuple[str, ...], names: tuple[str, ...]) -> Order:
        n = len(written) or len(self.fields.labels)
        if names:
            if written and len(written) != len(names):
                raise self._bad("candidates", f"{len(written)} for {len(names)} names")
            return _ranks(names)
        if self.fields.order is not None:
            return self._order_in(n)
        if not written or self.fields.candidates_are == "own":
            return tuple(range(n))
        if len(set(written)) < len(written):
            raise self._bad("candidates", "are equal texts, which show no order; give order=")
        return _ranks(written)

    def _order_in(self, n: int) -> Order:
        value, labels = opened(self._at(self.fields.order)), self.fields.labels
        if isinstance(value, list) and all(type(candidate) is int for candidate in value):
            order = tuple(value)
        elif isinstance(value, str) and sorted(value) == sorted(labels[: len(value)]):
            order = tuple(labels.index(symbol) for symbol in value)
        elif (flag := _flag(value)) is not None and n == 2:
            order = (1, 0) if flag else (0, 1)
        else:
            raise self._bad(
                "order",
                f"{value!r} is not an order of {'|'.join(labels)}: name other symbols in labels=, or give a list of "
                f"candidates; for two candidates also yes, true or 1 if they were swapped, else no, false or 0",
            )
        if sorted(order) != list(range(len(order))) or (self.fields.candidates and len(order) != n):
            raise self._bad("order", f"{value!r} is not a permutation of 0..{n - 1}")
        return order

    def _gold(self, order: Order, names: tuple[str, ...]) -> int | float | str | None:
        value = self._at(self.fields.gold)
        if value is None or value == "":
            return None
        if self.fields.values:
            return _score(value, self.fields.pair("gold"))
        gold = self._choice("gold", order, names)
        if gold is None and (index := _number(value)) is not None and index < len(order):
            return index  # where the symbols are no numbers
        if gold is not None:
            return gold
        word, texts = str(value).strip().casefold(), self.fields.candidates
        headings = [own.casefold() for own in texts] if len(texts) == len(order) else []
        if word in headings:
            place = headings.index(word)
            return order[place] if self.fields.candidates_are == "shown" else place
        if word == "tie":
            return word
        symbols = names if self.fields.gold_is == "name" else self.fields.labels[: len(order)]
        words = "|".join((*symbols, *texts[: len(headings)]))
        raise self._bad("gold", f"{value!r} is not one of {words}, an index from 0, or tie")

    def _choice(
        self, part: Literal["verdict", "gold"], order: Order, names: tuple[str, ...]
    ) -> Choice:
        """Return the candidate that a symbol or name means, "tie", or None where it means nothing."""
        value = self._given(part)
        if value is None or isinstance(value, list | dict):
            return None
        meaning: Meaning = getattr(self.fields, f"{part}_is")
        choice = self._meant(str(value), order, names, meaning)
        other: Meaning = "label" if meaning == "name" else "name"
        if choice is None and names and self._meant(str(value), order, names, other) is not None:
            raise self._bad(
                part, f"{value!r} is a {other}, not a {meaning}: {part}_is={other} reads it"
            )
        return choice

    def _meant(self, word: str, order: Order, names: tuple[str, ...], meaning: Meaning) -> Choice:
        """Return the candidate that a word means, "tie", or None where it means nothing."""
        word = word.strip().casefold()
        if word in {tie.casefold() for tie in self.fields.tie}:
            return "tie"
        symbols = names if meaning == "name" else self.fields.labels[: len(order)]
        folded = [symbol.casefold() for symbol in symbols]
        if self.fields.label_is_value:
            word, folded, meaning = _plain(word), list(map(_plain, folded)), "candidate"
        if word not in folded:
            return None
        place = folded.index(word)
        return order[place] if meaning == "label" else place

    def _sample(self) -> int:
        value = self._at(self.fields.sample)
        if value is None or value == "":
            return 0
        if (number := _number(value)) is None:
            raise self._bad("sample", f"{value!r} is not a number")
        return number


def _ranks(shown: tuple[str, ...]) -> Order:
    """`order[p]` where the own order is the alphabet's."""
    own = sorted(shown)
    return tuple(own.index(text) for text in shown)


def _number(value: object) -> int | None:
    """Return a whole number from 0, also where a table holds it as text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    text = value.strip()
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _score(value: object, path: str) -> float | None:
    """Return a finite number, also where a table holds it as text; None where there is none."""
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else nan
    except (ValueError, OverflowError):
        number = nan
    if isinstance(value, bool) or not isfinite(number):
        raise BadFieldError(path, f"{value!r} is not a number")
    return number


def _plain(symbol: str) -> str:
    """Return a number as it is written shortest ("3" for "3.0"); other text as it is."""
    try:
        return f"{float(symbol):g}"
    except ValueError:
        return symbol


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    return words.get(str(value).strip().lower())
