"""What kind of answer came back: unparsed, a declared tie, and the probability left to the labels.

Shares of the calls that were answered, of all items; a failed call is not an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.decisions import TIE, UNPARSED
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.protocol import FloatArray, Need, ratio

__all__ = ["LabelMass", "TieRate", "UnparsedRate"]


@dataclass(frozen=True, slots=True)
class UnparsedRate:
    """Share of answers that name no label."""

    code: ClassVar[int] = UNPARSED
    across: ClassVar[bool] = True
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ()
    undefined: ClassVar[str] = "no call was answered"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """Calls, and calls with this answer; shape (I, 2)."""
        found = (outcomes.choices == self.code).sum(axis=1)
        return np.column_stack([outcomes.made.sum(axis=1), found]).astype(float)

    def values(self, sums: FloatArray) -> FloatArray:
        """The share, shape (B,)."""
        return ratio(sums)


@dataclass(frozen=True, slots=True)
class TieRate(UnparsedRate):
    """Share of answers that declare a tie."""

    code: ClassVar[int] = TIE


@dataclass(frozen=True, slots=True)
class LabelMass:
    """Mean probability on the labels before renormalising, over the calls where it is known."""

    across: ClassVar[bool] = True
    reads_probs: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.LABEL_MASS,)
    undefined: ClassVar[str] = "no label mass was recorded"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """Calls with a known mass, and their mass; shape (I, 2)."""
        if outcomes.label_mass is None:
            return np.zeros((len(outcomes), 2))
        known = outcomes.made & ~np.isnan(outcomes.label_mass)
        mass = np.where(known, outcomes.label_mass, 0.0).sum(axis=1)
        return np.column_stack([known.sum(axis=1), mass])

    def values(self, sums: FloatArray) -> FloatArray:
        """The mean, shape (B,)."""
        return ratio(sums)
