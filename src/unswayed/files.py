"""Files that appear with their whole content or not at all."""

from __future__ import annotations

import contextlib
import secrets
import stat
import sys
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

__all__ = ["whole_file"]


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write; it takes its place when the block ends, and leaves no trace if it fails.

    What an earlier process left behind when it was killed is removed first: the kernel drops the
    lock of a dead process, so a temporary that can be locked belongs to nobody. A device or a pipe
    is written, not replaced.

    Raises:
        OSError: If it cannot be written.
    """
    if _is_special(path):
        with path.open("wb") as file:
            yield file
        return
    _sweep(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        # a new file: one that was put there as a link to another is never written through
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # it is not there; if it cannot be looked at, writing says why
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _sweep(path: Path) -> None:
    with contextlib.suppress(OSError):  # what cannot be removed does no harm
        for stale in path.parent.glob(f".{escape(path.name)}.*.part"):
            with stale.open("rb") as file:
                if _lock(file):
                    stale.unlink()


def _lock(file: IO[bytes]) -> bool:
    """Take the lock of an open file; False if another process has it or there are no locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
