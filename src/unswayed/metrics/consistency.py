"""Consistency: does the verdict survive a change of presentation?

Two candidates: the share of items with the same choice under every presentation; an unparsed answer
agrees with nothing, not even another one, and a tie agrees with a tie. More candidates: the mean
over items of the mode's share of the presentations. That is biased upwards for small sets (the
same judge: 67.8 % with 4 presentations, 64.7 % with 24), so the set size is always printed beside
it and only values from sets of one size are compared. `pairwise_agreement`, the share of pairs of
presentations that agree, has no such bias.

Items that lack a presentation, or must not be permuted, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.protocol import FloatArray, Need, item_means, ratio

__all__ = ["Consistency", "PairwiseAgreement"]


@dataclass(frozen=True, slots=True)
class Consistency:
    """Share of items that keep their verdict (n = 2), mean share of the mode (n > 2)."""

    across: ClassVar[bool] = True
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE)
    undefined: ClassVar[str] = "no complete item"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and the item's consistency, shape (I, 2)."""
        share = outcomes.choice_counts.max(axis=1) / max(outcomes.n_views, 1)
        if outcomes.n == 2:
            share = (share == 1.0).astype(float)
        return item_means(share, outcomes.complete & (outcomes.n_views > 1))

    def values(self, sums: FloatArray) -> FloatArray:
        """The mean over items, shape (B,)."""
        return ratio(sums)


@dataclass(frozen=True, slots=True)
class PairwiseAgreement(Consistency):
    """Mean over items of the share of pairs of presentations with the same choice (n > 2)."""

    optional: ClassVar[bool] = True

    def applies_to(self, n: int) -> bool:
        """More than two candidates; for two, consistency says it."""
        return n > 2

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and sum n_k (n_k - 1) / (V (V - 1)), shape (I, 2)."""
        counts, views = outcomes.choice_counts, outcomes.n_views
        agreeing = (counts * (counts - 1)).sum(axis=1) / max(views * (views - 1), 1)
        return item_means(agreeing, outcomes.complete & (views > 1))
