"""Commits answers in batches beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from unswayed.base.errors import StoreError, UnswayedError
from unswayed.model.calls import Failure, Request, Response
from unswayed.store import CallStore, Memory, Pool

BATCH: Final = 50
BATCH_S: Final = 0.2
MOST_UNCOMMITTED: Final = 100
"""Answers not yet committed, those being written included: what a kill can lose of what came."""
MOST_REFUSED: Final = 20
"""Answers refused one after the other from which the fault is not theirs: the run stops."""


class Answered(NamedTuple):
    """A call that was answered, and what the run found when reading it."""

    key: bytes
    request: Request
    response: Response
    item_id: str
    unread: bool
    unparsed: bool
    is_second: bool


class Failed(NamedTuple):
    """A call that was given up."""

    key: bytes
    request: Request
    failure: Failure


Row = Answered | Failed

OnCommit = Callable[[Sequence[Row]], None]
"""Called in the event loop with what was committed."""


class BatchWriter:
    """One writer task: up to 50 rows or 200 ms of rows per transaction, in a thread.

    Rows that cannot be committed together are committed one by one. An answer that is refused
    alone becomes a failed call with the reason. An error that is not the row's own, or
    `MOST_REFUSED` refusals without an answer between them, break the writer.
    """

    def __init__(self, store: CallStore, on_commit: OnCommit) -> None:
        self.broken = asyncio.Event()  # set when rows were lost: the run must stop
        self._store = store
        self._on_commit = on_commit
        self._rows: list[Row] = []
        self._n_writing = 0
        self._n_refused = 0
        self._n_lost = 0
        self._closing = False
        self._error: Exception | None = None
        self._some = asyncio.Event()
        self._batch = asyncio.Event()
        self._room = asyncio.Event()
        self._task = asyncio.create_task(self._write())

    def add(self, row: Row) -> None:
        """Queue a row; it counts once it is committed."""
        self._rows.append(row)
        if len(self._rows) == 1:
            self._some.set()
        if len(self._rows) >= BATCH:
            self._batch.set()

    async def room(self) -> None:
        """Wait until so little is uncommitted that more may come; raise as `check`."""
        while self._error is None and self._n_writing + len(self._rows) >= MOST_UNCOMMITTED:
            self._room.clear()
            await self._room.wait()
        self.check()

    def check(self) -> None:
        """Raise what broke the writer."""
        if self._error is None:
            return
        lost = f" Answers lost: {self._n_lost:,}, besides calls in flight." if self._n_lost else ""
        if isinstance(self._error, UnswayedError):
            raise type(self._error)(f"{self._error}{lost}") from self._error
        raise StoreError(
            f"cannot record answers ({_described(self._error)}).{lost} Earlier answers are safe. "
            "Fix the cause and run the same command again."
        ) from self._error

    async def close(self) -> None:
        """Commit what is left and end."""
        self._closing = True
        self._some.set()
        self._batch.set()
        await self._task

    async def _write(self) -> None:
        while not (self._closing and not self._rows):
            await self._some.wait()
            if not self._closing:
                try:
                    async with asyncio.timeout(BATCH_S):
                        await self._batch.wait()
                except TimeoutError:
                    pass
            rows, self._rows = self._rows, []
            if not self._closing:
                self._some.clear()
                self._batch.clear()
            self._n_writing = len(rows)
            if rows:
                await self._write_batch(rows)
            self._n_writing = 0
            self._room.set()

    async def _write_batch(self, rows: Sequence[Row]) -> None:
        try:
            try:
                committed = await asyncio.to_thread(self._commit, rows)
            except Exception:  # the machine has no thread or no memory to give
                committed = self._commit(rows)
            self._on_commit(committed)
        except Exception as error:  # whatever it is, a run that records nothing must not go on
            self._break(error)
        if self._error is not None:
            self.broken.set()

    def _break(self, error: Exception) -> None:
        self._error = self._error or error

    # --- in the thread -----------------------------------------------------------------------

    def _commit(self, rows: Sequence[Row]) -> list[Row]:
        """Commit rows; returns those that were, refused answers among them as failed calls."""
        answered = [row for row in rows if isinstance(row, Answered)]
        failed = [row for row in rows if isinstance(row, Failed)]
        # two transactions, so that no answer is counted twice where the second one fails
        committed = [*self._commit_alike(answered), *self._commit_alike(failed)]
        try:
            self._store.check_in_place()
        except Exception as error:  # after the commit: a directory that was moved has its answers
            self._break(error)
        return committed

    def _commit_alike(self, rows: Sequence[Row]) -> list[Row]:
        if not rows:
            return []
        answered = [row for row in rows if isinstance(row, Answered)]
        try:
            if answered:
                unread = {row.key for row in answered if row.unread}
                self._store.put_many([row[:3] for row in answered], unread=unread)
            else:
                self._store.put_failures([row for row in rows if isinstance(row, Failed)])
        except Exception as error:
            if len(rows) == 1:
                return self._refused(rows[0], error)
            return [committed for row in rows for committed in self._commit_alike([row])]
        if answered:
            self._n_refused = 0
        return list(rows)

    def _refused(self, row: Row, error: Exception) -> list[Row]:
        if isinstance(row, Failed) or isinstance(error, UnswayedError | MemoryError | OSError):
            self._n_lost += isinstance(row, Answered)
            self._break(error)
            return []
        self._n_refused += 1
        if self._n_refused >= MOST_REFUSED:
            self._break(error)
        reason = f"{row.item_id}: its answer could not be recorded ({_described(error)})."
        return self._commit_alike(
            [Failed(row.key, row.request, Failure(error="StoreError", message=reason))]
        )


def writer_for(pool: Pool, on_commit: OnCommit) -> BatchWriter | Remembering:
    """Return the writer of a pool."""
    return (
        Remembering(pool, on_commit) if isinstance(pool, Memory) else BatchWriter(pool, on_commit)
    )


class Remembering:
    """A `BatchWriter` to memory: it keeps outcomes at once."""

    def __init__(self, memory: Memory, on_commit: OnCommit) -> None:
        self.broken = asyncio.Event()  # never set
        self._memory = memory
        self._on_commit = on_commit

    def add(self, row: Row) -> None:
        """Keep an outcome."""
        if isinstance(row, Failed):
            self._memory.put_failures((row,))
        else:
            unread = (row.key,) if row.unread else ()
            self._memory.put_many((row[:3],), unread=unread)
        self._on_commit((row,))

    async def room(self) -> None:
        """There is always some."""

    async def close(self) -> None:
        """Nothing is left."""

    def check(self) -> None:
        """Nothing can go wrong."""


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
