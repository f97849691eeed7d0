"""Compare training without gold with PA-GRPO on clean gold: the tiny judge, fresh items.

    python benchmarks/without_labels.py [--seeds 3] [--steps 100] [--arms distill pa-grpo] [--write]

First come the figures of the untrained judge with methods that correct it; `--write` keeps them for a page.
Every arm is trained on the same inconsistent items (`unswayed filter tiny-judge-train`); `distill` is
given none of their gold. Each result is audited on the items of `tiny-judge` under all three protocols.
Printed are means over training seeds on one base, in per cent: consistency under each protocol and its mean
over them, accuracy and consistent accuracy (coupled), and the CPU time of a training. The seeds share base
and items, so they say nothing of another judge.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import msgspec
import torch

from evidence_table import Table, add_write
from unswayed.api import audit
from unswayed.backends import BackendSettings, open_backend
from unswayed.base.sync import run_sync
from unswayed.calls.calibration import prompts_for
from unswayed.model.items import Item, ItemSet
from unswayed.prompts import PromptSettings
from unswayed.sources import load_data
from unswayed.training.filtering import ask_in_orders, keep_inconsistent
from unswayed.training.planning import plan_training
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.run import train
from unswayed.training.table import OBJECTIVES

PROTOCOLS = ("coupled", "label", "order")
ARMS = ("distill", "pa-grpo")
BASE = "tiny/judge"
METHODS = ("direct", "canonical", "pride:prior=group", "average")

Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--items", type=int, default=1000, help="items of an audit")
    add_write(parser, "beyond")
    parser.add_argument("--arms", nargs="*", default=list(ARMS), metavar="OBJECTIVE")
    given = parser.parse_args()
    torch.set_num_threads(1)
    evaluation = load_data("tiny-judge", limit=given.items)
    table = Table(("untrained judge", "calls", "accuracy", "consistency", "consistent accuracy"))
    for row in corrected(evaluation):
        table.add(*row)
    if given.write:
        table.keep("beyond", "untrained")
    if not given.arms:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = inconsistent(load_data("tiny-judge-train"), folder / "filter")
        rows = {"base": [audited(BASE, evaluation)]}
        for arm in given.arms:
            rows[arm] = [
                learned(arm, items, evaluation, seed, given.steps, folder / f"{arm}-{seed}")
                for seed in range(given.seeds)
            ]
    print(f"{len(items)} training items, {len(evaluation)} audited, {given.seeds} seeds")
    names = list(rows[given.arms[0]][0])
    print(f"| arm | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for arm, figures in rows.items():
        cells = [shown([row[name] for row in figures if name in row]) for name in names]
        print(f"| {arm} | {' | '.join(cells)} |")


def corrected(items: ItemSet) -> Iterator[list[str]]:
    """Rows of the untrained judge under methods that need no training, in per cent."""
    by_method = audit(BASE, items, methods=METHODS, resamples=100).metrics["methods"]
    for name in METHODS:
        own = by_method[name]
        shares = (own[key]["value"] for key in ("accuracy", "consistency", "consistent_accuracy"))
        yield [
            f"`{name}`",
            f"{own['calls_per_item_amortised']:.1f}",
            *(f"{100 * v:.1f}" for v in shares),
        ]


def inconsistent(items: ItemSet, directory: Path) -> tuple[Item, ...]:
    """The items on which the base names different candidates in the two orders."""
    backend = open_backend(BASE, BackendSettings())
    prompts = prompts_for(backend, PromptSettings())
    decisions, _ = run_sync(ask_in_orders(items, backend, directory, prompts))
    return keep_inconsistent(items, decisions).items


def learned(
    arm: str, items: Sequence[Item], evaluation: ItemSet, seed: int, steps: int, out: Path
) -> Figures:
    """Train one arm; an objective that needs no gold is given none."""
    if not OBJECTIVES.load(arm).needs_gold:
        items = [msgspec.structs.replace(item, gold=None) for item in items]
    changes = {
        "run.seed": str(seed),
        "optimiser.steps": str(steps),
        "data.held_out": "0",
        "run.save_every": "0",
        "run.loggers": "[]",
    }
    recipe = with_changes(load_recipe("tiny-judge"), changes)
    began = time.process_time()
    result = train(plan_training(arm, items, model=BASE, recipe=recipe), out)
    spent = time.process_time() - began
    return {**audited(result.model_name, evaluation), "CPU s": spent}


def audited(model: str, items: ItemSet) -> Figures:
    """Figures of a single call, in per cent."""
    metrics = audit(model, items, methods="direct", protocol="all", resamples=100).metrics
    by_protocol = {name: metrics["protocols"][name]["consistency"]["value"] for name in PROTOCOLS}
    own = metrics["methods"]["direct"]
    shares = {
        **{f"consistency {name}": value for name, value in by_protocol.items()},
        "mean consistency": statistics.mean(by_protocol.values()),
        "accuracy": own["accuracy"]["value"],
        "consistent accuracy": own["consistent_accuracy"]["value"],
    }
    return {name: 100 * value for name, value in shares.items()}


def shown(values: Sequence[float]) -> str:
    """The mean, and the standard deviation over seeds."""
    if len(values) < 2:
        return " ".join(f"{value:.1f}" for value in values)
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


if __name__ == "__main__":
    main()
