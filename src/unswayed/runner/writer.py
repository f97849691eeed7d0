"""Commits answers in batches beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from unswayed.calls import Failure, Request, Response
from unswayed.errors import StoreError
from unswayed.store import CallStore

__all__ = ["Answered", "BatchWriter", "Failed"]

BATCH: Final = 50
BATCH_S: Final = 0.2
MOST_UNCOMMITTED: Final = 100
"""Answers not yet committed, those being written included: what a kill can lose of what came."""


class Answered(NamedTuple):
    """A call that was answered, and what the run found when reading it."""

    key: bytes
    request: Request
    response: Response
    truncated: bool
    unparsed: bool
    is_retry: bool


class Failed(NamedTuple):
    """A call that was given up."""

    key: bytes
    request: Request
    failure: Failure


class BatchWriter:
    """One writer task: up to 50 rows or 200 ms of rows per transaction, in a thread.

    Args:
        store: Where to.
        on_commit: Called in the event loop with what was committed.

    Attributes:
        broken: Set when a commit failed; nothing is written after that.
    """

    def __init__(
        self,
        store: CallStore,
        on_commit: Callable[[Sequence[Answered], Sequence[Failed]], None],
    ) -> None:
        self.broken = asyncio.Event()
        self._store = store
        self._on_commit = on_commit
        self._answered: list[Answered] = []
        self._failed: list[Failed] = []
        self._n_writing = 0
        self._closing = False
        self._error: StoreError | None = None
        self._some = asyncio.Event()
        self._batch = asyncio.Event()
        self._room = asyncio.Event()
        self._task = asyncio.create_task(self._write())

    def add(self, row: Answered | Failed) -> None:
        """Queue a row; it counts once it is committed."""
        if isinstance(row, Answered):
            self._answered.append(row)
        else:
            self._failed.append(row)
        waiting = len(self._answered) + len(self._failed)
        if waiting == 1:
            self._some.set()
        if waiting >= BATCH:
            self._batch.set()

    async def room(self) -> None:
        """Wait until so little is uncommitted that more may come.

        Raises:
            StoreError: If a commit failed.
        """
        while (
            self._error is None
            and self._n_writing + len(self._answered) + len(self._failed) >= MOST_UNCOMMITTED
        ):
            self._room.clear()
            await self._room.wait()
        self.check()

    def check(self) -> None:
        """Raise the error of a failed commit.

        Raises:
            StoreError: If there was one.
        """
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Commit what is left and end."""
        self._closing = True
        self._some.set()
        self._batch.set()
        await self._task

    async def _write(self) -> None:
        while not (self._closing and not self._answered and not self._failed):
            await self._some.wait()
            if not self._closing:
                try:
                    async with asyncio.timeout(BATCH_S):
                        await self._batch.wait()
                except TimeoutError:
                    pass
            answered, self._answered = self._answered, []
            failed, self._failed = self._failed, []
            if not self._closing:
                self._some.clear()
                self._batch.clear()
            self._n_writing = len(answered) + len(failed)
            if not self._n_writing:
                continue
            try:
                await asyncio.to_thread(self._commit, answered, failed)
            except StoreError as error:
                self._error = error
                self.broken.set()
                self._room.set()
                return
            self._n_writing = 0
            self._on_commit(answered, failed)
            self._room.set()

    def _commit(self, answered: Sequence[Answered], failed: Sequence[Failed]) -> None:
        if answered:
            self._store.put_many(
                [(row.key, row.request, row.response) for row in answered],
                truncated={row.key for row in answered if row.truncated},
            )
        if failed:
            self._store.put_failures(failed)
