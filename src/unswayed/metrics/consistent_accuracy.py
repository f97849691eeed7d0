"""Consistent accuracy: right whatever the presentation.

Two candidates: right under every presentation. More: the unique mode of the answers is right; a tie
of modes is wrong, and `consistent_accuracy_fractional` credits it with the share of the modes that
is right. Items without gold, that lack a presentation or must not be permuted are left out.

Source: PA-GRPO (arXiv 2603.21016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.metrics.outcomes import GOLD_TIE, BoolArray, Outcomes
from unswayed.metrics.protocol import FloatArray, Need, item_means, ratio

__all__ = ["ConsistentAccuracy", "FractionalConsistentAccuracy"]


@dataclass(frozen=True, slots=True)
class ConsistentAccuracy:
    """Share of items answered rightly in spite of every change of presentation."""

    across: ClassVar[bool] = True
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.GOLD, Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE)
    undefined: ClassVar[str] = "no complete item has gold"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and whether the item is right, shape (I, 2)."""
        if outcomes.n == 2:
            hit = outcomes.right.all(axis=1).astype(float)
        else:
            modes, right = _modes(outcomes)
            hit = ((modes & right).any(axis=1) & (modes.sum(axis=1) == 1)).astype(float)
        return item_means(hit, _counted(outcomes))

    def values(self, sums: FloatArray) -> FloatArray:
        """The mean over items, shape (B,)."""
        return ratio(sums)


@dataclass(frozen=True, slots=True)
class FractionalConsistentAccuracy(ConsistentAccuracy):
    """Consistent accuracy that credits tied modes with the share of them that is right (n > 2)."""

    optional: ClassVar[bool] = True

    def applies_to(self, n: int) -> bool:
        """More than two candidates; for two there is no mode to tie."""
        return n > 2

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and the share of the modes that is right, shape (I, 2)."""
        modes, right = _modes(outcomes)
        hit = (modes & right).sum(axis=1) / np.maximum(modes.sum(axis=1), 1)
        return item_means(hit, _counted(outcomes))


def _counted(outcomes: Outcomes) -> BoolArray:
    return outcomes.complete & outcomes.decided & (outcomes.n_views > 1)


def _modes(outcomes: Outcomes) -> tuple[BoolArray, BoolArray]:
    """The most frequent answers and the right ones; candidates, then the tie; shape (I, n + 1)."""
    counts = outcomes.choice_counts
    top = counts.max(axis=1, keepdims=True)
    modes: BoolArray = np.asarray((counts == top) & (top > 0), dtype=np.bool_)
    tie_right = outcomes.tie_is_class & (outcomes.gold_kind == GOLD_TIE)
    return modes, np.column_stack([outcomes.gold, tie_right])
