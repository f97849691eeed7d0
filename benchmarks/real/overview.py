"""Put each model's judges on each set side by side, from the tables that the other commands kept.

    python benchmarks/real/overview.py [--write]

The share is *right most often*: for pairs, right in both orders. Of several seeds of a training, each has its
share. Nothing is asked.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from evidence_table import Table, add_write, evidence

METHODS = ("direct", "canonical", "average", "pride")
TRAINED = re.compile(r"after rl --exact(, seed \d+)?")
SETS = {  # by table: the set, the columns that name a judge and hold the share
    "arc": ("ARC-Challenge", "method", "right most often"),
    "mmlu": ("MMLU", "method", "right most often"),
    "llmbar": ("LLMBar", "method", "right most often"),
    "trained": ("LLMBar", "judge", "right in both orders"),
    "slower": ("LLMBar, short pairs", "judge", "right in both orders"),
    "questions": ("ARC-Challenge, short questions", "judge", "right in both orders"),
}


def shares(kept: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """Yield model, set and number of items, the judge, and its share as printed."""
    for name, (title, judge, share) in SETS.items():
        for row in kept[name]["rows"]:
            cell = dict(zip(kept[name]["columns"], row, strict=True))
            yield (cell["model"], title, cell["items"]), cell[judge], cell[share]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_write(parser, "real-models")
    given = parser.parse_args()
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for key, judge, share in shares(evidence.load("real-models")["tables"]):
        found.setdefault(key, {})[judge] = share
    table = Table(("model", "set", "items", *METHODS, "trained"))
    for key, own in found.items():
        if METHODS[0] in own:  # else a part of a set, of which only a trained judge was asked
            seeds = [share for judge, share in own.items() if TRAINED.fullmatch(judge)]
            bare = [share.split()[0] for share in seeds]
            trained = " · ".join(seeds if len(seeds) == 1 else bare) or "–"
            table.add(*key, *(own.get(judge, "–") for judge in METHODS), trained)
    if given.write:
        table.keep("real-models", "overview")


if __name__ == "__main__":
    main()
