"""Ctrl-C once: stop and keep what was done. Twice: leave at once.

One handler for all that runs long. A loop of steps asks between them:

    with catch_interrupt() as interrupt:
        for step in steps:
            ...
            if interrupt.is_set():
                break

Calls in an event loop are told by an event:

    with stop_on_interrupt() as stop:
        await make_calls(..., stop=stop)

Outside the main thread, where Python delivers no signals (a notebook's event loop), nothing is caught:
the events stay unset, and Ctrl-C cancels the run, which commits what it has.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["catch_interrupt", "stop_on_interrupt"]

INTERRUPTED = 130


def _interrupt() -> None:
    raise KeyboardInterrupt


@contextmanager
def catch_interrupt(
    *,
    first: Callable[[], object] = lambda: None,
    again: Callable[[], object] = _interrupt,
    signals: Sequence[signal.Signals] = (signal.SIGINT,),
) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second raises KeyboardInterrupt.

    It may also be set for another process of the same run; the next Ctrl-C is then the second.

    Args:
        first: Also called at the first; in the middle of anything, so it may do very little.
        again: Called at every later one.
        signals: What counts as Ctrl-C.
    """
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: types.FrameType | None) -> None:
        if interrupt.is_set():
            again()
        else:
            interrupt.set()
            first()

    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set by something other than Python
                signal.signal(number, handler)


@contextmanager
def stop_on_interrupt() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C (or SIGTERM) sets, for `make_calls(stop=...)`.

    A second Ctrl-C ends the process with exit code 130 without any clean-up: every committed
    call is safe, the calls in flight and the last uncommitted batch are paid again next time.

    Must be entered in a running event loop.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        stop.set()
        sys.stderr.write(
            "\nStopping; what is done is kept and the same command goes on from here. "
            "Press Ctrl-C again to leave at once.\n"
        )
        sys.stderr.flush()

    with catch_interrupt(
        first=lambda: loop.call_soon_threadsafe(tell),
        again=lambda: os._exit(INTERRUPTED),
        signals=(signal.SIGINT, signal.SIGTERM),
    ):
        yield stop
