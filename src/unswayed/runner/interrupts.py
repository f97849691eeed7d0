"""Ctrl-C once: stop and keep what was done. Twice: leave at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stop_on_interrupt"]

INTERRUPTED = 130


@contextmanager
def stop_on_interrupt() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C (or SIGTERM) sets, for `make_calls(stop=...)`.

    A second Ctrl-C ends the process with exit code 130 without any clean-up: every committed
    call is safe, the calls in flight and the last uncommitted batch are paid again next time.
    Where the event loop cannot take over signals (a notebook's thread, Windows) the event is
    simply never set, and Ctrl-C cancels the run, which commits what it has.

    Must be entered in a running event loop.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def interrupted() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()
        sys.stderr.write(
            "\nStopping; what is done is kept and the same command goes on from here. "
            "Press Ctrl-C again to leave at once.\n"
        )
        sys.stderr.flush()

    try:
        for number in signals:
            loop.add_signal_handler(number, interrupted)
    except (NotImplementedError, RuntimeError, ValueError):
        yield stop
        return
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
            if before[number] is not None:  # None: set by something other than Python
                signal.signal(number, before[number])
