"""Synchronous faces of asynchronous work, inside a running event loop too (notebooks)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

GRACE_S = 5.0
"""How long cancelled work may take to commit what it has."""


class LoopThread:
    """An event loop in a thread of its own, so that connections outlive one call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="unswayed-loop", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end and return its result; Ctrl-C cancels it and lets it tidy up."""
        errand = _Errand(work)
        try:
            self._loop.call_soon_threadsafe(errand.begin)
            errand.ended.acquire()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(errand.cancel)
            asyncio.run_coroutine_threadsafe(_others_done(), self._loop).result(GRACE_S + 1)
            raise
        return errand.result()

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._loop.is_running():
            self._loop.close()


class _Errand(Generic[T]):
    """Work of one thread in the loop of another: a lock, which costs less than two futures."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Lock()
        self.ended.acquire()
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start the work; called in the loop."""
        self._task = asyncio.get_running_loop().create_task(self._carry_out())

    def cancel(self) -> None:
        """Stop the work; called in the loop."""
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        """What the work returned, or what it raised."""
        if self._error is None:
            return cast("T", self._value)
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame

    async def _carry_out(self) -> None:
        try:
            self._value = await self._work
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self.ended.release()


async def _others_done() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=GRACE_S)


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run async work to its end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = LoopThread()
    try:
        return loop.run(work)
    finally:
        loop.close()
