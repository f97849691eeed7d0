"""Ctrl-C once: stop and keep what was done. Twice: leave at once.

`catch_interrupt` is for a loop of steps, which asks between them; `stop_on_interrupt` for calls in an event
loop; `signal_stream` for a process whose main thread may be blocked outside Python (in a collective of
several processes). Outside the main thread, where Python delivers no signals (a notebook's event loop),
nothing is caught: the events stay unset, and Ctrl-C cancels the run, which commits what it has.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


def _interrupt() -> None:
    raise KeyboardInterrupt


@contextmanager
def catch_interrupt(
    *,
    first: Callable[[], object] = lambda: None,
    again: Callable[[], object] = _interrupt,
    signals: Sequence[signal.Signals] = (signal.SIGINT,),
    insistent: Sequence[signal.Signals] = SIGNALS,
) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second raises KeyboardInterrupt.

    `first` is also called at the first, in the middle of anything, so it may do very little; `again` at
    every later one of the `insistent` signals.
    """
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: types.FrameType | None) -> None:
        if interrupt.is_set():
            if number in insistent:
                again()
        else:
            interrupt.set()
            first()

    # what is ignored stays so: `nohup` has a run outlive its terminal
    heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set by something other than Python
                signal.signal(number, handler)


@contextmanager
def signal_stream(
    signals: Sequence[signal.Signals] = SIGNALS,
) -> Iterator[Callable[[float], int | None]]:
    """A function that waits for the next signal, for a thread that is not the main one.

    A handler written in Python runs when the main thread returns to Python; what the interpreter
    writes into a pipe arrives at once. The function takes seconds to wait and returns the signal's
    number, or None if there was none. Outside the main thread nothing is heard.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda timeout_s: None
        return
    hearing, told = socket.socketpair()
    told.setblocking(False)

    def next_signal(timeout_s: float) -> int | None:
        ready, _, _ = select.select([hearing], [], [], timeout_s)
        return hearing.recv(1)[0] if ready else None

    heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda *_: None) for number in heard}
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    try:
        yield next_signal
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        told.close()
        hearing.close()


@contextmanager
def stop_on_interrupt() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C (or SIGTERM) sets, for `Caller.ask(stop=...)`.

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
        signals=SIGNALS,
    ):
        yield stop
