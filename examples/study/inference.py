"""Inference-time methods on the untrained tiny judge, by an ordinary audit."""

from __future__ import annotations

from pathlib import Path

from outcome import NAMES
from settings import PARTS
from world import evaluation_items

import unswayed as us
from unswayed.model.items import ItemSet, Task

PAIRS = (
    "direct",
    "canonical",
    "vote",
    "average",
    "pride",
    "calibraeval",
    "cell-median",
    "additive",
)
METHODS = {
    Task.PAIRWISE: PAIRS,
    Task.MCQ: (*(method for method in PAIRS if method != "cell-median"), "average:orders=full"),
}
ORDERS = {Task.PAIRWISE: "swap", Task.MCQ: "full"}
AVERAGED = {Task.PAIRWISE: "average", Task.MCQ: "average:orders=full"}
"""The base averaged over all orders: what training has to beat in one call."""


def inference_rows(base: Path) -> dict[str, dict[str, dict[str, float | None]]]:
    """Acc, Con, CA and RStd in percent and calls per item, per task and method.

    Fitted methods are cross-fitted. `cell-median` judges two candidates only.
    """
    rows: dict[str, dict[str, dict[str, float | None]]] = {}
    for task, setting in {setting.task: setting for setting in PARTS["main"]}.items():
        orders = ORDERS[task]
        items = ItemSet.of(evaluation_items(setting), name=f"study-{task.value}")
        result = us.audit(
            f"hf/{base}", items, methods=list(METHODS[task]), orders=orders, resamples=100
        )
        rows[task.value] = {
            method: {
                "calls": row["calls_per_item"],
                **{short: _percent(row.get(name)) for name, short in NAMES.items()},
            }
            for method, row in result.metrics["methods"].items()
        }
    return rows


def _percent(estimate: object) -> float | None:
    if not isinstance(estimate, dict) or estimate.get("value") is None:
        return None
    return 100 * float(estimate["value"])
