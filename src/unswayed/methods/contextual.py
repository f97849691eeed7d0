"""Contextual calibration: ask about nothing, and divide out what the judge answers anyway.

q(c) proportional to p(c) / p_cf(label of c), with p_cf the mean answer to content-free inputs
(Zhao et al. 2021: W = diag(p_cf)^-1, b = 0). By default the question and every candidate are
replaced by "N/A", "" and "[MASK]" in turn: one prior per label sequence, 3 calls in all. The
CalibraEval paper's variant is `strings=N/A` with `per_item=true`: the question stays, 1 call more
per item.
Calls: fit 3 in all, judge 1 (`per_item`: fit 0, judge 1 + number of strings). Ties: the tie rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unswayed.decisions import Decision, DecisionTable, Estimate, Verdict, VerdictTable
from unswayed.items import Item, Task
from unswayed.methods.content_free import content_free_asks, content_free_priors, mean_by_label
from unswayed.methods.estimation import estimation_tables, not_fitted, warn_if_few
from unswayed.methods.priors import (
    LabelPrior,
    decide_by_offsets,
    decide_by_priors,
    estimates_of,
    prior_threshold,
)
from unswayed.methods.protocol import COMPARING, About, Layouts, decide_one, learned, plan_all
from unswayed.methods.sets import canonical_ask
from unswayed.presentation import Ask, Presentation, Substitution

__all__ = ["CONTENT_FREE", "Contextual"]

CONTENT_FREE = ("N/A", "", "[MASK]")


@dataclass(frozen=True, slots=True)
class Contextual:
    """Division by the answer to content-free inputs.

    Attributes:
        strings: The content-free texts.
        per_item: Keep each item's own question and replace the candidates only.
        layouts: Label sequences to estimate: the label set's own, or all rotations.
        priors: What `fit` learned.
    """

    strings: tuple[str, ...] = CONTENT_FREE
    per_item: bool = False
    layouts: Layouts = "canonical"
    priors: tuple[LabelPrior, ...] | None = learned()

    name: ClassVar[str] = "contextual"
    tasks: ClassVar[frozenset[Task]] = COMPARING
    needs_probs: ClassVar[bool] = True
    fitted_from: ClassVar[int] = 1
    about: ClassVar[About] = About(
        title="Contextual calibration",
        source="Zhao et al. 2021 (arXiv 2102.09690)",
        idea="Ask about content-free text and divide every answer by what came back.",
        calls="1",
        estimation="3 in all, per label sequence",
        equation="q(c) ~ p(c) / p_cf(label of c)",
        helps="Almost free; removes a label preference that shows without any content.",
        cannot="The answer to nothing need not be the bias on real content: it often over- or "
        "under-corrects. For two candidates it moves one threshold, so it cannot undo a "
        "preference for the first position when labels and positions part ways.",
        differs="The CalibraEval study replaces only the candidates, by N/A alone.",
    )

    def __post_init__(self) -> None:
        """With `per_item` there is nothing to learn."""
        if self.per_item:
            object.__setattr__(self, "priors", ())

    def _substitutions(self, n: int) -> tuple[Substitution, ...]:
        return tuple(
            Substitution((text,) * n, None if self.per_item else text) for text in self.strings
        )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """The content-free questions, put once per number of candidates."""
        if self.per_item:
            return []
        first = {item.n: item for item in reversed(items)}
        return [
            (item, ask)
            for n, item in sorted(first.items())
            for ask in content_free_asks(n, self._substitutions(n), self.layouts)
        ]

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """A copy that knows the content-free prior of every label sequence asked about."""
        return self.fit_tables(estimation_tables(self, items, decisions))

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on tables of one row."""
        if self.per_item:
            return self
        priors = {n: content_free_priors(table) for n, table in tables.items()}
        counts = {n: len(found) for n, found in priors.items()}
        warn_if_few(self, counts, what="answers to content-free inputs")
        return replace(self, priors=tuple(p for found in priors.values() for p in found))

    def estimates(self) -> dict[str, Estimate]:
        """The priors by label and label sequence."""
        return estimates_of(self.priors or ())

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates."""
        return prior_threshold(self.priors or (), shown)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation; with `per_item`, its content-free versions too."""
        if not self.per_item:
            return (canonical_ask(n),)
        return (
            canonical_ask(n),
            *content_free_asks(n, self._substitutions(n), "canonical"),
        )

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """Everything in `asks`."""
        return plan_all(self, item)

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """The verdict for one item."""
        return decide_one(self, item, decisions)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide by the prior of the label sequence shown, or by each item's own."""
        if self.priors is None:
            raise not_fitted(self.name)
        if self.per_item:
            own = mean_by_label(table, range(1, len(table.asks)))
            return decide_by_offsets(table, np.log(own))
        return decide_by_priors(self.name, self.priors, table)
