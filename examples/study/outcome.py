"""Measuring a model on the evaluation items: the package's own metrics, and its calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from world import by_candidate, label_log_probs, orders_of

from unswayed.metrics import Outcomes, measure
from unswayed.model.items import Item
from unswayed.model.presentation import Presentation, Protocol, presentations

NAMES = {
    "accuracy": "Acc",
    "consistency": "Con",
    "consistent_accuracy": "CA",
    "rstd": "RStd",
}
"""Metrics of the package, with their short names."""
BINS = 15


def measure_model(
    model: nn.Module, items: Sequence[Item], *, protocol: Protocol = "coupled"
) -> dict[str, float]:
    """Acc, Con, CA, RStd, ECE and Brier in percent over all orders of the candidates."""
    shown = _all_orders(items, protocol)
    labels = label_log_probs(model, items, shown)
    orders = orders_of(shown)
    choices = orders[np.arange(len(shown)), labels.argmax(-1).numpy()]
    return {
        **measure_choices(choices, items, shown),
        **_calibration(_probabilities(labels, shown), items),
    }


def measure_average(model: nn.Module, items: Sequence[Item]) -> dict[str, float]:
    """The same for the mean probability over all orders: one verdict, whatever the order."""
    shown = _all_orders(items, "coupled")
    mean = _probabilities(label_log_probs(model, items, shown), shown).mean(axis=1, keepdims=True)
    choices = np.repeat(mean.argmax(axis=-1), len(shown), axis=1)
    return {**measure_choices(choices, items, shown), **_calibration(mean, items)}


def measure_choices(
    choices: NDArray[np.int64], items: Sequence[Item], shown: Sequence[Presentation]
) -> dict[str, float]:
    """Acc, Con, CA and RStd of choices of shape (items, presentations)."""
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


def calibration_error(p: NDArray[np.float64], gold: NDArray[np.int64]) -> float:
    """Expected calibration error of the top probability, in `BINS` bins of equal width.

    Args:
        p: Distributions over the candidates, shape (answers, n).
        gold: The right candidate, shape (answers,).
    """
    top = p.max(axis=1)
    right = p.argmax(axis=1) == gold
    place = np.minimum((top * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, weights=top - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(p))


def brier(p: NDArray[np.float64], gold: NDArray[np.int64]) -> float:
    """Mean squared distance to the truth, summed over the candidates: 0 to 2."""
    return float(((p - np.eye(p.shape[1])[gold]) ** 2).sum(axis=1).mean())


def _all_orders(items: Sequence[Item], protocol: Protocol) -> tuple[Presentation, ...]:
    n = items[0].n
    return presentations("swap" if n == 2 else "full", n, protocol=protocol)


def _probabilities(labels: torch.Tensor, shown: Sequence[Presentation]) -> NDArray[np.float64]:
    """Probabilities of the candidates among the labels, shape (items, presentations, n)."""
    orders = orders_of(shown)
    p: NDArray[np.float64] = by_candidate(labels.double().softmax(-1), orders).numpy()
    return p


def _calibration(p: NDArray[np.float64], items: Sequence[Item]) -> dict[str, float]:
    """ECE and Brier of distributions of shape (items, presentations, n)."""
    gold = np.repeat([item.gold for item in items], p.shape[1])
    flat = p.reshape(-1, p.shape[-1])
    return {"ECE": 100 * calibration_error(flat, gold), "Brier": 100 * brier(flat, gold)}
