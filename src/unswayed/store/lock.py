"""One writer per run directory: an advisory lock that dies with its process."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import IO

from unswayed.base.errors import RunDirectoryError

if sys.platform != "win32":
    import fcntl

HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Opening a link is refused: whoever may write here must not choose which file is truncated."""


class WriterLock:
    """The right to write one file, held until `release` or the end of the process.

    The kernel drops the lock of a killed process, so a leftover lock file never blocks. SQLite
    keeps the file whole with or without it; the lock is there so that two runs do not pay for the
    same calls twice. Where the system has no such locks (Windows, some network file systems) it
    is not enforced.
    """

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path = path
        self._file: IO[str] | None = file

    @classmethod
    def acquire(cls, path: Path) -> WriterLock:
        """Take the lock; its file is removed on release.

        Raises:
            RunDirectoryError: If another writer holds it, or the file cannot be opened.
        """
        while True:
            try:
                file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666), "r+")
            except OSError as error:
                if path.is_symlink():
                    raise RunDirectoryError(
                        f"{path} is a symbolic link, and a lock must be a regular file. Remove "
                        "the link, or choose another --out."
                    ) from None
                raise RunDirectoryError.cannot(
                    f"write to {path.parent}",
                    error,
                    "Choose another --out.",
                ) from None
            if not _locked(file):
                holder = _holder(file)
                file.close()
                raise RunDirectoryError(
                    f"{path.parent} is being written by {holder}. Wait for it to finish, stop it, "
                    "or choose another --out."
                )
            if _is_current(path, file):
                _sign(file)
                return cls(path, file)
            file.close()  # the last holder removed the file between our open and our lock

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()  # while still held: a waiting process sees that its file is gone
        self._file.close()
        self._file = None


def _locked(file: IO[str]) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in HELD  # a file system without locks: go on without
    return True


def _is_current(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except OSError:
        return False


def _sign(file: IO[str]) -> None:
    """Say who holds the lock, for the message a second writer gets."""
    with contextlib.suppress(OSError):  # a full disk must not stop a run that may need no space
        file.seek(0)
        file.truncate()
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": since}, file)
        file.flush()


def _holder(file: IO[str]) -> str:
    try:
        file.seek(0)
        said = json.load(file)
        pid, host, since = int(said["pid"]), str(said["host"]), str(said["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if pid == os.getpid() and host == socket.gethostname():
        return f"this process ({pid}), which opened it before and has not closed it"
    where = "" if host == socket.gethostname() else f" on {host}"
    return f"process {pid}{where} since {since}"
