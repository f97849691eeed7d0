"""Synchronous faces of asynchronous work, inside a running event loop too (notebooks)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["LoopThread", "run_sync"]

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
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            asyncio.run_coroutine_threadsafe(_others_done(), self._loop).result(GRACE_S + 1)
            raise

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._loop.is_running():
            self._loop.close()


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
