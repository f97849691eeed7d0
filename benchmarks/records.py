"""Reading items: msgspec against pydantic, CPU seconds for the same lines.

    python benchmarks/records.py [--lines 1000000]

Prints the median of three runs each, alternating. pydantic is read if it is installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

from unswayed.model.items import decode_item


def lines_of(count: int) -> list[bytes]:
    rows = []
    for k in range(count):
        row = {
            "id": f"q{k}",
            "task": "pairwise",
            "prompt": "Which of the two answers explains the tides better?" * 3,
            "candidates": ["The moon pulls at the water. " * 8, "It is the wind. " * 12],
            "gold": k % 2,
            "group": "science",
            "meta": {"source": "bench", "row": k},
        }
        rows.append(json.dumps(row).encode())
    return rows


def read_with_msgspec(lines: list[bytes]) -> None:
    for line in lines:
        decode_item(line)


def pydantic_reader() -> Callable[[list[bytes]], None] | None:
    try:
        from pydantic import BaseModel, ConfigDict
    except ImportError:
        return None

    class Item(BaseModel):
        model_config = ConfigDict(frozen=True, extra="forbid")
        id: str
        task: str
        prompt: str
        candidates: tuple[str, ...]
        gold: int | None = None
        group: str | None = None
        meta: dict[str, object] = {}

    def read(lines: list[bytes]) -> None:
        for line in lines:
            Item.model_validate_json(line)

    return read


def cpu(read: Callable[[list[bytes]], None], lines: list[bytes]) -> float:
    start = time.process_time()
    read(lines)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = lines_of(parser.parse_args().lines)
    readers = {"msgspec, with our checks": read_with_msgspec}
    if (other := pydantic_reader()) is not None:
        readers["pydantic, types only"] = other
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(3):
        for name, read in readers.items():
            times[name].append(cpu(read, lines))
    for name, some in times.items():
        middle = statistics.median(some)
        print(
            f"{name:26s} {middle:6.2f} CPU-s for {len(lines):,} lines, {1e6 * middle / len(lines):.2f} us a line"
        )


if __name__ == "__main__":
    main()
