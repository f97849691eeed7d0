"""Measure an audit or a judge in shards: CPU time, peak memory and bytes per call.

    python benchmarks/shards.py audit [--items 500000] [--shards 20] [--compare] [--write]
    python benchmarks/shards.py judge --items 100000 [--write]

A simulated judge is asked, about pairs in two orders or with one call per pair. Each shard and the merge
is a command in a process of its own. `--compare` also audits in one process and checks that the merged run
has the same figures. `--write` also multiplies the costs of one call for `docs/scale.md`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from audit import items_of
from evidence_table import Table, add_write, evidence
from unswayed.model.items import Task, encode_item

METHODS = "direct,average,cell-median"
MODEL = "simulated/judge?slot=0.6&label=0.4&unparsed=0.01&tie=0.005"
SIZES = (  # power of ten of the calls, command, shards, work
    (6, "audit", "20", "500,000 pairs in both orders"),
    (8, "judge", "20 for each of 1,000 files", "one call per pair, 100,000 pairs in a file"),
    (9, "judge", "20 for each of 10,000 files", "the same"),
)
COLUMNS = ("work", "CPU s", "CPU-ms per call", "peak memory", "bytes per call")
SAME = ("metrics.json", "answers.json", "flipped.json")


class Cost(NamedTuple):
    """CPU seconds and the largest resident memory of processes, in MB."""

    seconds: float
    peak: float


def run(*arguments: object) -> Cost:
    """Run a command of the program in a process of its own, its output thrown away."""
    command = [sys.executable, "-m", "unswayed", *map(str, arguments)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def together(costs: Iterable[Cost]) -> Cost:
    """Add up the CPU time and keep the largest peak."""
    seconds, peaks = zip(*costs, strict=True)
    return Cost(sum(seconds), max(peaks))


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of files."""
    return sum(path.stat().st_size for path in paths)


def kept_files(folder: Path) -> list[Path]:
    """Return the files of a merged run that grow with its calls."""
    return [path for path in folder.glob("*") if path.name in ("calls.sqlite", "verdicts.jsonl")]


def add_row(table: Table, work: str, cost: Cost, n_calls: int, size: int) -> None:
    """Print a command's cost, by call."""
    table.add(
        work,
        f"{cost.seconds:.1f}",
        f"{1e3 * cost.seconds / n_calls:.3f}",
        f"{cost.peak:,.0f} MB",
        f"{size / n_calls:,.0f}",
    )


def differing(one: Path, other: Path) -> list[str]:
    """Names of files of two runs that differ, apart from the numbers of calls."""
    names = []
    for name in SAME:
        contents = [msgspec.json.decode((folder / name).read_bytes()) for folder in (one, other)]
        for content in contents:
            content.pop("calls", None) if name == "metrics.json" else None
        if contents[0] != contents[1]:
            names.append(name)
    return names


def write_items(path: Path, count: int) -> Path:
    """Write pairs, one per line."""
    with path.open("wb") as file:
        file.writelines(encode_item(item) + b"\n" for item in items_of(count, Task.PAIRWISE))
    return path


def in_shards(
    table: Table, command: Sequence[object], out: Path, n_shards: int, n_calls: int
) -> None:
    """Run a command in shards, one after the other, and merge them."""
    name = command[0]
    shards = [[*command, "--shard", f"{k}/{n_shards}", "--out", out] for k in range(n_shards)]
    cost = together(run(*shard) for shard in shards)
    add_row(table, f"{name}, {n_shards} shards", cost, n_calls, size_of(out.glob("shards/0*")))
    cost = run("merge", out)
    add_row(table, f"{name}, merge", cost, n_calls, size_of(kept_files(out)))


def measure_audit(folder: Path, count: int, n_shards: int, *, compare: bool) -> Table:
    """Ask pairs in both orders and merge the shards."""
    table = Table(COLUMNS)
    data = write_items(folder / "items.jsonl", count)
    audit = ["audit", data, "--model", MODEL, "--methods", METHODS]
    whole = folder / "whole"
    if compare:
        cost = run(*audit, "--out", whole)
        add_row(table, "audit, one process", cost, 2 * count, size_of(kept_files(whole)))
    in_shards(table, audit, folder / "parts", n_shards, 2 * count)
    if compare and (names := differing(folder / "parts", whole)):
        raise SystemExit(f"the merged run differs from one process: {', '.join(names)}")
    return table


def measure_judge(folder: Path, count: int, n_shards: int) -> Table:
    """Judge pairs with one call each and merge the shards."""
    table = Table(COLUMNS)
    few, data = write_items(folder / "few.jsonl", 200), write_items(folder / "items.jsonl", count)
    fitted = folder / "fitted.json"
    run("calibrate", "cell-median", few, "--model", MODEL, "--out", fitted)
    judge = ["judge", data, "--model", MODEL, "--method", fitted]
    in_shards(table, judge, folder / "parts", n_shards, count)
    return table


def projected(costs: Mapping[str, Sequence[str]]) -> Table:
    """Multiply the costs of one call by row of the tables; a file of data is in 20 shards."""
    table = Table(("calls", "work", "shards", "shard files", "CPU, shards", "CPU, merge"))
    for power, command, shards, work in SIZES:
        if f"{command}, 20 shards" not in costs:
            continue
        shard_row, merge_row = costs[f"{command}, 20 shards"], costs[f"{command}, merge"]
        size = float(shard_row[4].replace(",", "")) * 10**power / 1e9
        hours = [float(row[2]) * 10**power / 3.6e6 for row in (shard_row, merge_row)]
        told = (
            f"{size:,.1f} GB",
            *(f"{h:,.1f} h" if h >= 1 else f"{60 * h:,.0f} min" for h in hours),
        )
        table.add(f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[power]}", f"`{command}`: {work}", shards, *told)
    return table


def main() -> None:
    """Measure, print the table, and keep it with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["audit", "judge"])
    parser.add_argument("--items", type=int, default=500_000)
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--compare", action="store_true", help="compare with one process")
    add_write(parser, "performance")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TMPDIR"] = name
        if chosen.command == "audit":
            table = measure_audit(Path(name), chosen.items, chosen.shards, compare=chosen.compare)
        else:
            table = measure_judge(Path(name), chosen.items, chosen.shards)
    if chosen.write:
        table.keep("performance", f"shards-{chosen.command}")
        tables = evidence.load("performance")["tables"]
        rows = [
            row for name in tables if name.startswith("shards-") for row in tables[name]["rows"]
        ]
        projected({row[0]: row for row in rows}).keep("performance", "scale")


if __name__ == "__main__":
    main()
