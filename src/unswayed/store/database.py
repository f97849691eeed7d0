"""The SQL of the store: rows out, transactions in, from any thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from unswayed.errors import StoreError
from unswayed.store.schema import all_or_nothing, explained

NOTE: Final = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

ROOMY: Final = -65_536
"""KiB: holds the index over 1e6 keys."""
NARROW: Final = -2_048


class Database:
    """A connection that one thread at a time uses."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, read_only: bool = False
    ) -> None:
        self._connection = connection
        self.path = path
        self.read_only = read_only
        self._guard = threading.RLock()
        self._is_roomy = False

    @property
    def directory(self) -> str:
        """Where it lies, for messages."""
        return str(self.path.parent)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        # Any: the types of SQLite's columns are those of schema.py, beyond the type checker
        with self._guard, explained(self.path, "read"):
            rows: list[tuple[Any, ...]] = self._connection.execute(sql, values).fetchall()
            return rows

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What is done within is committed at the end, all or nothing."""
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
        """A remembered fact, or None."""
        rows = self.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return None if not rows else str(rows[0][0])
