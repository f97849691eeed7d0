"""`CallStore`: requests and responses, failures, and the items of one run."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from unswayed.base.errors import ItemError, RunDirectoryError, StoreError
from unswayed.model.calls import Failure, Request, Response
from unswayed.model.items import ItemSet, decode_item, encode_item
from unswayed.model.parsing import READER
from unswayed.store.lock import WriterLock
from unswayed.store.lookup import CHUNK, NOTE, Lookup
from unswayed.store.records import RecordedCall, Totals, decode, encode
from unswayed.store.schema import (
    check_places,
    connect_readonly,
    connect_writer,
    database_file,
    places_of,
)

AT_ONCE: Final = 2_000  # items per query
CALL: Final = ("key", "made_at", "request", "response", "truncated")
"""Columns of a call."""
ADD: Final = f"INSERT OR IGNORE INTO calls ({', '.join(CALL)}) VALUES (?, ?, ?, ?, ?)"
ADD_UP: Final = f"UPDATE totals SET {', '.join(f'{name} = {name} + ?' for name in Totals._fields)}"
OLDER: Final = "last row of older readers"
"""Under which it is noted, behind the reader's version."""


class CallStore(Lookup):
    """The pool of recorded calls of one run directory: one writer, any number of readers.

    All methods may be called from any thread. What `put_many` returned from is committed: it
    survives a kill of the process at any later moment.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        read_only: bool = False,
        lock: WriterLock | None = None,
    ) -> None:
        super().__init__(connection, path, read_only=read_only)
        self._older = self._last_older_row()
        self._lock = lock
        self._places = {} if read_only else places_of(path)
        self._failed = {key for (key,) in self.rows("SELECT DISTINCT key FROM failures")}

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False) -> CallStore:
        """Open `calls.sqlite`, given itself or by its run directory.

        Reading only takes no lock and writes nothing: it works beside a writer and in a directory that cannot
        be written.

        Raises:
            RunDirectoryError: If the directory cannot be used: read-only, in use by another process (named), not
                there, or its file is of something else.
            StoreError: If the file is damaged or the disk is full.
        """
        file = database_file(Path(path))
        if read_only:
            return cls(connect_readonly(file), file, read_only=True)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunDirectoryError.cannot(f"make {file.parent}", error) from None
        lock = WriterLock.acquire(file.with_name(file.name + ".lock"))
        try:
            return cls(connect_writer(file), file, lock=lock)
        except BaseException:
            lock.release()
            raise

    def close(self) -> None:
        """Close the file and let other writers in; a second call does nothing."""
        with self._guard:
            self._connection.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self.rows("SELECT count(*) FROM calls")[0][0])

    def check_in_place(self) -> None:
        """Check that file and journal lie where they were opened: SQLite goes on writing to those that do not."""
        check_places(self._places)

    # --- calls -------------------------------------------------------------------------------

    def get(self, key: bytes) -> tuple[Request, Response] | None:
        """One call, or None if it is not committed."""
        rows = self.rows("SELECT request, response FROM calls WHERE key = ?", (key,))
        if not rows:
            return None
        request, response = rows[0]
        return decode(Request, request, key), decode(Response, response, key)

    def calls(self) -> Iterator[RecordedCall]:
        """Every committed call in the order it was recorded."""
        for rows in self.encoded():
            for key, made_at, request, response, _ in rows:
                yield RecordedCall(
                    key, decode(Request, request, key), decode(Response, response, key), made_at
                )

    def encoded(
        self, at_once: int = CHUNK
    ) -> Iterator[list[tuple[bytes, float, bytes, bytes, int]]]:
        """Yield every committed call as the file stores it, in lists, in the order of recording."""
        last = 0
        sql = f"SELECT {', '.join(CALL)}, id FROM calls WHERE id > ? ORDER BY id LIMIT {at_once}"
        while rows := self.rows(sql, (last,)):
            last = rows[-1][-1]
            yield [row[:-1] for row in rows]

    def adopt(
        self,
        calls: Iterable[Sequence[tuple[bytes, float, bytes, bytes, int]]],
        paid: Totals,
        note: tuple[str, str],
    ) -> None:
        """Commit calls as another file stores them, with their cost and a note, all or nothing.

        A key that is there already keeps its first answer.
        """
        with self.transaction() as connection:
            for rows in calls:
                connection.executemany(ADD, rows)
            connection.execute(ADD_UP, paid)
            connection.execute(NOTE, note)
            connection.execute("DELETE FROM failures WHERE key IN (SELECT key FROM calls)")

    def put_many(
        self,
        rows: Sequence[tuple[bytes, Request, Response]],
        *,
        unread: Collection[bytes] = (),
    ) -> None:
        """Commit calls, all or none; a key that is there already keeps its first answer.

        A second call may follow those `unread`, whose answers state no verdict.
        """
        now = time.time()
        encoded = [
            (key, now, encode(request, key), encode(response, key), key in unread)
            for key, request, response in rows
        ]
        self.make_room(roomy=True)
        with self._guard:
            healed = self._failed.intersection(key for key, _, _ in rows)
            spoilt = self._damaged.intersection(key for key, _, _ in rows)
            with self.transaction() as connection:
                connection.executemany("DELETE FROM calls WHERE key = ?", zip(spoilt))
                connection.executemany(ADD, encoded)
                connection.execute(ADD_UP, Totals.of(rows))
                connection.executemany("DELETE FROM failures WHERE key = ?", zip(healed))
            self._failed -= healed

    def _last_older_row(self) -> int:
        """Return the last row whose mark comes of older rules of reading, 0 for none."""
        reader, _, last = (self.noted(OLDER) or "").partition(" ")
        if reader == str(READER) and last.isdecimal():
            return int(last)
        row = int(self.rows("SELECT coalesce(max(id), 0) FROM calls")[0][0])
        if not self.read_only:
            self.note(OLDER, f"{READER} {row}")
        return row

    def totals(self) -> Totals:
        """Return the cost of all calls of the run directory so far."""
        return Totals(*self.rows("SELECT * FROM totals")[0])

    # --- failures ----------------------------------------------------------------------------

    def put_failures(self, rows: Sequence[tuple[bytes, Request, Failure]]) -> None:
        """Record calls that failed for good; a later answer to the same key clears them."""
        now = time.time()
        encoded = [
            (key, now, encode(request, key), encode(failure, key), failure.error)
            for key, request, failure in rows
        ]
        with self._guard:
            with self.transaction() as connection:
                sql = "INSERT INTO failures (key, failed_at, request, failure, error) VALUES (?, ?, ?, ?, ?)"
                connection.executemany(sql, encoded)
            self._failed.update(key for key, _, _ in rows)

    def failed(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the `keys` that failed and were not answered since."""
        with self._guard:
            return self._failed.intersection(keys)

    # --- what the run is about ---------------------------------------------------------------

    def bind(self, *, model: str, items: ItemSet) -> None:
        """Tie the run directory to a model and its data, and keep the items in it.

        The same data may grow or shrink (`--limit`): every item of the smaller set must be in the larger one,
        and the same but for gold, group, meta and names of models, on which no call depends.
        """
        bound = self.noted("model")
        if bound is not None and bound != model:
            raise RunDirectoryError(
                f"{self.directory} holds calls of model {bound!r}, not {model!r}. "
                "Choose another --out."
            )
        if bound is not None and self._holds(items):
            return
        # calls can depend on the item without these: 32 bytes of hash
        free: dict[str, Any] = {"gold": None, "group": None, "meta": {}, "candidates_by": None}
        asked = {
            item.id: hashlib.sha256(encode_item(msgspec.structs.replace(item, **free))).digest()
            for item in items
        }
        stored: dict[str, bytes] = dict(self.rows("SELECT id, asked FROM items"))
        _check_same_data(stored, asked, name=items.name, directory=self.directory)
        with self.transaction() as connection:
            connection.execute("UPDATE items SET place = NULL")
            connection.executemany(
                "INSERT INTO items VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET place = excluded.place, json = excluded.json",
                (
                    (item.id, place, asked[item.id], encode_item(item))
                    for place, item in enumerate(items)
                ),
            )
            connection.executemany(
                NOTE, [("model", model), ("data", items.name), ("fingerprint", items.fingerprint)]
            )

    @property
    def keyed_by_item(self) -> bool:
        """True if the item's id is in the keys of the recorded calls (`Backend.keyed_by_item`)."""
        first = next(self.calls(), None)
        return first is not None and first.request.nonce is not None

    @property
    def model(self) -> str | None:
        """The model the run directory is bound to."""
        return self.noted("model")

    def items(self) -> ItemSet:
        """Return the items of the latest run, with gold, in their order."""
        rows = self.rows("SELECT json FROM items WHERE place IS NOT NULL ORDER BY place")
        if not rows:
            raise RunDirectoryError(f"{self.directory} holds no items. Give a run directory.")
        try:
            kept = (decode_item(row) for (row,) in rows)
            items = ItemSet.of(kept, name=self.noted("data") or "")
        except ItemError as error:
            raise StoreError(
                f"the items in {self.directory} are damaged ({error}). Run the audit again in it: it "
                f"reuses recorded calls."
            ) from None
        if items.fingerprint != self.noted("fingerprint"):
            raise StoreError(
                f"the items in {self.directory} are damaged: their fingerprint has changed. Run "
                "the audit again in it: it reuses recorded calls."
            )
        return items

    def _holds(self, items: ItemSet) -> bool:
        """Return True if the file has these very items under their name, none of them damaged."""
        if (self.noted("data"), self.noted("fingerprint")) != (items.name, items.fingerprint):
            return False
        whole, last, count = hashlib.sha256(), 0, 0
        sql = "SELECT rowid, place, json FROM items WHERE rowid > ? AND place IS NOT NULL ORDER BY rowid"
        while rows := self.rows(f"{sql} LIMIT {AT_ONCE}", (last,)):
            last = rows[-1][0]
            for _, place, line in rows:
                if place != count or not isinstance(line, bytes):
                    return False  # an earlier run had them in another order
                whole.update(line)
                whole.update(b"\n")
                count += 1
        return f"sha256:{whole.hexdigest()}" == items.fingerprint


def _check_same_data(
    stored: Mapping[str, bytes], asked: Mapping[str, bytes], *, name: str, directory: str
) -> None:
    """Check that the same data have only grown or shrunk, by item id."""
    shared = stored.keys() & asked.keys()
    changed = sorted(item_id for item_id in shared if stored[item_id] != asked[item_id])
    if changed:
        raise RunDirectoryError(
            f"{directory} holds calls on other data: item {changed[0]!r} of {name} has changed "
            f"since ({len(changed)} of {len(shared)} changed). Choose another --out."
        )
    if len(shared) < min(len(stored), len(asked)):
        raise RunDirectoryError(
            f"{directory} holds calls on other data: {len(shared)} of its {len(stored)} items are "
            f"among the {len(asked)} of {name}. Choose another --out."
        )
