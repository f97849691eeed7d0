"""What a metric is: sufficient statistics per item, and a map from their sums to values.

The point estimate is the map applied to the sums over all items; a bootstrap value is the same map
applied to the sums over a resample. One code path serves both, for one item set or a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unswayed.metrics.outcomes import GOLD_ONE, Outcomes

__all__ = ["FloatArray", "Metric", "Need", "item_means", "ratio", "unmet"]

FloatArray = NDArray[np.float64]


class Need(StrEnum):
    """What a metric cannot do without; the text says what is lacking when it is not met."""

    GOLD = "no item has a right answer to compare with"
    ONE_GOLD = "no item has exactly one right candidate"
    ORDERS = "one presentation only: this needs at least two"
    COMPLETE = "no item has an answer under every presentation"
    PERMUTABLE = "no item may be permuted"
    PROBS = "no label probabilities"
    LABEL_MASS = "no label mass was recorded"
    PARSED = "no answer could be read as a candidate"


class Metric(Protocol):
    """A quantity over outcomes. Implementations are frozen dataclasses of their options.

    Attributes:
        across: Defined for items with different numbers of candidates together.
        reads_probs: Its statistics are continuous, so items cannot be counted by answer pattern.
        optional: Left out of a row, instead of null with a reason, where its needs are not met.
        needs: Checked in this order for the reason of an undefined value.
        undefined: The reason when all needs are met and the value still does not exist.
    """

    across: ClassVar[bool]
    reads_probs: ClassVar[bool]
    optional: ClassVar[bool]
    needs: ClassVar[tuple[Need, ...]]
    undefined: ClassVar[str]

    def applies_to(self, n: int) -> bool:
        """Whether it is defined for items with n candidates at all."""
        ...

    def limits(self, n: int) -> tuple[float, float] | None:
        """The range of one item's share in a value that is a mean over items; None for others.

        It serves items that are all alike, where a bootstrap says nothing (`uncertainty.interval`).
        """
        ...

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """Per-item statistics, shape (I, k).

        Column 0 is the item's share in what `Estimate.n` counts (1 per item, or its calls), and 0
        for an item that is left out, whose other columns are then 0 as well.
        """
        ...

    def values(self, sums: FloatArray) -> FloatArray:
        """Values from sums of statistics, shape (B, k) -> (B,), or (B, m) for a list; NaN undefined."""
        ...


def unmet(need: Need, strata: Sequence[Outcomes]) -> bool:
    """Whether no stratum gives what a metric needs."""
    return not any(_MET[need](outcomes) for outcomes in strata)


def _read(outcomes: Outcomes) -> bool:
    return bool((outcomes.pooled & (outcomes.choices >= 0)).any())


_MET: Mapping[Need, Callable[[Outcomes], bool]] = {
    Need.GOLD: lambda outcomes: bool(outcomes.decided.any()),
    Need.ONE_GOLD: lambda outcomes: bool((outcomes.gold_kind == GOLD_ONE).any()),
    Need.ORDERS: lambda outcomes: outcomes.n_views > 1,
    Need.COMPLETE: lambda outcomes: bool(outcomes.complete.any()),
    Need.PERMUTABLE: lambda outcomes: bool(outcomes.permutable.any()),
    Need.PROBS: lambda outcomes: outcomes.probs is not None,
    Need.LABEL_MASS: lambda outcomes: outcomes.label_mass is not None,
    Need.PARSED: _read,
}


def item_means(per_item: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """Statistics of a mean over the counted items, shape (I, 2)."""
    return np.column_stack([counted.astype(float), np.where(counted, per_item, 0.0)])


def ratio(sums: FloatArray) -> FloatArray:
    """Columns 1.. over column 0; one column gives shape (B,). NaN where column 0 is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values: FloatArray = sums[:, 1:] / sums[:, :1]
    values[sums[:, 0] == 0] = np.nan
    return values[:, 0] if values.shape[1] == 1 else values
