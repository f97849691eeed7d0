"""The SQL of the store, from any thread, and calls by their keys, each with its check sum verified."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from unswayed.base.errors import StoreError
from unswayed.model.calls import Response
from unswayed.store.index import KeyIndex
from unswayed.store.records import Recorded, decode_whole_responses, is_whole
from unswayed.store.schema import all_or_nothing, explained

CHUNK: Final = 500  # keys per query
INDEXED_AT_ONCE: Final = 5_000
MOST_ROW: Final = 1 << 62
"""Behind it no row is expected: SQLite's numbers end soon after."""
NOTE: Final = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

ROOMY: Final = -65_536
"""KiB: holds the index over 1e6 keys."""
NARROW: Final = -2_048


class Lookup:
    """A connection that one thread at a time uses: rows out, transactions in, calls by key."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, read_only: bool = False
    ) -> None:
        self._connection = connection
        self.path = path
        self.read_only = read_only  # every transaction is refused
        self._guard = threading.RLock()
        self._is_roomy = False
        self._damaged: set[bytes] = set()
        self._older = 0
        self._index: KeyIndex | None = None
        self._is_many = False
        self._expected: int | None = None

    @property
    def directory(self) -> str:
        """Path of the store, for messages."""
        return str(self.path.parent)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        # Any: the types of SQLite's columns are those of schema.py, beyond the type checker
        with self._guard, explained(self.path, "read"):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything done in the block at its end, or nothing."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened for reading only.")
        with self._guard, explained(self.path, "write"), all_or_nothing(self._connection):
            yield self._connection

    def make_room(self, *, roomy: bool) -> None:
        """Keep many pages in memory, for writing all over the file, or few, for reading through it."""
        if roomy != self._is_roomy:
            with self._guard, explained(self.path, "read"):
                self._connection.execute(f"PRAGMA cache_size = {ROOMY if roomy else NARROW}")
                self._is_roomy = roomy

    def note(self, name: str, value: str) -> None:
        """Remember a fact about the run, over what was remembered under its name."""
        with self.transaction() as connection:
            connection.execute(NOTE, (name, value))

    def noted(self, name: str) -> str | None:
        """Return a remembered fact, or None."""
        rows = self.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return None if not rows else str(rows[0][0])

    def index(self) -> None:
        """Expect that very many calls will be looked up.

        Where they do not lie one behind the other, it is learned where each lies: 0.6 s and 16 MB for 1e6 calls.
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
        """Return the records of `keys` that are committed and whole."""
        return {
            key: Recorded(row, bool(unread) or row <= self._older)
            for chunk in _chunks(keys)
            for key, _, row, unread in self._whole(chunk)
        }

    def responses(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Response]]:
        """Yield the responses of those of `keys` that are committed and whole, in the order of `keys`."""
        for chunk in _chunks(keys):
            encoded = {key: response for key, response, _, _ in self._whole(chunk)}
            held = [key for key in chunk if key in encoded]
            rows = [(key, encoded[key]) for key in held]
            yield from zip(held, decode_whole_responses(rows), strict=True)

    @property
    def damaged(self) -> int:
        """Number of damaged answers met; each is asked again and replaced."""
        return len(self._damaged)

    def _whole(self, keys: Sequence[bytes]) -> list[tuple[bytes, bytes, int, int]]:
        """Key, response, row and mark of the rows that are what was written."""
        left = set(keys)
        rows: list[tuple[bytes, bytes, int, int]] = []
        # going on, or over again
        for first in () if self._expected is None else (self._expected, 1):
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
        """Return the whole rows among some that hold a key that is left, which is left no longer."""
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
