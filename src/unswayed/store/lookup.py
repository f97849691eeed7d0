"""Calls looked up by their keys, each with its check sum verified."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from unswayed.calls import Response
from unswayed.store.database import Database
from unswayed.store.index import KeyIndex
from unswayed.store.records import Recorded, decode_whole_responses, is_whole

CHUNK: Final = 500  # keys per query
INDEXED_AT_ONCE: Final = 5_000
MOST_ROW: Final = 1 << 62
"""Behind it no row is expected: SQLite's numbers end soon after."""


class Lookup(Database):
    """Reads calls by key; see `Database` for the arguments."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, read_only: bool = False
    ) -> None:
        super().__init__(connection, path, read_only=read_only)
        self._damaged: set[bytes] = set()
        self._older = 0
        self._index: KeyIndex | None = None
        self._is_many = False
        self._expected: int | None = None

    def index(self) -> None:
        """Expect that very many calls will be looked up, as they were recorded or in any order.

        Where they do not lie one behind the other, it is learned where each lies: 0.6 s and 16 MB for
        1e6 calls. What is committed later is found all the same.
        """
        self.make_room(roomy=False)
        self._index, self._is_many, self._expected = None, True, 1

    def _places_of_keys(self) -> Iterator[list[tuple[bytes, int]]]:
        last = b""
        sql = "SELECT key, id FROM calls WHERE key > ? ORDER BY key LIMIT ?"
        while rows := self.rows(sql, (last, INDEXED_AT_ONCE)):
            last = rows[-1][0]
            yield [(key, row) for key, row in rows]

    def recorded(self, keys: Iterable[bytes]) -> dict[bytes, Recorded]:
        """Those of `keys` that are committed.

        A row whose answer is damaged counts as not committed; see `damaged`.
        """
        return {
            key: Recorded(row, bool(unread) or row <= self._older)
            for chunk in _chunks(keys)
            for key, _, row, unread in self._whole(chunk)
        }

    def responses(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Response]]:
        """The responses of those of `keys` that are committed and whole, in the order of `keys`."""
        for chunk in _chunks(keys):
            encoded = {key: response for key, response, _, _ in self._whole(chunk)}
            held = [key for key in chunk if key in encoded]
            rows = [(key, encoded[key]) for key in held]
            yield from zip(held, decode_whole_responses(rows), strict=True)

    @property
    def damaged(self) -> int:
        """How many damaged answers were met; each is asked for again and replaced."""
        return len(self._damaged)

    def _whole(self, keys: Sequence[bytes]) -> list[tuple[bytes, bytes, int, int]]:
        """Key, response, row and mark of the rows that are what was written."""
        left = set(keys)
        rows: list[tuple[bytes, bytes, int, int]] = []
        guesses = () if self._expected is None else (self._expected, 1)  # going on, or over again
        for first in guesses:
            if 2 * len(left) > len(keys):
                rows += self._taken("id BETWEEN ? AND ?", (first, first + len(keys) - 1), left)
        if self._is_many and 2 * len(left) > len(keys) and self._index is None:
            self._index = KeyIndex(self._places_of_keys())
        places = [] if self._index is None or not left else self._index.rows([*left])
        for where, values in (("id", places), ("key", left)):
            if values:
                holes = ",".join("?" * len(values))
                rows += self._taken(f"{where} IN ({holes})", tuple(values), left)
        if self._is_many and rows:
            numbers = [row for _, _, row, _ in rows]
            last = max(numbers)
            together = last - min(numbers) < 2 * len(keys) and last < MOST_ROW
            self._expected = last + 1 if together else None
        return rows

    def _taken(
        self, where: str, values: Sequence[object], left: set[bytes]
    ) -> list[tuple[bytes, bytes, int, int]]:
        """The whole rows among some that hold a key that is left, which is left no longer."""
        sql = f"SELECT key, response, id, truncated FROM calls WHERE {where}"
        taken = []
        for row in self.rows(sql, values):
            key = row[0]
            if key not in left:
                continue  # another key that begins alike, or a row that was given away since
            left.discard(key)
            if is_whole(row[1], key):
                taken.append(row)
            else:
                self._damaged.add(key)
        return taken


def _chunks(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(keys)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        yield chunk
