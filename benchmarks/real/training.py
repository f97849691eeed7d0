"""Train small real models on a CPU and audit them on fresh items: one command, resumed where it was stopped.

    python benchmarks/real/training.py --models FOLDER --data FOLDER --runs FOLDER [--write]

Folders are those of `audits.py`, whose audits of the untrained models are read or made here; the data folder
also holds PandaLM's test set (`pandalm/`). Models train on pairs of PandaLM and are audited on LLMBar, or train on
the development part of ARC-Challenge and are audited on its test part. Items are taken in the order of a hash of
their ids. Every training is the printed command with `small-lora.toml`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]

from audits import arc, arguments, audit, in_hash_order, percent, rows_of, short  # noqa: E402

import unswayed as us  # noqa: E402
from evidence_table import Table  # noqa: E402
from unswayed.auditing.evaluation import score_method  # noqa: E402
from unswayed.metrics.measure import difference  # noqa: E402

RIGHT = "consistent_accuracy"
BESIDE = ("direct", "canonical", "average", "pride")
COLUMNS = (
    "model",
    "items",
    "judge",
    "accuracy",
    "consistency",
    "right in both orders",  # of questions: right most often
    *(f"right in both orders, gain over {name}" for name in BESIDE[:3]),
    "choices by position, %",
)
SLOWER = (
    "target.temperature=0.02",
    "optimiser.learning_rate=3e-4",
    "optimiser.items_per_step=2",
)


class Run(NamedTuple):
    """A training: `unswayed train OBJECTIVE` on the first pairs."""

    model: str
    objective: str
    items: int
    longest: int  # characters of an item's texts; short prompts make cheap steps
    options: tuple[str, ...] = ()  # of the recipe
    seed: int = 0
    # of, audited, within: set of the audit, its items, and most characters of their texts
    of: Literal["llmbar", "arc"] = "llmbar"
    audited: int = 100
    within: int | None = None

    @property
    def name(self) -> str:
        """Name of its folder."""
        objective = self.objective.replace(" --", "-").replace(" ", "-")
        kind = "pairs" if self.of == "llmbar" else self.of
        return f"{self.model}-{kind}-{objective}-{self.items}-{self.seed}"


RUNS = {  # by the table that shows them
    "trained": [
        Run("smollm2-135m", "rl --exact", 96, 500),
        Run(
            "smollm2-135m",
            "rl --exact --reward con --distill 0",
            96,
            500,
            ("optimiser.learning_rate=5e-4",),
        ),
        Run(
            "qwen2.5-coder-0.5b",
            "distill",
            36,
            300,
            ("target.temperature=0.02", "optimiser.items_per_step=2"),
            audited=40,
        ),
    ],
    "slower": [
        Run(
            model,
            "rl --exact",
            48,
            250,
            SLOWER,
            seed,
            within=500,
        )
        for model, seeds in (("smollm2-135m", (0,)), ("qwen2.5-coder-0.5b", (0, 1, 2)))
        for seed in seeds
    ],
    "questions": [
        Run(
            "qwen2.5-coder-0.5b",
            "rl --exact",
            48,
            250,
            ("task=mcq", *SLOWER),
            of="arc",
            audited=60,
            within=200,
        )
    ],
}


def pairs(data: Path) -> Iterator[dict[str, Any]]:
    """Pairs of PandaLM's test set of which all three annotators prefer the same response."""
    (whole,) = rows_of(next(data.glob("pandalm/testset-v1.json*")))
    for row in whole:
        votes = {row[f"annotator{number}"] for number in (1, 2, 3)}
        texts = [row["response1"], row["response2"]]
        if votes in ({1}, {2}) and texts[0] != texts[1] and all(isinstance(t, str) for t in texts):
            yield {
                "id": f"pandalm-{row['idx']}",
                "task": "pairwise",
                "prompt": "\n\n".join(filter(None, [row["instruction"], row["input"]])),
                "candidates": texts,
                "gold": votes.pop() - 1,
            }


def chosen(run: Run, data: Path) -> list[dict[str, Any]]:
    """Items of a training."""
    items = pairs(data) if run.of == "llmbar" else arc(data, "Dev")
    return in_hash_order(short(items, run.longest))[: run.items]


