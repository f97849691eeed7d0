"""Servers in processes of their own: `unswayed serve`, and `transformers serve` behind it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def serving(url: str, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`unswayed serve` in front of a server: address and process."""
    line = [sys.executable, "-m", "unswayed", "serve", *options]
    line += ["--base-url", url, "--port", "0"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        yield address, process
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def transformers_serve(python: str, model: Path, *options: str) -> Iterator[str]:
    """`transformers serve` with one model on the CPU: its base address, with `/v1`."""
    line = [python, "-m", "transformers.cli.transformers", "serve", str(model), *options]
    line += ["--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", "0"]
    log = model.with_name(f"{model.name}.log")
    with log.open("w") as out:
        process = subprocess.Popen(line, stdout=out, stderr=out)
    try:
        while not (found := re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"{found[1]}/v1"
    finally:
        process.terminate()
        process.wait(60)


def post(url: str, body: Any) -> tuple[int, Any]:
    """Status and JSON of the answer to a request."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def counters(url: str) -> dict[str, float]:
    """The counters of `/metrics` of a server, by their short names."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    pairs: Sequence[list[str]] = [line.rsplit(" ", 1) for line in lines]
    return {
        name.removeprefix("unswayed_serve_").removesuffix("_total"): float(value)
        for name, value in pairs
    }
