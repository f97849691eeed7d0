"""Reverse the options of real questions, in front of `transformers serve` and of `unswayed serve`: one command.

    python benchmarks/real/decisions.py --models FOLDER --data FOLDER [--write]

`models.py` makes the models; the data folder holds the original files of ARC-Challenge (`arc/`). UNSWAYED_SERVING names a Python with `transformers[serving]`, if this one lacks it. The
script starts both servers for each model and asks every question twice through each: with the options as
published, and reversed. Options are named by their texts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / "real"), str(ROOT / "benchmarks")]

from audits import arc  # noqa: E402

from evidence_table import Table, add_write  # noqa: E402
from unswayed.metrics.uncertainty import exact_interval  # noqa: E402

COLUMNS = ("model", "asked through", "questions", "changed", "largest change", "first", "right")


class Answer(NamedTuple):
    """A decision and the probabilities by option."""

    choice: str
    probabilities: dict[str, float]


@contextmanager
def server(command: Sequence[str], address: str) -> Iterator[str]:
    """Run a server until its output matches `address`; the address."""
    with tempfile.NamedTemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while not (found := re.search(address, Path(log.name).read_text(encoding="utf-8"))):
                if process.poll() is not None:
                    sys.exit(Path(log.name).read_text(encoding="utf-8"))
                time.sleep(0.2)
            yield found[1]
        finally:
            process.terminate()
            process.wait()


def decide(url: str, model: str, item: dict[str, Any], order: Sequence[int]) -> Answer:
    """Ask for the best option, in an order."""
    question = {
        "type": "choice",
        "instructions": "Which option is the best answer?",
        "criteria": {item["candidates"][place]: None for place in order},
    }
    body = {"model": model, "state": item["prompt"], "questions": {"q": question}}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/systemone", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            said = json.load(reply)["answers"]["q"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{item['id']}: {error}: {error.read(500).decode()}")
    return Answer(said["choice"], said["probabilities"])


def counted(hits: Sequence[bool]) -> str:
    """Format a share with its exact 95% interval."""
    share, n = sum(hits) / len(hits), len(hits)
    low, high = exact_interval(share, n, (0.0, 1.0))
    return f"{100 * share:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def cells(url: str, model: str, items: Sequence[dict[str, Any]]) -> list[object]:
    """Ask every question in both orders and return the figures of a row."""
    changed, first, right, changes = [], [], [], []
    for item in items:
        own = range(len(item["candidates"]))
        orders = (own, own[::-1])
        said = [decide(url, model, item, order) for order in orders]
        one, two = (answer.probabilities for answer in said)
        changed.append(said[0].choice != said[1].choice)
        changes.append(max(abs(one[name] - two[name]) for name in one))
        for answer, order in zip(said, orders, strict=True):
            first.append(answer.choice == item["candidates"][order[0]])
            right.append(answer.choice == item["candidates"][item["gold"]])
    halves = (f"{100 * sum(hits) / len(hits):.1f}%" for hits in (first, right))
    return [len(items), counted(changed), f"{max(changes):.3g}", *halves]


def main() -> None:
    """Start the servers, ask and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in ("models", "data"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--names", nargs="+", default=["smollm2-135m"], metavar="MODEL")
    parser.add_argument("--items", type=int, default=100)
    add_write(parser, "real-models")
    given = parser.parse_args()
    items = [item for item in arc(given.data) if len({*item["candidates"]}) == 4]
    items = sorted(items, key=lambda item: hashlib.sha256(item["id"].encode()).digest())
    table = Table(COLUMNS)
    for name in given.names:
        folder = str(given.models / name)
        local = ["--host", "127.0.0.1", "--port", "0"]
        serve = [
            os.environ.get("UNSWAYED_SERVING", sys.executable),
            "-m",
            "transformers.cli.transformers",
            "serve",
            folder,
            *local,
        ]
        serve += ["--device", "cpu", "--dtype", "float32"]
        ours = [sys.executable, "-m", "unswayed", "serve", f"systemone/{folder}", "--port", "0"]
        with server(serve, r"running on (http://127\.0\.0\.1:\d+)") as url:
            asked = items[: given.items]
            table.add(name, "`transformers serve`", *cells(url, folder, asked))
            ours += ["--base-url", f"{url}/v1", "--timeout", "600"]
            with server(ours, r" at (http://127\.0\.0\.1:\d+)") as proxy:
                table.add(name, "`unswayed serve`", *cells(proxy, folder, asked))
    if given.write:
        table.keep("real-models", "decisions")


if __name__ == "__main__":
    main()