def train(run: Run, given: argparse.Namespace) -> tuple[Path, float]:
    """Train what is not trained; return the adapter's folder and the CPU seconds."""
    out: Path = given.runs / "trained" / run.name
    cost, items = Path(f"{out}.cost"), Path(f"{out}.jsonl")
    spent = float(cost.read_text()) if cost.exists() else 0.0
    if (out / "adapter_model.safetensors").exists():
        return out, spent
    items.parent.mkdir(exist_ok=True)
    items.write_text("".join(json.dumps(item) + "\n" for item in chosen(run, given.data)))
    command = ["unswayed", "train", *run.objective.split(), str(items)]
    command += ["--recipe", str(HERE / "small-lora.toml"), "--model", str(given.models / run.model)]
    fields = (f"run.seed={run.seed}", *run.options)
    command += [*(word for field in fields for word in ("--set", field)), "--out", str(out)]
    print(" ".join(command), flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost.write_text(
        str(spent + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    )
    if done:
        sys.exit(done)
    return out, float(cost.read_text())


def outcomes(result: us.AuditResult, method: str) -> Any:
    """Outcomes of a method in every order."""
    plan = result.record.plan
    return score_method(
        plan.methods[method], plan.strata, result.record.source, estimation_items=None
    ).outcomes


def cells(result: us.AuditResult, method: str, less: Sequence[Any], told: str = "") -> list[str]:
    """Cells of a judge, with its differences from some outcomes."""
    row = result.metrics["methods"][method]
    own = outcomes(result, method)
    apart = [difference(own, other, RIGHT) for other in less]
    return [
        str(result.metrics["data"]["n_items"]),
        told or method,
        percent(row["accuracy_fractional"]),
        percent(row["consistency"]),
        percent(row[RIGHT]),
        *(percent({"value": one.value, "low": one.low, "high": one.high}, "") for one in apart),
        *["–"] * (len(BESIDE[:3]) - len(apart)),
        " · ".join(f"{100 * place['value']:.0f}" for place in row["position_rate"]),
    ]


def tables(given: argparse.Namespace, name: str) -> None:
    """Train and audit what a table lacks, and print it."""
    runs = RUNS[name]
    folders = {run: train(run, given) for run in runs}
    trainings = Table(
        (
            "model",
            "command (add `--recipe benchmarks/real/small-lora.toml`)",
            "items",
            "seed",
            "steps",
            "CPU minutes",
        )
    )
    for run, (folder, seconds) in folders.items():
        steps = json.loads((folder / "train.jsonl").read_text().splitlines()[-1])["step"]
        command = " ".join([run.objective, *(f"--set {field}" for field in run.options)])
        minutes = f"{seconds / 60:.0f}"
        trainings.add(run.model, f"train {command}", run.items, run.seed, steps, minutes)
    table, seeded = Table(COLUMNS), any(run.seed for run in runs)
    for model, of, within, limit in dict.fromkeys(
        (run.model, run.of, run.within, None if run.of == "llmbar" else run.audited) for run in runs
    ):
        base = audit(given, model, of, longest=within, limit=limit)
        for method in BESIDE:
            table.add(model, *cells(base, method, ()))
        beside = [outcomes(base, method) for method in BESIDE[:3]]
        for run in runs:
            if (run.model, run.of, run.within) == (model, of, within):
                own: dict[str, Any] = {"trained": folders[run][0], "limit": run.audited}
                result = audit(given, model, of, methods=["direct"], longest=within, **own)
                told = f"after {run.objective}" + f", seed {run.seed}" * seeded
                table.add(model, *cells(result, "direct", beside, told))
    if given.write:
        trainings.keep("real-models", f"{name}-commands")
        table.keep("real-models", name)


def main() -> None:
    """Train and audit what is missing and print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--tables", nargs="+", default=list(RUNS), choices=RUNS, metavar="TABLE")
    given = parser.parse_args()
    for name in given.tables:
        tables(given, name)


if __name__ == "__main__":
    main()
