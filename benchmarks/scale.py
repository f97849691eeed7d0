"""Measure CPU time and memory of whole commands on large recorded data, one process each.

    python benchmarks/scale.py [--items 100000] [--write]

The data are those of benchmarks/audit.py. Calls are made by the simulated judge about five times as many pairs,
and the same command again resumes them. The machine is shared: compare figures of one run.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import audit
from evidence_table import Table, add_write
from unswayed.model.items import Task

COLUMNS: Final = ("work", "goal, CPU s", "CPU s", "memory goal", "peak memory")
LOAD: Final = "import sys; from unswayed import {name} as load; len(list(load(sys.argv[1])))"
RECORDED: Final = (
    "import sys; from unswayed.data.importers import read_recording; read_recording(sys.argv[1])"
)


class Work(NamedTuple):
    """A command with its goals in seconds of CPU and MB; None where there is none."""

    title: str
    words: tuple[str, ...]
    seconds: float | None
    memory: int | None


def spent(folder: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """Run Python with these words; seconds of CPU, and MB at the peak."""
    with (folder / "told.txt").open("wb") as told:
        process = subprocess.Popen([sys.executable, *words], cwd=folder, stdout=told, stderr=told)
        _, code, usage = os.wait4(process.pid, 0)
    if code:
        raise SystemExit(f"{' '.join(words)}: {(folder / 'told.txt').read_text()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def works(count: int) -> list[Work]:
    """Return the commands, those that read the calls of an earlier one after it."""
    run = ("-m", "unswayed", "audit", "items.jsonl", "--decisions", "decisions.jsonl", "--methods")
    made = ("-m", "unswayed", "audit", "many.jsonl", "--model", "simulated/judge", "--out", "made")
    data = f"{count:,} recorded pairs × 4"
    return [
        Work(
            f"audit of {data}, `--methods direct,vote`",
            (*run, "direct,vote", "--out", "two"),
            3,
            400,
        ),
        Work("the same, `--methods all`", (*run, "all", "--out", "all"), 12, 400),
        Work(f"audit that makes {10 * count:,} calls", made, None, None),
        Work("the same command, resumed", made, 30, 500),
        Work(
            f"{4 * count:,} recorded decisions loaded",
            ("-c", RECORDED, "decisions.jsonl"),
            10,
            2000,
        ),
        Work(
            f"{count:,} items loaded",
            ("-c", LOAD.format(name="load_items"), "items.jsonl"),
            2,
            None,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    add_write(parser, "performance")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audit.written(folder, 5 * arguments.items, Task.PAIRWISE, recorded=False)
        (folder / "items.jsonl").rename(folder / "many.jsonl")
        audit.written(folder, arguments.items, Task.PAIRWISE, recorded=True)
        for work in works(arguments.items):
            seconds, memory = spent(folder, work.words)
            table.add(
                work.title,
                "–" if work.seconds is None else f"{work.seconds:g}",
                f"{seconds:.1f}",
                "–" if work.memory is None else f"{work.memory:,} MB",
                f"{memory:,.0f} MB",
            )
    if arguments.write:
        table.keep("performance", "audits")


if __name__ == "__main__":
    main()
