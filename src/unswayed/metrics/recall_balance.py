"""RStd and CKLD: is the judge as good at finding the right answer under every label?

Both look at displayed labels, pooled over presentations. By candidate they would hide the bias: a
judge that always says "A" has recalls of 50/50 by candidate (RStd 0) and 100/0 by label (RStd 50).
Only items with exactly one right candidate count; ties and unparsed answers are misses for RStd
and are no choice for CKLD.

RStd: population standard deviation of the recalls, as a fraction (`ddof=1` for CalibraEval's printed
formula; the released code of PriDe and CalibraEval uses 0). Labels that never carried the gold are
left out. CKLD: sum over labels of p ln(p / q), p = shares of gold, q = shares of choices, smoothed
as (count + 0.5) / (total + 0.5 n); `ckld_raw` is unsmoothed and infinite where a label that carries
gold is never chosen.

Sources: Zheng et al. 2024 (PriDe) for RStd; Choi et al. 2025 for CKLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.metrics.outcomes import GOLD_ONE, Outcomes
from unswayed.metrics.protocol import FloatArray, Need

__all__ = ["ChoiceDivergence", "RawChoiceDivergence", "RecallBalance", "recalls"]


@dataclass(frozen=True, slots=True)
class RecallBalance:
    """RStd: standard deviation of the recalls of the displayed labels.

    Attributes:
        ddof: 0 for the population standard deviation (the definition in force), 1 for the sample's.
    """

    ddof: int = 0

    across: ClassVar[bool] = False
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.ONE_GOLD, Need.PERMUTABLE)
    undefined: ClassVar[str] = "fewer than two labels ever carried the right answer"

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """Not a mean over items."""
        return None

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1, calls with gold under each label, and hits under each label; shape (I, 1 + 2n)."""
        gold, hits, _ = _by_label(outcomes)
        return _with_items(np.column_stack([gold, hits]))

    def values(self, sums: FloatArray) -> FloatArray:
        """The standard deviation of the recalls, shape (B,)."""
        recall = recalls(sums)
        known = ~np.isnan(recall)
        count = known.sum(axis=1)
        safe = np.where(known, recall, 0.0)
        mean = safe.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None]
        square = (np.where(known, recall - mean, 0.0) ** 2).sum(axis=1)
        enough = count >= 2
        return np.where(enough, np.sqrt(square / np.maximum(count - self.ddof, 1)), np.nan)


def recalls(sums: FloatArray) -> FloatArray:
    """Recall under each label from the statistics of `RecallBalance`; NaN for a label without gold.

    Args:
        sums: Shape (B, 1 + 2n).

    Returns:
        Shape (B, n), fractions.
    """
    n = (sums.shape[1] - 1) // 2
    gold, hits = sums[:, 1 : n + 1], sums[:, n + 1 :]
    return np.where(gold > 0, hits / np.where(gold > 0, gold, 1.0), np.nan)


@dataclass(frozen=True, slots=True)
class ChoiceDivergence:
    """CKLD: KL divergence of the shares of choices from the shares of gold, in nats.

    Attributes:
        smoothing: Pseudo-count added to every label on both sides.
    """

    smoothing: float = 0.5

    across: ClassVar[bool] = False
    reads_probs: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.ONE_GOLD, Need.PERMUTABLE, Need.PARSED)
    undefined: ClassVar[str] = (
        "infinite: a label that carries right answers is never chosen (ckld is smoothed)"
    )

    def applies_to(self, n: int) -> bool:
        """Any number of candidates."""
        return True

    def limits(self, n: int) -> tuple[float, float] | None:
        """Not a mean over items."""
        return None

    def statistics(self, outcomes: Outcomes) -> FloatArray:
        """1, calls with gold under each label, and choices of each label; shape (I, 1 + 2n)."""
        gold, _, chosen = _by_label(outcomes)
        return _with_items(np.column_stack([gold, chosen]))

    def values(self, sums: FloatArray) -> FloatArray:
        """The divergence, shape (B,); infinite where unsmoothed and a label is never chosen."""
        n = (sums.shape[1] - 1) // 2
        counts = sums[:, 1:].reshape(len(sums), 2, n)
        totals = counts.sum(axis=2, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (counts + self.smoothing) / (totals + self.smoothing * n)
            gold, chosen = shares[:, 0], shares[:, 1]
            terms = np.where(gold > 0, gold * np.log(gold / chosen), 0.0)
        value: FloatArray = terms.sum(axis=1)
        value[(totals == 0).any(axis=(1, 2))] = np.nan
        return value


@dataclass(frozen=True, slots=True)
class RawChoiceDivergence(ChoiceDivergence):
    """CKLD without smoothing, over parsed choices."""

    smoothing: float = 0.0


def _by_label(outcomes: Outcomes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gold, hits and choices by displayed label over pooled calls with one gold, (I, n) each."""
    counted = outcomes.pooled & (outcomes.gold_kind == GOLD_ONE)[:, None]
    labels = outcomes.labels_by_candidate
    gold_label = labels[np.arange(outcomes.n_views)[None, :], outcomes.gold.argmax(axis=1)[:, None]]
    hit = counted & outcomes.right
    gold = np.empty((len(outcomes), outcomes.n))
    hits = np.empty_like(gold)
    for label in range(outcomes.n):
        here = gold_label == label
        gold[:, label] = (here & counted).sum(axis=1)
        hits[:, label] = (here & hit).sum(axis=1)
    chosen = outcomes.counts_by(labels) * (outcomes.gold_kind == GOLD_ONE)[:, None]
    return gold, hits, chosen


def _with_items(statistics: FloatArray) -> FloatArray:
    """Put the item count (1 where an item has any pooled call) in front."""
    return np.column_stack([statistics.any(axis=1).astype(float), statistics])
