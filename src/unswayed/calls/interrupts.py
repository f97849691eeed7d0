"""Ctrl-C once: stop and keep what was done. Twice: leave at once.

Outside the main thread, where Python delivers no signals (a notebook's event loop), nothing is caught: events
stay unset, and Ctrl-C cancels the run, which commits what it has.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from unswayed.backends.protocol import Backend
from unswayed.base.counts import plural

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
    """Yield an event that the first Ctrl-C sets, for a loop of steps.

    `first` is called then as well, in the middle of anything, so it may do very little; `again` at every later
    one of the `insistent` signals.
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

    # leave ignored signals ignored: under `nohup` a run outlives its terminal
    heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set by something other than Python
                signal.signal(number, handler)


@contextmanager
def stop_on_interrupt(backend: Backend | None = None) -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl-C (or SIGTERM) sets, for `Caller.ask`; entered in a running event loop.

    The message names the pass of the `backend` that a stop waits for.

    A second Ctrl-C ends the process without any clean-up: every committed call is safe, the calls in flight and
    the last uncommitted batch are paid again next time.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        stop.set()
        prompts = 0 if backend is None else backend.running
        waits = (
            f"Finishing the running pass (up to {plural(prompts, 'prompt')}). " if prompts else ""
        )
        sys.stderr.write(
            f"\nStopping. {waits}Finished work is kept; run the same command again to resume. "
            "Press Ctrl-C again to leave at once.\n"
        )
        sys.stderr.flush()

    with (
        _woken_by_signals(loop),
        catch_interrupt(
            first=lambda: loop.call_soon_threadsafe(tell),
            again=lambda: os._exit(INTERRUPTED),
            signals=SIGNALS,
        ),
    ):
        yield stop


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake the loop at every signal.

    A signal that arrives after Python last checked for one, but before the loop starts to wait, would
    otherwise go unnoticed until something else woke the loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hearing, told = socket.socketpair()
    with hearing, told:
        hearing.setblocking(False)
        told.setblocking(False)
        try:
            loop.add_reader(hearing, hearing.recv, 64)
        except NotImplementedError:  # the loop of Windows, which does this by itself
            yield
            return
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(hearing)
