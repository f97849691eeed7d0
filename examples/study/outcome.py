"""Measuring a model on the held-out items: the package's own metrics, one value per metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn
from world import choices_of

from unswayed.items import Item
from unswayed.metrics import Outcomes, measure
from unswayed.presentation import Presentation, Protocol, presentations

__all__ = ["NAMES", "measure_choices", "measure_model"]

NAMES = {
    "accuracy": "Acc",
    "consistency": "Con",
    "consistent_accuracy": "CA",
    "rstd": "RStd",
}
"""Metrics of the tables, with their short names."""


def measure_model(
    model: nn.Module, items: Sequence[Item], *, protocol: Protocol = "coupled"
) -> dict[str, float]:
    """Acc, Con, CA and RStd in percent over all orders of the candidates."""
    n = items[0].n
    shown = presentations("swap" if n == 2 else "full", n, protocol=protocol)
    return measure_choices(choices_of(model, items, shown), items, shown)


def measure_choices(
    choices: NDArray[np.int64], items: Sequence[Item], shown: Sequence[Presentation]
) -> dict[str, float]:
    """The same for choices of shape (items, presentations)."""
    n = items[0].n
    outcomes = Outcomes(
        item_ids=tuple(item.id for item in items),
        groups=tuple(None for _ in items),
        shown=tuple(shown),
        label_set=tuple("ABCD"[:n]),
        choices=choices.astype(np.int16),
        gold=np.eye(n, dtype=np.bool_)[[item.gold for item in items]],
        gold_kind=np.ones(len(items), dtype=np.int8),
        permutable=np.ones(len(items), dtype=np.bool_),
    )
    row = measure([outcomes], names=list(NAMES), resamples=0)
    return {short: 100 * row[name].value for name, short in NAMES.items()}
