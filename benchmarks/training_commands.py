"""Train the built-in judge with each command of `unswayed train`, and audit it on items that it has not seen.

    python benchmarks/training_commands.py [--seeds 3] [--arms NAME ...] [--write]

Each command runs as a user runs it, in a temporary folder: `unswayed filter` chooses the items, the shipped
recipe trains, `unswayed audit` asks about the 1,000 items of the built-in set, one call each. Cells are the
mean over seeds with the lowest and highest seed; CPU seconds are those of training, start included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evidence_table import Table, add_write

ARMS: Final[Mapping[str, str]] = {
    "train distill": "no",
    "train rl --exact": "yes",
    "train rl --exact --layouts all": "yes",
    "train sft": "yes",
    "train sft --set target.invariance=1 --layouts all": "yes",
    "train rl --reward inv": "yes",
    "train pa-grpo": "yes",
    "train grpo": "yes",
    "train pif": "yes",
}
"""Commands, and whether they are given gold."""

COLUMNS: Final = (
    "training",
    "gold",
    "accuracy",
    "consistency",
    "consistent accuracy",
    "consistency, labels move",
    "consistency, orders move",
    "CPU s of a run",
)


def unswayed(folder: Path, *words: str) -> float:
    """Run the command in a folder; its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "unswayed", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def audited(folder: Path, model: str, out: str) -> Mapping[str, Any]:
    """Audit a model on the built-in set in every protocol; the record of its metrics."""
    unswayed(folder, "audit", "tiny-judge", "--model", model, "--protocol", "all", "--out", out)
    metrics: Mapping[str, Any] = json.loads((folder / out / "metrics.json").read_bytes())
    return metrics


def shares(metrics: Mapping[str, Any], method: str = "direct") -> list[float]:
    """Return the five shares of a row, in percent."""
    row = metrics["methods"][method]
    own = [row[name]["value"] for name in ("accuracy", "consistency", "consistent_accuracy")]
    moved = [metrics["protocols"][name]["consistency"]["value"] for name in ("label", "order")]
    return [100 * share for share in (*own, *moved)]


def cell(values: Sequence[float]) -> str:
    """Format a mean, with its range over several seeds."""
    mean = f"{sum(values) / len(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f}–{max(values):.1f})"


def trained(folder: Path, arm: str, seeds: int) -> list[str]:
    """Train and audit one arm; the cells of its row."""
    rows, seconds = [], []
    for seed in range(seeds):
        out = f"{'-'.join(arm.split()).replace('=', '-')}-{seed}"
        data = "train.jsonl" if ARMS[arm] == "yes" else "questions.jsonl"
        given = (data, "--recipe", "tiny-judge", "--set", f"run.seed={seed}", "--out", out)
        command, objective, *options = arm.split()
        seconds.append(unswayed(folder, command, objective, *given, *options))
        rows.append(shares(audited(folder, f"hf/{out}", f"{out}-audit")))
    return [*map(cell, zip(*rows, strict=True)), f"{sum(seconds) / seeds:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", nargs="*", default=list(ARMS), metavar="NAME")
    add_write(parser, "beyond")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unswayed(
            folder, "filter", "tiny-judge-train", "--recipe", "tiny-judge", "--out", "train.jsonl"
        )
        lines = (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()
        blind = [json.dumps({**json.loads(line), "gold": None}) for line in lines]
        (folder / "questions.jsonl").write_text("\n".join(blind), encoding="utf-8")
        metrics = audited(folder, "tiny/judge", "untrained")
        table.add("untrained", "–", *(f"{share:.1f}" for share in shares(metrics)), "–")
        averaged = [f"{share:.1f}" for share in shares(metrics, "average")[:3]]
        table.add("untrained, both orders averaged: two calls", "–", *averaged, "–", "–", "–")
        for arm in arguments.arms:
            table.add(f"`{arm}`", ARMS[arm], *trained(folder, arm, arguments.seeds))
    if arguments.write:
        table.keep("beyond", "commands")


if __name__ == "__main__":
    main()
