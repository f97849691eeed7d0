"""How often each position and each label is chosen, whatever the content.

Shares among parsed, untied choices of permutable items. Over a set of orders that shows every
candidate equally often at every position, an unswayed judge has 1/n everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.protocol import FloatArray, Need, ratio

__all__ = ["LabelRate", "PositionRate", "Primacy"]


@dataclass(frozen=True, slots=True)
class PositionRate:
    """Share of choices at each position, first position first."""

    across: ClassVar[bool] = False
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.PERMUTABLE, Need.PARSED)
    undefined: ClassVar[str] = "no answer could be read as a candidate"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """Choices, and choices at each position; shape (I, 1 + n)."""
        return _with_total(outcomes.counts_by(outcomes.positions_by_candidate))

    def values(self, sums: FloatArray) -> FloatArray:
        """Shares, shape (B, n)."""
        return ratio(sums)


@dataclass(frozen=True, slots=True)
class LabelRate(PositionRate):
    """Share of choices of each label, in the order of the label set."""

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """Choices, and choices of each label; shape (I, 1 + n)."""
        return _with_total(outcomes.counts_by(outcomes.labels_by_candidate))


@dataclass(frozen=True, slots=True)
class Primacy(PositionRate):
    """Share of choices at the first position, less the 1/n expected of an unswayed judge."""

    def limits(self, n: int) -> tuple[float, float] | None:
        """The range of a rate, less 1/n."""
        return -1.0 / n, 1.0 - 1.0 / n

    def values(self, sums: FloatArray) -> FloatArray:
        """Excess of the first position, shape (B,); negative where the last ones are preferred."""
        shares = ratio(sums)
        excess: FloatArray = shares[:, 0] - 1.0 / shares.shape[1]
        return excess


def _with_total(counts: FloatArray) -> FloatArray:
    return np.column_stack([counts.sum(axis=1), counts])
