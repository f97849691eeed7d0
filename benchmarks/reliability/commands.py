"""The commands that are killed and interrupted, what they read, and the server that they ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reliability.counting import CountingServer, counting_server

CONNECTIONS = 16
MODEL = ("--model", "openai-api/killtest/fake", "--max-connections", str(CONNECTIONS))


@dataclass(frozen=True)
class Command:
    """One command of the table.

    Attributes:
        arguments: After `unswayed`, run in the trial's directory.
        outputs: Files it writes, relative to that directory.
        others: Further names that may lie there, once it has finished.
        streams: Whether the output grows line by line and may be seen half done.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    others: tuple[str, ...] = ()
    streams: bool = False


def commands(data: Path) -> tuple[Command, ...]:
    """The commands, on the files of `write_data`."""
    pairs, run, log = str(data / "pairs.jsonl"), str(data / "run"), str(data / "log.jsonl")
    calls = ("calls.sqlite",)
    of_audit = (*calls, "run.json", "SHA256SUMS", "report.html", "answers.json", "flipped.json")
    few = ("--resamples", "100", *MODEL)
    return (
        Command(
            "audit",
            ("audit", pairs, "--out", ".", *few),
            ("metrics.json",),
            of_audit,
        ),
        *(
            Command(
                task,
                (
                    "audit",
                    str(data / f"{task}.jsonl"),
                    "--methods",
                    f"direct,{method}",
                    "--out",
                    ".",
                    *few,
                ),
                ("metrics.json",),
                of_audit,
            )
            for task, method in (("listwise", "pcf"), ("rubric", "bias-cost"))
        ),
        Command(
            "judge",
            ("judge", pairs, "--out", "out.jsonl", *MODEL),
            ("out.jsonl",),
            ("out.calls", "out.calls/calls.sqlite"),
            streams=True,
        ),
        Command(
            "calibrate",
            ("calibrate", "cell-median", pairs, "--out", "out.json", *MODEL),
            ("out.json",),
            ("out.calls", "out.calls/calls.sqlite"),
        ),
        Command(
            "filter",
            ("filter", pairs, "--out", "out.jsonl", *MODEL),
            ("out.jsonl",),
            ("out.calls", "out.calls/calls.sqlite"),
        ),
        Command("import", ("import", "jsonl", log, "--out", "out.jsonl"), ("out.jsonl",)),
        Command("export", ("export", run, "--out", "out.jsonl"), ("out.jsonl",)),
    )


def write_data(folder: Path, environment: Mapping[str, str], *, n_pairs: int, n_log: int) -> None:
    """Items, a finished run to export, and a log to import."""
    with (folder / "pairs.jsonl").open("w") as file:
        for number in range(n_pairs):
            candidates = [f"It is {number}.", f"It is not {number}, but {number + 1}."]
            row = {"id": f"q{number}", "task": "pairwise", "prompt": f"Question {number}?"}
            file.write(json.dumps({**row, "candidates": candidates, "gold": number % 2}) + "\n")
    of_task: dict[str, dict[str, object]] = {
        "listwise": {},
        "rubric": {"response": "It is so.", "values": [1, 2, 3]},
    }
    for task, fields in of_task.items():
        with (folder / f"{task}.jsonl").open("w") as file:
            for number in range(n_pairs // 3):
                row = {"id": f"q{number}", "task": task, "prompt": f"Question {number}?", **fields}
                candidates = [f"Text {number}.{candidate}." for candidate in range(3)]
                file.write(json.dumps({**row, "candidates": candidates}) + "\n")
    finish(
        ("audit", str(folder / "pairs.jsonl"), "--out", str(folder / "run"), *MODEL),
        folder,
        environment,
    )
    exported = folder / "exported.jsonl"
    finish(("export", str(folder / "run"), "--out", str(exported)), folder, environment)
    lines = exported.read_text().splitlines()
    with (folder / "log.jsonl").open("w") as file:
        for number in range(n_log):
            row = json.loads(lines[number % len(lines)])
            row["item_id"] = f"q{number}"
            file.write(json.dumps(row) + "\n")


def start(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "unswayed", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Run a command to its end; returns its seconds.

    Raises:
        RuntimeError: If it does not end with 0.
    """
    begun = time.monotonic()
    process = start(arguments, folder, environment)
    _, said = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {process.returncode}: {said[-400:]}")
    return time.monotonic() - begun


@contextmanager
def session(
    folder: Path, *, n_pairs: int, n_log: int, latency_ms: float = 50.0
) -> Iterator[tuple[dict[str, str], CountingServer]]:
    """A server, the environment that leads to it, and the data in `folder`."""
    with counting_server(folder, latency_ms=latency_ms) as server:
        environment = {**os.environ, "KILLTEST_BASE_URL": server.url, "OMP_NUM_THREADS": "1"}
        write_data(folder, environment, n_pairs=n_pairs, n_log=n_log)
        yield environment, server
