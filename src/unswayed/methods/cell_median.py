"""Cell median: the threshold that splits permuted answers in half, for two candidates.

For one label sequence the threshold is the median of logit P(A) over an estimation item's two
coupled presentations (X0 and X2 for "A first", X3 and X1 for "A second"). Each candidate carries A
once, so half of those answers should be A whatever the gold answers are; a median is moved by any
monotone distortion of the judge's scale together with the scores it splits, so neither a
saturating judge nor unbalanced gold shifts it. A verdict is logit P(A) above its cell's threshold.
Calls: fit 2 per estimation item (4 with `layouts=all`), judge 1. Ties: the tie rule. Ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.methods.intervals import median_interval
from unswayed.methods.priors import LabelPrior, PriorMethod
from unswayed.methods.protocol import About, Layouts
from unswayed.methods.sets import canonical_ask, label_layouts, orbit
from unswayed.methods.tables import log_probs_by_label
from unswayed.model.decisions import DecisionTable
from unswayed.model.presentation import Ask


@dataclass(frozen=True, slots=True)
class CellMedian(PriorMethod):
    """A median threshold per label sequence.

    Attributes:
        layouts: Label sequences to fit: the label set's own (`canonical`), or both (`all`).
    """

    layouts: Layouts = "canonical"

    name: ClassVar[str] = "cell-median"
    about: ClassVar[About] = About(
        title="Cell median",
        source="Unswayed",
        idea="Set the threshold at which permuted estimation items split into halves.",
        calls="1",
        estimation="2 per estimation item; 4 with `layouts=all`",
        equation="A wins if logit P(A) > median of logit P(A) over X0 and X2 (A first)",
        helps="you want the safest one-call correction for two candidates: it is exact under "
        "any monotone distortion of the judge's scale and with unbalanced gold",
        cannot="It works for two candidates only. It has one threshold per label sequence, so a"
        " bias that differs from item to item remains.",
        candidates=2,
        per_layout="cell-median:layouts=all",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation."""
        _check_pair(n)
        return (canonical_ask(n),)

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Both orders, under each label sequence."""
        _check_pair(n)
        layouts = label_layouts(n, self.layouts)
        return tuple(Ask(shown) for layout in layouts for shown in orbit(n, layout))

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the median threshold on P(A) and its complement; items without both are left out."""
        logs = np.stack([log_probs_by_label(table, column) for column in columns], axis=1)
        logits = logs[:, :, 0] - logs[:, :, 1]
        complete = ~np.isnan(logits).any(axis=1)
        if not complete.any():
            return ()
        logits, clusters = logits[complete], table.subjects.clusters(complete)
        bounds = median_interval(logits, clusters)
        low = high = None
        if bounds is not None:
            low = (_sigmoid(bounds[0]), _sigmoid(-bounds[1]))
            high = (_sigmoid(bounds[1]), _sigmoid(-bounds[0]))
        median = float(np.median(logits))
        layout = table.shown[columns[0]].labels
        values = (_sigmoid(median), _sigmoid(-median))
        count, units = len(logits), clusters.count
        return (LabelPrior(2, layout, values, count, None, low, high, units=units),)


def _check_pair(n: int) -> None:
    if n != 2:
        raise MethodError(f"cell-median needs 2 candidates, got {n}. Use pride or additive.")


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))
