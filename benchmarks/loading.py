"""Measure CPU seconds and memory of reading a large file: items, and recorded decisions.

    python benchmarks/loading.py                                   # 100 000 items, 1 000 000 decisions
    python benchmarks/loading.py --items 1000 --decisions 4000

Decisions are read as `unswayed audit --decisions` reads them, from JSON Lines, compressed, and from
Parquet where pyarrow is installed. Data are simulated with a fixed seed in a temporary folder, and
each file is read by a process of its own, whose peak of memory includes Python and numpy.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import audit
from unswayed.data.importers import read_decisions_file, read_recording
from unswayed.model.items import Task, load_items

READERS: Final[Mapping[str, tuple[str, Callable[[Path], object]]]] = {
    "items": ("items.jsonl", load_items),
    "decisions": ("decisions.jsonl", read_recording),
    "decisions, compressed": ("decisions.jsonl.gz", read_recording),
    "decisions, Parquet": ("decisions.parquet", read_recording),
    "decisions, one record each": ("decisions.jsonl", read_decisions_file),
}


def write(folder: Path, n_items: int, n_decisions: int) -> None:
    """Write the files."""
    audit.written(folder, n_items, Task.PAIRWISE, recorded=False)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        n_asked = max(1, n_decisions // len(audit.shown_of(Task.PAIRWISE)))
        _, decisions = audit.written(Path(name), n_asked, Task.PAIRWISE, recorded=True)
        assert decisions is not None
        decisions.replace(folder / decisions.name)
    packed = folder / "decisions.jsonl.gz"
    with (
        gzip.open(packed, "wb", compresslevel=1) as target,
        (folder / "decisions.jsonl").open("rb") as lines,
    ):
        target.writelines(lines)
    if importlib.util.find_spec("pyarrow") is not None:
        from unswayed.auditing.export import export_decisions

        written = read_decisions_file(folder / "decisions.jsonl")
        export_decisions(written, folder / "decisions.parquet", "parquet")


def read(name: str, folder: Path) -> None:
    """Read one file, and say what it took."""
    file, reader = READERS[name]
    start = time.process_time()
    content = reader(folder / file)
    spent = time.process_time() - start
    count = len(content)  # type: ignore[arg-type]
    print(f"{name:28s} {count:9,d} {spent:7.2f} CPU-s {1e6 * spent / count:6.2f} µs each", end="")
    print(f" {audit.peak_bytes() / 1e6:7.0f} MB")


def main() -> None:
    """Write the files, read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--read", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--write", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        read(chosen.read[0], Path(chosen.read[1]))
        return
    if chosen.write:
        write(Path(chosen.write), chosen.items, chosen.decisions)
        return
    with tempfile.TemporaryDirectory() as folder:
        sizes = ["--items", str(chosen.items), "--decisions", str(chosen.decisions)]
        subprocess.run([sys.executable, __file__, *sizes, "--write", folder], check=True)
        for name, (file, _) in READERS.items():
            if (Path(folder) / file).exists():
                subprocess.run([sys.executable, __file__, "--read", name, folder], check=True)


if __name__ == "__main__":
    main()
