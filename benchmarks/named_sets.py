"""Measure the reading of 100,000 questions of a benchmark from its Parquet file to items.

    python benchmarks/named_sets.py [--items 100000] [--rounds 3]

The questions are made here, in the layout of MMLU, seven times as many. Measured is
`load_data("mmlu", data_dir=…)`: reading, checking the fields, options that speak of others, the
items' own checks and their fingerprint. CPU time; the median over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unswayed.sources import load_data

SUBJECTS = 57


def write(folder: Path, count: int) -> None:
    """A local copy with so many questions."""
    numbers = range(count)
    table = {
        "question": [f"Which of the things on list {k} is the one asked about?" for k in numbers],
        "subject": [f"subject {k % SUBJECTS}" for k in numbers],
        "choices": [[f"the {name} of {k}" for name in ("w", "x", "y", "z")] for k in numbers],
        "answer": [k % 4 for k in numbers],
    }
    (folder / "all").mkdir()
    pq.write_table(pa.table(table), folder / "all" / "test-00000-of-00001.parquet")


def seconds(folder: Path, count: int) -> float:
    """CPU seconds of one load."""
    start = time.process_time()
    items = load_data("mmlu", data_dir=folder)
    spent = time.process_time() - start
    assert len(items) == count
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, arguments.items)
        spent = [seconds(folder, arguments.items) for _ in range(arguments.rounds)]
    print(f"{arguments.items:,} questions: {statistics.median(spent):.2f} s of CPU (median)")


if __name__ == "__main__":
    main()
