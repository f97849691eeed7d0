"""Synchronous faces of asynchronous work, inside a running event loop too (notebooks)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import wait
from typing import Any, Final, Generic, TypeVar, cast

from unswayed.base.errors import BackendError

T = TypeVar("T")

GRACE_S: Final = 5.0
"""How long cancelled work may take to commit what it has."""
LOOK_S: Final = 0.2
"""Between two looks at whether the thread that carries out work still runs."""


class LoopThread:
    """An event loop in a thread of its own, so that connections outlive one call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="unswayed-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end and return its result; Ctrl-C cancels it and lets it tidy up."""
        errand = _Errand(work)
        try:
            self._loop.call_soon_threadsafe(errand.begin)
            while not errand.ended.acquire(timeout=LOOK_S) and self._thread.is_alive():
                pass
        except RuntimeError:  # closed before it began
            work.close()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(errand.cancel)
            self._tidy_up(cancels=False)
            raise
        return errand.result()

    def close(self) -> None:
        """Stop the loop and its thread; work of other threads that is under way ends with an error."""
        self._tidy_up(cancels=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def _tidy_up(self, *, cancels: bool) -> None:
        wait([asyncio.run_coroutine_threadsafe(_others_done(cancels), self._loop)], GRACE_S + 1)

    def _turn(self) -> None:
        self._loop.run_forever()
        self._loop.close()  # by the thread itself: what is begun later is refused


class _Errand(Generic[T]):
    """Work of one thread in the loop of another: a lock, which costs less than two futures."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Lock()
        self.ended.acquire()
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._value: T | None = None
        self._error: BaseException | None = BackendError("the judge was closed while it was asked.")

    def begin(self) -> None:
        """Start the work; called in the loop."""
        self._task = asyncio.get_running_loop().create_task(self._carry_out())

    def cancel(self) -> None:
        """Stop the work; called in the loop."""
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        """Return the result of the work, or raise its error."""
        if self._error is None:
            return cast("T", self._value)
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame

    async def _carry_out(self) -> None:
        try:
            self._value = await self._work
            self._error = None
        except asyncio.CancelledError:
            raise  # by who closes the loop
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self.ended.release()


async def _others_done(cancels: bool) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for other in others if cancels else ():
        other.cancel()
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
