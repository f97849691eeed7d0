"""Compare masks of heads and neurons (UniBias) with one prior: built-in judges of several seeds, fresh items.

    python benchmarks/heads.py [--seeds 3] [--items 1000] [--write]

Both read the same number of unlabelled items. Seed 0 is the shipped judge; the others are trained by its script
(about 30 CPU-seconds each). Printed are accuracy, consistency and consistent accuracy of one call, in per
cent: pairs in both orders, multiple choice in all 24.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from evidence_table import Table, add_write
from unswayed.api import audit
from unswayed.backends import BackendSettings
from unswayed.base.errors import UsageError
from unswayed.cli.heads import SUPPORT
from unswayed.model.items import ItemSet
from unswayed.prompts import PromptSettings
from unswayed.tiny.backend import WEIGHTS
from unswayed.tiny.items import judge_items, mcq_items
from unswayed.tiny.train import TrainSettings, save, train
from unswayed.training.unibias import fit_heads

FRESH = 4242
METHODS = ("direct", "pride")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--items", type=int, default=1000, help="pairs; 3 in 10 of them for choices"
    )
    add_write(parser, "heads")
    given = parser.parse_args()
    torch.set_num_threads(1)
    table = Table(("task", "seed", "method", "accuracy", "consistency", "consistent accuracy"))
    choices = max(SUPPORT, 3 * given.items // 10)
    tasks = {
        "pairs": (judge_items(SUPPORT, 777), judge_items(given.items, FRESH), "swap"),
        "multiple choice": (mcq_items(SUPPORT, 777), mcq_items(choices, FRESH), "full"),
    }
    with tempfile.TemporaryDirectory() as name:
        folders = [WEIGHTS, *(Path(name) / str(seed) for seed in range(1, given.seeds))]
        for seed, folder in enumerate(folders):
            if seed:
                save(train(TrainSettings(seed=seed)), folder)
            for task, parts in tasks.items():
                for method, *cells in compared(folder, *parts, scales=Path(name) / "scales"):
                    table.add(task, seed, method, *cells)
    if given.write:
        table.keep("heads", "compared")


def compared(
    folder: Path, support: ItemSet, items: ItemSet, orders: str, *, scales: Path
) -> Iterator[list[str]]:
    """Rows of one base: one call, with a prior, and masked."""
    model = f"hf/{folder}"
    yield from figures(model, items, orders)
    try:
        fitted = fit_heads(model, support, prompts=PromptSettings(), reach=BackendSettings())
    except UsageError as error:
        if "found nothing" not in str(error):
            raise
        yield ["`heads fit`", "nothing found", "–", "–"]
        return
    fitted.write(scales)
    for _, *cells in figures(f"{model}+heads={scales}", items, orders, METHODS[:1]):
        yield ["`heads fit`", *cells]


def figures(
    model: str, items: ItemSet, orders: str, methods: tuple[str, ...] = METHODS
) -> Iterator[list[str]]:
    measured = audit(
        model, items, methods=methods, orders=orders, estimation_items=SUPPORT, resamples=100
    ).metrics["methods"]
    for method in methods:
        shares = [
            measured[method][name]["value"]
            for name in ("accuracy", "consistency", "consistent_accuracy")
        ]
        yield [f"`{method}`", *(f"{100 * share:.1f}" for share in shares)]


if __name__ == "__main__":
    main()
