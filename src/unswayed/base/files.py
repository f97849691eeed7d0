"""Open files safely, write files whole or not at all, and keep files that nobody else sees."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import select
import stat
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import IO, Any, Final

from unswayed.base.errors import UsageError

if sys.platform != "win32":
    import fcntl

LARGEST: Final = 64_000_000
"""Most bytes of a line, and of a file read at once: template, recipe, price table or method file."""
PIPE_MS: Final = 1000
"""Milliseconds that a pipe may be without a writer."""
_SEEKING: Final = threading.Lock()


def open_file(path: str | Path) -> IO[bytes]:
    """Open a file, a terminal or a pipe with a writer for reading bytes.

    Raises:
        OSError: If the path is none of these or cannot be read.
    """
    if os.path.isdir(path):
        raise OSError(errno.EISDIR, "it is a directory; give a file")
    at_once = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once))  # noqa: SIM115
    mode, fault = os.fstat(file.fileno()).st_mode, ""
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not file.isatty()):
        fault = "it is a device; give a file"
    elif stat.S_ISFIFO(mode) and not _is_written(path, file.fileno()):
        fault = "no process writes to this pipe; start the writer first"
    if fault:
        file.close()
        raise OSError(errno.EINVAL, fault)
    if sys.platform != "win32":
        os.set_blocking(file.fileno(), True)
    return file


def _is_written(path: str | Path, pipe: int) -> bool:
    """Return True if a pipe has bytes or a writer, or had one since it was opened."""
    seen = select.poll()
    seen.register(pipe, select.POLLIN)
    if seen.poll(PIPE_MS):
        return True
    # once a writer has left, the system tells that there is none
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    return seen.poll(0) != [(pipe, select.POLLHUP)]


def read_whole(path: str | Path) -> bytes:
    """Read a file that is small by nature.

    Raises:
        OSError: If it cannot be read, as for `open_file`, or has more than `LARGEST` bytes.
    """
    with open_file(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST / 1e6:g} MB; make it smaller")
    return content


def read_object(path: Path) -> dict[str, Any]:
    """Return an object in a JSON file; an empty one if there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; it takes its place when the block ends, and leaves no trace if it fails.

    What an earlier process left behind when it was killed is removed first: the kernel drops the
    lock of a dead process, so a temporary that can be locked belongs to nobody. A device or a pipe
    is written, not replaced.

    Raises:
        OSError: If it cannot be written.
    """
    if _is_special(path):
        with path.open("wb") as special:
            yield special
        return
    sweep(path)
    temporary, file = _temporary(path)
    try:
        with file:
            yield file
            file.flush()
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _temporary(path: Path) -> tuple[Path, IO[bytes]]:
    """Return a new file beside a path, locked; made again where a sweep took it before it was locked."""
    while True:
        temporary = temporary_for(path)
        # a new file: one that was put there as a link to another is never written through
        file = temporary.open("xb")
        try:
            lock(file)
        except BlockingIOError:
            swept = True
        except OSError:  # no locks here, so nobody sweeps either
            swept = False
        else:
            swept = not temporary.exists()
        if not swept:
            return temporary, file
        file.close()
        temporary.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # it is not there; if it cannot be looked at, writing says why
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def temporary_for(path: Path) -> Path:
    """Return a new name beside a file, which `sweep` knows."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def sweep(path: Path) -> None:
    """Remove temporaries of a file that no process holds; what cannot be removed does no harm."""
    for stale in path.parent.glob(f".{escape(path.name)}.*.part"):
        with contextlib.suppress(OSError), stale.open("rb") as file:
            lock(file)
            stale.unlink()


def lock(file: IO[bytes] | int) -> None:
    """Take the lock of an open file or folder; the kernel drops it with the file or the process.

    Raises:
        BlockingIOError: If another process has it.
        OSError: If there are no locks here.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unnamed_file(owner: object) -> IO[Any]:
    """Return a temporary file without a name, which nobody else can change and which lasts as its owner.

    Raises:
        UsageError: If there can be none.
    """
    try:
        file: IO[Any] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with its owner
    except OSError as error:
        raise no_room(error) from None
    weakref.finalize(owner, _close, file)
    return file


def bytes_at(file: IO[Any], begin: int, size: int) -> bytes:
    """Bytes of an open file, fewer at its end; nothing that is still to be written is seen.

    Threads and forked processes may read at once.
    """
    if sys.platform != "win32":  # forked processes share one place in the file, so it stays
        return os.pread(file.fileno(), size, begin)
    with _SEEKING:
        file.seek(begin)
        return bytes(file.read(size))


def _close(file: IO[Any]) -> None:
    with contextlib.suppress(OSError):  # a full disk, which was told when it was written to
        file.close()


def no_room(error: OSError) -> UsageError:
    """Build the error for a folder that cannot hold a temporary file."""
    return UsageError.cannot(
        "keep the data in a temporary file",
        error,
        "Set TMPDIR to a directory with enough free space for the data.",
    )
