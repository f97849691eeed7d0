"""Batch calibration: subtract the mean log probability of each label over a batch of items.

logit q(c) = log p(c) - mean over the batch of log p(label of c), per label sequence. The batch is
the estimation items in their own order, so one verdict never depends on which others are asked
with it. Off by default: the mean is the bias only if the right answer is spread evenly over the
labels within the batch; where 80 % of the gold answers carry one label it removes the truth.
Calls: fit 1 per estimation item (shared with the direct answer), judge 1. Ties: the tie rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unswayed.decisions import Decision, DecisionTable, Estimate, Verdict, VerdictTable
from unswayed.items import Item, Task
from unswayed.methods.estimation import (
    FEW_ITEMS,
    estimation_tables,
    not_fitted,
    plan_each,
    warn_if_few,
    warn_of,
)
from unswayed.methods.priors import LabelPrior, decide_by_priors, estimates_of, prior_threshold
from unswayed.methods.protocol import COMPARING, About, Layouts, decide_one, learned, plan_all
from unswayed.methods.sets import canonical_ask, label_layouts
from unswayed.methods.tables import log_probs_by_label, softmax
from unswayed.presentation import Ask, Presentation

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Division by the batch's mean answer.

    Attributes:
        layouts: Label sequences to estimate: the label set's own, or all rotations.
        priors: What `fit` learned.
    """

    layouts: Layouts = "canonical"
    priors: tuple[LabelPrior, ...] | None = learned()

    name: ClassVar[str] = "batch"
    tasks: ClassVar[frozenset[Task]] = COMPARING
    needs_probs: ClassVar[bool] = True
    fitted_from: ClassVar[int] = FEW_ITEMS
    about: ClassVar[About] = About(
        title="Batch calibration",
        source="Zhou et al. 2024 (arXiv 2309.17249)",
        idea="Subtract each label's mean log probability over a batch of items.",
        calls="1",
        estimation="1 per estimation item, shared with the direct answer",
        equation="log q(c) = log p(c) - mean_batch log p(label of c)",
        helps="Needs no extra call where the right answers are spread evenly over the labels.",
        cannot="It cannot tell bias from truth: on data whose right answer usually carries the "
        "same label it destroys accuracy. Prefer pride, which permutes each item.",
        default=False,
    )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Every item once per label sequence, in its own order."""
        return plan_each(
            items,
            {
                n: tuple(
                    Ask(Presentation(tuple(range(n)), layout))
                    for layout in label_layouts(n, self.layouts)
                )
                for n in {item.n for item in items}
            },
        )

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """A copy that knows the batch mean; always with a warning."""
        return self.fit_tables(estimation_tables(self, items, decisions))

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on one table per number of candidates."""
        priors: list[LabelPrior] = []
        counts: dict[int, int] = {}
        for n, table in tables.items():
            counts[n] = 0
            for column, shown in enumerate(table.shown):
                logs = log_probs_by_label(table, column)
                logs = logs[~np.isnan(logs).any(axis=1)]
                counts[n] = max(counts[n], len(logs))
                if len(logs):
                    values = softmax(logs.mean(axis=0))
                    priors.append(LabelPrior(n, shown.labels, tuple(map(float, values)), len(logs)))
        warn_if_few(self, counts)
        warn_of(
            "batch: valid only if the right answers are spread evenly over the labels in the "
            "batch, which cannot be checked without gold. pride needs no such assumption."
        )
        return replace(self, priors=tuple(priors))

    def estimates(self) -> dict[str, Estimate]:
        """The batch means as priors by label and label sequence."""
        return estimates_of(self.priors or ())

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates."""
        return prior_threshold(self.priors or (), shown)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation."""
        return (canonical_ask(n),)

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """The canonical presentation."""
        return plan_all(self, item)

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """The verdict for one item."""
        return decide_one(self, item, decisions)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide by the batch mean of the label sequence shown."""
        if self.priors is None:
            raise not_fitted(self.name)
        return decide_by_priors(self.name, self.priors, table)
