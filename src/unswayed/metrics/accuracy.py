"""Accuracy: the share of right answers, over all presentations, items weighted equally.

Ties and unparsed answers are wrong; a failed call is no answer, so an item counts the presentations
it has. Items whose gold is unknown (or a tie, unless ties are a class) are left out.
`accuracy_fractional` credits a tie among m candidates with the share of them that is right.

Source: PA-GRPO (arXiv 2603.21016), accuracy on the expanded set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.decisions import TIE
from unswayed.metrics.outcomes import GOLD_TIE, Outcomes
from unswayed.metrics.protocol import FloatArray, Need, item_means, ratio

__all__ = ["Accuracy", "FractionalAccuracy", "credit"]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Mean over items of the share of presentations answered rightly."""

    across: ClassVar[bool] = True
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.GOLD,)
    undefined: ClassVar[str] = "no answered item has gold"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """A mean of fractions."""
        return 0.0, 1.0

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and the share of right presentations, shape (I, 2)."""
        return _mean_over_made(outcomes.right.astype(float), outcomes)

    def values(self, sums: FloatArray) -> FloatArray:
        """The mean over items, shape (B,)."""
        return ratio(sums)


@dataclass(frozen=True, slots=True)
class FractionalAccuracy(Accuracy):
    """Accuracy that credits a tie with the share of the tied candidates that is right."""

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1 and the mean credit, shape (I, 2)."""
        return _mean_over_made(credit(outcomes), outcomes)


def credit(outcomes: Outcomes) -> FloatArray:
    """1 for a right choice, |tied and right| / |tied| for a tie, else 0; shape (I, V)."""
    earned = outcomes.right.astype(float)
    rows, views = np.nonzero(outcomes.choices == TIE)
    gold = outcomes.gold[rows]
    tied = np.ones_like(gold) if outcomes.tied is None else outcomes.tied[rows, views]
    share = (tied & gold).sum(axis=1) / np.maximum(tied.sum(axis=1), 1)
    is_class = outcomes.tie_is_class & (outcomes.gold_kind[rows] == GOLD_TIE)
    earned[rows, views] = np.where(is_class, earned[rows, views], share)
    return earned


def _mean_over_made(earned: FloatArray, outcomes: Outcomes) -> FloatArray:
    calls = outcomes.made.sum(axis=1)
    mean = np.where(outcomes.made, earned, 0.0).sum(axis=1) / np.maximum(calls, 1)
    return item_means(mean, outcomes.decided & (calls > 0))
