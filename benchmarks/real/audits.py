"""Audit real models on real questions and pairs: one command, resumed where it was stopped.

    python benchmarks/real/audits.py --models FOLDER --data FOLDER --runs FOLDER [--write]

`models.py` makes the models, each in a folder of its name. The data folder holds the original files of
ARC-Challenge (`arc/`), MMLU (`mmlu/`) and LLMBar (`llmbar/`), plain or compressed. Items are taken in the order
of a hash of their ids. Models run on the CPU with one thread; the command takes hours and loads nothing that is
finished. `--sets arc mmlu` leaves out the pairs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]

import unswayed as us  # noqa: E402
from evidence_table import Table, add_write  # noqa: E402

METHODS = ["direct", "canonical", "average", "pride", "contextual", "calibraeval"]
LIMITS = {  # items; what the models take about as long for
    "smollm2-135m": {"arc": 200, "mmlu": 200, "llmbar": 100},
    "qwen2.5-coder-0.5b": {"arc": 200, "mmlu": 100, "llmbar": 100},
    "qwen2.5-coder-1.5b": {"arc": 150, "mmlu": 100, "llmbar": 20},
}
COLUMNS = (
    "model",
    "items",
    "method",
    "calls per item",
    "accuracy",
    "accuracy, gain over direct",
    "consistency",
    "right most often",
    "choices by position, %",
)


def arc(data: Path, part: str = "Test") -> Iterator[dict[str, Any]]:
    """Questions of a part of ARC-Challenge with four options, from the original file."""
    for row in rows_of(next(data.glob(f"arc/ARC-Challenge-{part}*.jsonl*"))):
        options = row["question"]["choices"]
        if len(options) == 4:
            yield {
                "id": row["id"],
                "task": "mcq",
                "prompt": row["question"]["stem"],
                "candidates": [option["text"] for option in options],
                "gold": [option["label"] for option in options].index(row["answerKey"]),
            }


def mmlu(data: Path) -> Iterator[dict[str, Any]]:
    """Questions of MMLU's test part."""
    for row in rows_of(next(data.glob("mmlu/mmlu_test*.jsonl*"))):
        yield {
            "id": f"{row['subject']}/{row['row']}",
            "task": "mcq",
            "prompt": row["question"],
            "candidates": row["choices"],
            "gold": "ABCD".index(row["answer"]),
            "group": row["subject"],
        }


def llmbar(data: Path) -> Iterator[dict[str, Any]]:
    """Pairs of LLMBar's natural part."""
    (whole,) = rows_of(next(data.glob("llmbar/Natural_dataset.json*")))
    for at, row in enumerate(whole):
        yield {
            "id": f"Natural-{at}",
            "task": "pairwise",
            "prompt": row["input"],
            "candidates": [row["output_1"], row["output_2"]],
            "gold": row["label"] - 1,
        }


SETS = {"arc": arc, "mmlu": mmlu, "llmbar": llmbar}


def rows_of(path: Path) -> Iterator[Any]:
    """Values of a file of JSON: of each line, or of the whole where it is one value."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    yield from [json.loads(text)] if text[0] == "[" else map(json.loads, text.splitlines())


def short(items: Iterable[dict[str, Any]], longest: int | None) -> Iterator[dict[str, Any]]:
    """Yield the items whose texts have at most so many characters together; all where it is None."""
    for item in items:
        if longest is None or sum(map(len, [item["prompt"], *item["candidates"]])) <= longest:
            yield item


def in_hash_order(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort items by a hash of their ids."""
    return sorted(items, key=lambda item: hashlib.sha256(item["id"].encode()).digest())


def audit(
    given: argparse.Namespace,
    model: str,
    name: str,
    *,
    methods: Sequence[str] = METHODS,
    trained: Path | None = None,
    limit: int | None = None,
    longest: int | None = None,
) -> us.AuditResult:
    """Audit a model, or its trained adapter, on its items of a set; nothing is asked twice.

    `longest` leaves out the items whose texts have more characters.
    """
    lora, run = ("", model) if trained is None else (f"+lora={trained}", trained.name)
    items, part = SETS[name](given.data), "" if longest is None else f"-{longest}"
    return us.audit(
        model=f"hf/{given.models / model}{lora}",
        items=in_hash_order(short(items, longest))[: limit or LIMITS[model][name]],
        methods=list(methods),
        device="cpu",
        out=given.runs / f"{run}-{name}{part}",
    )


def percent(figure: Mapping[str, Any] | None, unit: str = "%") -> str:
    """Format a figure with its 95% interval in percent; a dash without one. Differences have no `unit`: points."""
    if figure is None or figure["value"] is None:
        return "–"
    value, low, high = (figure.get(key) for key in ("value", "low", "high"))
    ends = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * value:.1f}{unit}{ends}".replace("-", "−")


def rows(metrics: Mapping[str, Any]) -> Iterator[list[str]]:
    """Cells of each method behind those of model and set."""
    for name in METHODS:
        row = metrics["methods"].get(name)
        if row is None:
            continue
        difference = metrics["differences"].get(f"{name}-direct", {})
        yield [
            name,
            f"{row['calls_per_item_amortised']:.2f}",
            percent(row["accuracy_fractional"]),
            percent(difference.get("accuracy_fractional"), ""),
            percent(row["consistency"]),
            percent(row["consistent_accuracy"]),
            " · ".join(f"{100 * place['value']:.0f}" for place in row["position_rate"]),
        ]


def arguments(told: str | None) -> argparse.ArgumentParser:
    """Return a parser of the folders and of --write."""
    parser = argparse.ArgumentParser(
        description=told, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in ("models", "data", "runs"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER")
    add_write(parser, "real-models")
    return parser


def main() -> None:
    """Run the audits that are missing and print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS, metavar="SET")
    given = parser.parse_args()
    tables: dict[str, Table] = {}
    for name in given.sets:
        tables[name] = Table(COLUMNS)
        for model, limits in LIMITS.items():
            for cells in rows(audit(given, model, name).metrics):
                tables[name].add(model, limits[name], *cells)
    if given.write:
        for name, table in tables.items():
            table.keep("real-models", name)


if __name__ == "__main__":
    main()
