"""Cell median: the threshold that splits permuted answers in half, for two candidates.

For one label sequence the threshold is the median of logit P(A) over an estimation item's two
coupled presentations (X0 and X2 for "A first", X3 and X1 for "A second"). Each candidate carries A
once, so half of those answers should be A whatever the gold answers are; a median is moved by any
monotone distortion of the judge's scale together with the scores it splits, so neither a
saturating judge nor unbalanced gold shifts it. A verdict is logit P(A) above its cell's threshold.
Calls: fit 2 per estimation item (4 with `layouts=all`), judge 1. Ties: the tie rule. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unswayed.decisions import (
    Decision,
    DecisionTable,
    Estimate,
    FloatArray,
    Verdict,
    VerdictTable,
)
from unswayed.errors import MethodError
from unswayed.items import Item, Task
from unswayed.methods.estimation import (
    FEW_ITEMS,
    estimation_tables,
    not_fitted,
    plan_each,
    warn_if_few,
)
from unswayed.methods.intervals import median_interval
from unswayed.methods.priors import LabelPrior, decide_by_priors, estimates_of, prior_threshold
from unswayed.methods.protocol import COMPARING, About, Layouts, decide_one, learned, plan_all
from unswayed.methods.sets import canonical_ask, label_layouts, orbit
from unswayed.methods.tables import log_probs_by_label
from unswayed.permutations import Order
from unswayed.presentation import Ask, Presentation

__all__ = ["CellMedian"]


@dataclass(frozen=True, slots=True)
class CellMedian:
    """A median threshold per label sequence.

    Attributes:
        layouts: Label sequences to estimate: the label set's own, or both.
        priors: What `fit` learned: the threshold on P(A) and its complement, per label sequence.
    """

    layouts: Layouts = "canonical"
    priors: tuple[LabelPrior, ...] | None = learned()

    name: ClassVar[str] = "cell-median"
    tasks: ClassVar[frozenset[Task]] = COMPARING
    needs_probs: ClassVar[bool] = True
    fitted_from: ClassVar[int] = FEW_ITEMS
    about: ClassVar[About] = About(
        title="Cell median",
        source="ours",
        idea="Put the threshold where permuted estimation items split half and half.",
        calls="1",
        estimation="2 per estimation item (4 with layouts=all)",
        equation="A wins if logit P(A) > median of logit P(A) over X0 and X2 (A first)",
        helps="The safest single-call correction for two candidates: exact under any monotone "
        "distortion of the judge's scale and with unbalanced gold answers.",
        cannot="Two candidates only; one threshold per label sequence, so a bias that changes "
        "from item to item stays.",
        candidates=2,
    )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Both orders of every item, under each label sequence."""
        for item in items:
            if item.n != 2:
                raise MethodError(
                    f"{item.id}: cell-median needs 2 candidates, got {item.n}. "
                    "Use pride or additive."
                )
        asks = [Ask(shown) for layout in self._cells() for shown in orbit(2, layout)]
        return plan_each(items, {2: asks})

    def _cells(self) -> tuple[Order, ...]:
        return label_layouts(2, self.layouts)

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """A copy that knows the thresholds; items without both probabilities are left out."""
        return self.fit_tables(estimation_tables(self, items, decisions))

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on the table of the items with two candidates."""
        priors = []
        counts = {2: 0}
        if 2 in tables:
            table = tables[2]
            counts[2] = len(table)
            for layout in self._cells():
                columns = [c for c, shown in enumerate(table.shown) if shown.labels == layout]
                logits = _logits(table, columns)
                counts[2] = min(counts[2], len(logits))
                if len(logits):
                    priors.append(self._prior(logits, layout))
        warn_if_few(self, counts)
        return replace(self, priors=tuple(priors))

    def _prior(self, logits: FloatArray, layout: Order) -> LabelPrior:
        bounds = median_interval(logits)
        low = None if bounds is None else (_sigmoid(bounds[0]), _sigmoid(-bounds[1]))
        high = None if bounds is None else (_sigmoid(bounds[1]), _sigmoid(-bounds[0]))
        median = float(np.median(logits))
        values = (_sigmoid(median), _sigmoid(-median))
        return LabelPrior(2, layout, values, len(logits), None, low, high)

    def estimates(self) -> dict[str, Estimate]:
        """The thresholds as priors by label and label sequence, with intervals."""
        return estimates_of(self.priors or ())

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins."""
        return prior_threshold(self.priors or (), shown)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation."""
        if n != 2:
            raise MethodError(f"cell-median needs 2 candidates, got {n}. Use pride or additive.")
        return (canonical_ask(n),)

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """The canonical presentation."""
        return plan_all(self, item)

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """The verdict for one item."""
        return decide_one(self, item, decisions)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Compare with the threshold of the label sequence shown."""
        if self.priors is None:
            raise not_fitted(self.name)
        return decide_by_priors(self.name, self.priors, table)


def _logits(table: DecisionTable, columns: Sequence[int]) -> FloatArray:
    """logit P(A) of the items known in all columns, shape (items, columns)."""
    logs = np.stack([log_probs_by_label(table, column) for column in columns], axis=1)
    logits: FloatArray = logs[:, :, 0] - logs[:, :, 1]
    return logits[~np.isnan(logits).any(axis=1)]


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))
