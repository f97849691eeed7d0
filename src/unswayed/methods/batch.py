"""Batch calibration: subtract the mean log-probability of each label over a batch of items.

logit q(c) = log p(c) - mean over the batch of log p(label of c), per label sequence. The batch is
the estimation items in their own order, so one verdict never depends on which others are asked
with it. Off by default: the mean is the bias only if the right answer is spread evenly over the
labels within the batch; where 80% of the gold answers carry one label it removes the truth.
Calls: fit 1 per estimation item (shared with the direct answer), judge 1. Ties: the tie rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.methods.priors import LabelPrior, PriorMethod
from unswayed.methods.protocol import About, Layouts
from unswayed.methods.sets import label_layouts
from unswayed.methods.tables import log_probs_by_label, softmax
from unswayed.model.decisions import DecisionTable
from unswayed.model.presentation import Ask, Presentation


@dataclass(frozen=True, slots=True)
class Batch(PriorMethod):
    """Division by the batch's mean answer.

    Attributes:
        layouts: Label sequences to fit: the label set's own (`canonical`), or all rotations (`all`).
    """

    layouts: Layouts = "canonical"

    name: ClassVar[str] = "batch"
    caution: ClassVar[str] = (
        "batch: valid only if the right answers are spread evenly over the labels in the batch, "
        "which cannot be checked without gold. pride needs no such assumption."
    )
    about: ClassVar[About] = About(
        title="Batch calibration",
        source="Zhou et al. 2024 (arXiv 2309.17249)",
        idea="Subtract each label's mean log-probability over a batch of items.",
        calls="1",
        estimation="1 per estimation item, shared with the direct answer",
        equation="log q(c) = log p(c) - mean_batch log p(label of c)",
        helps="right answers are spread evenly over the labels and you can afford no extra call",
        cannot="It cannot separate bias from truth: if right answers usually carry the same "
        "label, it destroys accuracy. Prefer `pride`, which permutes each item.",
        default=False,
    )

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Its own order once per label sequence."""
        own = tuple(range(n))
        return tuple(Ask(Presentation(own, layout)) for layout in label_layouts(n, self.layouts))

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the batch's mean log-probability of each label."""
        (column,) = columns
        logs = log_probs_by_label(table, column)
        complete = ~np.isnan(logs).any(axis=1)
        if not complete.any():
            return ()
        logs, units = logs[complete], table.subjects.clusters(complete).count
        values = softmax(logs.mean(axis=0))
        layout = table.shown[column].labels
        return (LabelPrior(table.n, layout, tuple(map(float, values)), len(logs), units=units),)
