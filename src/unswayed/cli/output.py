"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from unswayed.base.visible import lines_of, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 120
"""Columns when the output is not a terminal: logs have room for the whole table."""


def write_bytes(data: bytes) -> bool:
    """Write to standard output at once; return False if the reader left (`| head`), not an error."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        drop_output()
        return False
    return True


def write(text: str) -> None:
    """Write lines of text to standard output, as plain characters; those it lacks become `?`."""
    _write_lines(lines_of(text))


def show(renderable: RenderableType) -> None:
    """Write something rich: with colours and as wide as the terminal, plain elsewhere."""
    from rich.console import Console

    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if narrow else WIDTH)
    with console.capture() as drawn:
        console.print(renderable, crop=False)
    _write_lines(drawn.get().rstrip("\n"))  # with the colours of a terminal


def note(message: object) -> None:
    """Tell the user something on standard error, on one line of plain characters."""
    print(f"unswayed: {one_line(str(message))}", file=sys.stderr, flush=True)


def _write_lines(text: str) -> None:
    write_bytes(f"{text}\n".encode(sys.stdout.encoding or "utf-8", errors="replace"))


def aside(text: str) -> None:
    """Print counts on standard error at the end of a stream, without the prefix of a message."""
    print(text, file=sys.stderr, flush=True)


def drop_output() -> None:
    """Send the rest of standard output nowhere, so that Python's own flush at exit is quiet."""
    with suppress(OSError, ValueError):  # a stream that is no file has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def usable_streams() -> None:
    """Replace standard streams that the caller has closed (`>&-`), which Python makes None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
