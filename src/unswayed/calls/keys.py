"""Under which keys questions were asked."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from unswayed.model.items import Item
from unswayed.model.presentation import Ask

NOWHERE = -1


class Question(NamedTuple):
    """One thing to ask about one item."""

    item: Item
    ask: Ask


class KeyBook:
    """The key of every question that was put into words, items by their ids: 40 bytes a question, 75 an item."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}  # place of the newest question about an item
        self._asks: dict[Ask, int] = {}
        self._ask = array("i")
        self._older = array("i")  # place of the question about the same item before
        self._keys = bytearray()

    def get(self, questions: Sequence[Question]) -> list[bytes | None]:
        """Return the key of each question; None if it was not entered."""
        newest, older, asked, keys = self._newest, self._older, self._ask, self._keys
        # few questions are asked about very many items, and to hash one takes a while
        distinct = {id(ask): ask for _, ask in questions}
        code_of = {name: self._asks.get(ask) for name, ask in distinct.items()}
        entered: list[bytes | None] = []
        last: Item | None = None
        first = NOWHERE
        for item, ask in questions:
            if item is not last:  # the questions about an item come one after the other
                last, first = item, newest.get(item.id, NOWHERE)
            place, wanted = first, code_of[id(ask)]
            while place != NOWHERE and asked[place] != wanted:
                place = older[place]
            start = 32 * place
            entered.append(None if place == NOWHERE else bytes(keys[start : start + 32]))
        return entered

    def enter(self, question: Question, key: bytes) -> None:
        """Remember the key of a question that is not in the book, 32 bytes."""
        item, ask = question
        self._older.append(self._newest.get(item.id, NOWHERE))
        self._newest[item.id] = len(self._ask)
        self._ask.append(self._asks.setdefault(ask, len(self._asks)))
        self._keys += key
