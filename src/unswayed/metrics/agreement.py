"""Fleiss' kappa: agreement of the presentations beyond chance.

Subjects are items, raters are presentations, categories are candidates and the declared tie. Items
with an unparsed or missing answer are left out (listwise deletion). Undefined where every answer
is the same candidate. Kappa of pooled data is not the mean of the kappas of its parts.

Source: Fleiss 1971; CalibraEval (arXiv 2410.15393) uses X0, X1, X2 as three raters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.protocol import FloatArray, Need

__all__ = ["FleissKappa"]


@dataclass(frozen=True, slots=True)
class FleissKappa:
    """Chance-corrected agreement over presentations, at most 1."""

    across: ClassVar[bool] = False
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE)
    undefined: ClassVar[str] = "every readable answer names the same candidate, or none is complete"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """Not a mean over items."""
        return None

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1, the item's agreement P_i, and its count of each category; shape (I, 2 + n + 1)."""
        counts, raters = outcomes.choice_counts, outcomes.n_views
        used = outcomes.complete & (counts.sum(axis=1) == raters) & (raters > 1)
        agreement = (counts * (counts - 1)).sum(axis=1) / max(raters * (raters - 1), 1)
        table: FloatArray = np.column_stack([np.ones(len(used)), agreement, counts])
        return np.where(used[:, None], table, 0.0)

    def values(self, sums: FloatArray) -> FloatArray:
        """Kappa, shape (B,)."""
        items, counts = sums[:, 0], sums[:, 2:]
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = sums[:, 1] / items
            shares = counts / counts.sum(axis=1, keepdims=True)
            expected = (shares**2).sum(axis=1)
            kappa = (observed - expected) / (1.0 - expected)
        return np.where((items > 0) & (expected < 1.0 - 1e-12), kappa, np.nan)
