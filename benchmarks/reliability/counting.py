"""A fake server in a process of its own that counts every request, before it answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tests" / "backends" / "fake_server.py"
LINE = 65
"""Bytes of one line of the server's log: a sha256 in hex."""


@dataclass(frozen=True)
class CountingServer:
    """Address of the server, and the log of its requests."""

    url: str
    log: Path

    @property
    def n_received(self) -> int:
        return self.log.stat().st_size // LINE if self.log.exists() else 0

    def received(self, start: int = 0) -> list[str]:
        """Hashes of the bodies received, in order, from request number `start` on."""
        if not self.log.exists():
            return []
        with self.log.open() as file:
            file.seek(start * LINE)
            return file.read().split()


@contextmanager
def counting_server(folder: Path, *, latency_ms: float) -> Iterator[CountingServer]:
    """Serve while the block runs; every answer takes `latency_ms`."""
    log = folder / "received.txt"
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "--port", "0", "--latency-ms", str(latency_ms), "--log", log],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield CountingServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1", log)
    finally:
        process.kill()
        process.communicate()
