"""Contextual calibration: ask about nothing, and divide out what the judge answers anyway.

q(c) proportional to p(c) / p_cf(label of c), with p_cf the mean answer to content-free inputs
(Zhao et al. 2021: W = diag(p_cf)^-1, b = 0). By default the question and every candidate are
replaced by "N/A", "" and "[MASK]" in turn: one prior per label sequence, 3 calls in all. The
CalibraEval paper's variant is `strings=N/A` with `per_item=true`: the question stays, 1 call more
per item.
Calls: fit 3 in all, judge 1 (`per_item`: fit 0, judge 1 + number of strings). Ties: the tie rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.methods.content_free import (
    content_free_asks,
    content_free_priors,
    mean_by_label,
    plan_content_free,
)
from unswayed.methods.priors import LabelPrior, PriorMethod, decide_by_offsets
from unswayed.methods.protocol import About, Layouts
from unswayed.methods.sets import canonical_ask
from unswayed.model.decisions import DecisionTable, VerdictTable
from unswayed.model.items import Item
from unswayed.model.presentation import Ask, Substitution

CONTENT_FREE = ("N/A", "", "[MASK]")


@dataclass(frozen=True, slots=True)
class Contextual(PriorMethod):
    """Division by the answer to content-free inputs.

    Attributes:
        strings: Content-free texts, joined by `+`; one may be empty.
        per_item: True keeps each item's question and replaces only the candidates.
        layouts: Label sequences to fit: the label set's own (`canonical`), or all rotations (`all`).
    """

    strings: tuple[str, ...] = CONTENT_FREE
    per_item: bool = False
    layouts: Layouts = "canonical"

    name: ClassVar[str] = "contextual"
    fitted_from: ClassVar[int] = 1
    evidence: ClassVar[str] = "answers to content-free inputs"
    about: ClassVar[About] = About(
        title="Contextual calibration",
        source="Zhao et al. 2021 (arXiv 2102.09690)",
        idea="Learn label probabilities from content-free text and divide every answer by them.",
        calls="1",
        estimation="3 in all, per label sequence",
        equation="q(c) ~ p(c) / p_cf(label of c)",
        helps="the label preference shows without any content: the correction is almost free",
        cannot="The answer to empty content need not be the bias on real content, so it often "
        "over- or under-corrects. For two candidates it moves one threshold, so it "
        "cannot undo a first-position preference where labels and positions move apart.",
    )

    def __post_init__(self) -> None:
        """Drop priors with `per_item`, which learns nothing."""
        if self.per_item:
            object.__setattr__(self, "priors", ())

    def _substitutions(self, n: int) -> tuple[Substitution, ...]:
        return tuple(
            Substitution((text,) * n, None if self.per_item else text) for text in self.strings
        )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Return the content-free questions, put once per number of candidates."""
        if self.per_item:
            return []
        return plan_content_free(items, lambda same: self._substitutions(same[0].n), self.layouts)

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the mean answer to content-free inputs."""
        return content_free_priors(table, columns)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation; with `per_item`, its content-free versions too."""
        per_item = self._substitutions(n) if self.per_item else ()
        return (canonical_ask(n), *content_free_asks(n, per_item, "canonical"))

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide by the prior of the label sequence shown, or by each item's own."""
        if self.per_item:
            return decide_by_offsets(table, np.log(mean_by_label(table, range(1, len(table.asks)))))
        return PriorMethod.decide_table(self, table)
