"""One line that says how far a run is."""

from __future__ import annotations

import asyncio
import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TextIO

from unswayed.backends.protocol import Backend, Wait
from unswayed.base.counts import plural
from unswayed.calls.counts import RunCounts

WINDOW_S: Final = 15.0
PLAIN_EVERY_S: Final = 5.0
TICK_S: Final = 0.2


class ShowsProgress(Protocol):
    """Receiver of a `Caller`'s progress, a few times a second."""

    def update(self, counts: RunCounts) -> None:
        """Take the counts so far; they go on changing."""
        ...

    def close(self) -> None:
        """End the display of a run; `update` was called with its final counts."""
        ...


async def keep_showing(progress: ShowsProgress, backend: Backend, counts: RunCounts) -> None:
    """Show the progress of a run until the task is cancelled."""
    while True:
        counts.waiting = backend.waiting
        progress.update(counts)
        await asyncio.sleep(TICK_S)


class Progress:
    """Live line on a terminal, last line in a notebook, plain line every few seconds elsewhere.

    `total` is the distinct calls of the whole run; if unknown, no time left is shown.
    """

    def __init__(
        self,
        total: int | None = None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._live = self._stream.isatty()
        self._width = 0
        self._samples: deque[tuple[float, int]] = deque()
        self._shown = ""
        self._last = ""
        self._next_plain = math.inf if "ipykernel" in sys.modules else clock() + PLAIN_EVERY_S

    def update(self, counts: RunCounts) -> None:
        """Show the counts, if it is time to."""
        now = self._clock()
        self._samples.append((now, counts.made + counts.failed))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()
        self._last = describe(counts, total=self._total, per_s=self._rate())
        if self._live:
            line = self._last[: shutil.get_terminal_size().columns - 1]
            self._write(f"\r{line.ljust(self._width)}")
            self._width = len(line)
        elif now >= self._next_plain:
            self._next_plain = now + PLAIN_EVERY_S
            self._write(f"{self._last}\n")
            self._shown = self._last

    def close(self) -> None:
        """End the live line, or print the last plain one."""
        if self._live:
            self._write("\n")
        elif self._last and self._last != self._shown:
            self._write(f"{self._last}\n")
        self._shown = self._last

    def _rate(self) -> float:
        (then, before), (now, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - then) if now > then else 0.0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def describe(counts: RunCounts, *, total: int | None, per_s: float) -> str:
    """Return the line; while everything waits it says for what instead: a narrow terminal would cut that off."""
    done = counts.made + counts.cached + counts.failed
    whole = None if total is None else max(total, counts.planned)
    parts = [plural(done, "call") if whole is None else f"{done:,}/{plural(whole, 'call')}"]
    if counts.waiting is not None:
        parts.append(_wait(counts.waiting))
        return " · ".join(parts)
    if counts.cached:
        parts.append(f"{counts.cached:,} reused")
    if per_s > 0:
        parts.append(f"{per_s:,.0f}/s" if per_s >= 10 else f"{per_s:.1f}/s")
    parts.append(f"{_short(counts.input_tokens + counts.output_tokens)} tokens")
    parts.append(f"${counts.cost_usd:,.2f}" if counts.cost_usd >= 1 else f"${counts.cost_usd:.4f}")
    parts.append(plural(counts.retried, "retry", "retries"))
    parts.append(f"{counts.unparsed:,} unparsed")
    if counts.refused:
        parts.append(f"{counts.refused:,} refused")
    if counts.broken:
        parts.append(f"{counts.broken.total():,} with an unknown finish reason")
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    if whole is not None and per_s > 0 and whole > done:
        parts.append(f"{duration((whole - done) / per_s)} left")
    return " · ".join(parts)


def _wait(wait: Wait) -> str:
    next_try = f"next try in {wait.next_try_s:.0f} s" if wait.next_try_s else "trying now"
    text = f"waiting for {wait.server} ({wait.reason}), {next_try}"
    if wait.gives_up_at is not None:
        text += f", gives up at {time.strftime('%H:%M', time.localtime(wait.gives_up_at))}"
    return text


def _short(count: int) -> str:
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if count >= size:
            shown = count / (1000 if unit == "k" else size)
            return f"{shown:,.0f}{unit}" if shown >= 100 else f"{shown:,.1f}{unit}"
    return f"{count:,}"


def duration(seconds: float) -> str:
    """Seconds as one says them: 80 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
