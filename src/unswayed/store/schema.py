"""The tables of `calls.sqlite`, how the file is opened, and what its errors mean.

`calls` is a rowid table with a unique index on the key. A WITHOUT ROWID table keeps the random
32-byte keys and the 1-5 kB payloads in one tree, so every insert splits full pages: 4-15 thousand
rows/s where this layout does 25-60 thousand, and half-empty pages on disk (benchmarks/store.py).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from unswayed.base.errors import RunDirectoryError, StoreError, UnswayedError
from unswayed.store.records import sealed

APPLICATION_ID: Final = 0x756E7377  # "unsw": tells our files from any other SQLite file
SCHEMA_VERSION: Final = 2
UNSEALED_VERSION: Final = 1
"""Rows without check sums; a writer seals them when it opens the file."""
FILE_NAME: Final = "calls.sqlite"
PAGE_SIZE: Final = 16384
BUSY_MS: Final = 30_000

TABLES: Final = (
    """CREATE TABLE calls (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, made_at REAL NOT NULL,
        request BLOB NOT NULL, response BLOB NOT NULL, truncated INTEGER NOT NULL)""",
    """CREATE TABLE failures (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL, failed_at REAL NOT NULL,
        request BLOB NOT NULL, failure BLOB NOT NULL, error TEXT NOT NULL)""",
    "CREATE INDEX failures_of_key ON failures (key)",
    """CREATE TABLE items (
        id TEXT PRIMARY KEY, place INTEGER, asked BLOB NOT NULL, json BLOB NOT NULL)""",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE totals (
        calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL, prompt_bytes INTEGER NOT NULL,
        max_tokens INTEGER NOT NULL)""",
    "INSERT INTO totals VALUES (0, 0, 0, 0, 0.0, 0, 0)",
)


def database_file(path: Path) -> Path:
    """Return the file that is meant by a file or a run directory."""
    try:
        # directories are named after models, such as `gpt-4.1-mini`: a dot does not make a file
        is_file = path.is_file() or path.suffix == ".sqlite"
        file = path if is_file else path / FILE_NAME
        file.exists()  # raises in a directory that cannot be read
        return file
    except OSError as error:
        raise RunDirectoryError.cannot(
            f"read {path}", error, "Make it readable or give another directory."
        ) from None


Places = Mapping[Path, tuple[int, int] | None]
"""Paths and the files that lie there: device and inode, None if there is none."""


def places_of(path: Path) -> Places:
    """Return the database file and its journal as they lie there now."""
    return {file: _file_number(file) for file in (path, path.with_name(f"{path.name}-wal"))}


def check_places(places: Places) -> None:
    """Check that the files are still in their places."""
    for gone in (path for path, file in places.items() if _file_number(path) != file):
        raise RunDirectoryError(
            f"{gone} was moved or deleted while it was written to. If it was moved, it has all "
            f"answers so far: move it back to {gone.parent} and run the same command again. If it "
            "was "
            "deleted, the same command makes the calls again."
        )


def _file_number(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open for reading and writing, making the tables where the file is new."""
    with explained(path, "open"):
        connection = sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MS / 1000,
        )
        try:
            new = _is_new(connection)
            if new:
                connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            elif _pragma(connection, "user_version") == UNSEALED_VERSION:
                _check(connection, path, UNSEALED_VERSION)
                _seal_all(connection)
            else:
                _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if new:
                _create(connection)
            connection.execute("BEGIN IMMEDIATE")  # a read-only file is found now, not after calls
            connection.execute("UPDATE totals SET calls = calls")
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
    return connection


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open for reading only; also from a directory that cannot be written."""
    if not path.exists():
        raise RunDirectoryError(
            f"there are no recorded calls in {path.parent} ({path.name} is missing). "
            "Give the directory of a run."
        )
    with explained(path, "read"):
        try:
            return _connect_uri(path, "mode=ro")
        except sqlite3.OperationalError as error:
            # SQLite shares a WAL file through a -shm file that it cannot make here. Without a
            # journal nobody is writing and everything is in the main file.
            journal = path.with_name(path.name + "-wal")
            if _base_code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise
            if journal.exists() and journal.stat().st_size:
                raise RunDirectoryError(
                    f"{path} was not closed (it has a journal) and {path.parent} cannot be "
                    "written. Copy the whole directory to a writable place, and read the copy."
                ) from None
            return _connect_uri(path, "mode=ro&immutable=1")


def _connect_uri(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_MS / 1000,
    )
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _is_new(connection: sqlite3.Connection) -> bool:
    """Return True if nothing was ever created in it (also after a kill during creation)."""
    return (
        _pragma(connection, "application_id") != APPLICATION_ID
        and not connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    )


@contextmanager
def all_or_nothing(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything done in the block at its end, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection) -> None:
    with all_or_nothing(connection):
        if _is_new(connection):  # another process may have made it since
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _seal_all(connection: sqlite3.Connection) -> None:
    """Add check sums to a store of version 1: to all rows or none, whatever interrupts it."""
    connection.create_function("seal", 2, sealed, deterministic=True)
    with all_or_nothing(connection):
        if _pragma(connection, "user_version") == UNSEALED_VERSION:
            for table, column in (("calls", "response"), ("failures", "failure")):
                connection.execute(
                    f"UPDATE {table} SET request = seal(request, key), "
                    f"{column} = seal({column}, key)"
                )
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check(connection: sqlite3.Connection, path: Path, expected: int = SCHEMA_VERSION) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise RunDirectoryError(f"{path} is not a call store of unswayed. Choose another --out.")
    version = _pragma(connection, "user_version")
    if version == UNSEALED_VERSION != expected:
        raise RunDirectoryError(
            f"{path} was written by an older version of unswayed. Run the command that wrote it "
            "again: it reuses all calls."
        )
    if version != expected:
        raise RunDirectoryError(
            f"{path} has schema version {version}; this version of unswayed reads "
            f"{SCHEMA_VERSION}. Use the version of unswayed that wrote it, or choose another --out."
        )


def _base_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def explain(error: sqlite3.Error, where: Path, doing: str) -> UnswayedError:
    """Explain an SQLite error and how to fix it."""
    code = _base_code(error)
    if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
        return StoreError(
            f"cannot {doing} {where}: {error}. Everything committed before is kept. Free some "
            "space (or fix the disk) and run the same command again."
        )
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreError(
            f"{where} is damaged ({error}). Move it aside and run the same command to make the "
            f"calls again; `sqlite3 {where} .recover` may save what is in it."
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}:
        return RunDirectoryError(
            f"cannot {doing} {where}: {error}. Make the directory writable or choose another --out."
        )
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"cannot {doing} {where}: another program holds it ({error}). Close that program and "
            "run the same command again."
        )
    return StoreError(f"cannot {doing} {where}: {str(error).rstrip('.')}.")


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path, doing) from error
