"""PriDe: estimate the label prior from a few permuted items and divide it out of all others.

prior_i(l) = softmax_l( mean_t log(p_t(l) + 1e-10) ) over the n rotations of the candidates under a
fixed label sequence, where every candidate carries every label once and the content averages out
(PA-GRPO Eq. 16-18; Zheng et al. 2024). The global prior is their arithmetic mean; other items:
argmax log p - log prior. A prior holds for the number of candidates and the label sequence it was
estimated on, never for another (the CalibraEval scripts apply the coupled prior to X1 too).
Calls: fit n per estimation item (n * n with `prior=cell`), judge 1. Ties: the tie rule.
Differences from the released code: estimation items are not scored (there they are answered by
averaging their n calls, which inflates accuracy); the geometric mean is offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from unswayed.decisions import (
    Decision,
    DecisionTable,
    Estimate,
    FloatArray,
    Verdict,
    VerdictTable,
)
from unswayed.items import Item, Task
from unswayed.methods.estimation import (
    FEW_ITEMS,
    estimation_tables,
    not_fitted,
    plan_each,
    warn_if_few,
    warn_of,
)
from unswayed.methods.intervals import FEWEST, expanded_levels, mean_interval
from unswayed.methods.priors import LabelPrior, decide_by_priors, estimates_of, prior_threshold
from unswayed.methods.protocol import COMPARING, About, decide_one, learned, plan_all
from unswayed.methods.sets import canonical_ask, label_layouts, orbit
from unswayed.methods.tables import log_probs_by_label, softmax
from unswayed.permutations import Order
from unswayed.presentation import Ask, Presentation

__all__ = ["PriDe", "item_priors"]

SMALLEST_GROUP = 5
"""Groups with fewer estimation items share the prior of all items."""


def item_priors(table: DecisionTable, columns: Sequence[int]) -> FloatArray:
    """log of each item's label prior, shape (I, n); NaN where a column has no probabilities.

    Args:
        table: Decisions on permuted items.
        columns: Columns in which every candidate carries every label equally often.
    """
    total = np.zeros((len(table), table.n))
    for column in columns:
        total += log_probs_by_label(table, column)
    logs: FloatArray = total / len(columns)
    peak = logs.max(axis=1, keepdims=True)
    result: FloatArray = logs - peak - np.log(np.exp(logs - peak).sum(axis=1, keepdims=True))
    return result


@dataclass(frozen=True, slots=True)
class PriDe:
    """Division by a prior estimated on permuted items.

    Attributes:
        prior: One prior for all items (`global`), one per label sequence (`cell`), or one per
            group of items (`group`, with the global one for small or unknown groups).
        mean: How the items' priors are averaged.
        resamples: Bootstrap resamples of items for the prior's interval, which needs 60 items; 0
            for none.
        seed: Seed of the bootstrap.
        priors: What `fit` learned.
    """

    prior: Literal["global", "cell", "group"] = "global"
    mean: Literal["arithmetic", "geometric"] = "arithmetic"
    resamples: int = 1000
    seed: int = 0
    priors: tuple[LabelPrior, ...] | None = learned()

    name: ClassVar[str] = "pride"
    tasks: ClassVar[frozenset[Task]] = COMPARING
    needs_probs: ClassVar[bool] = True
    fitted_from: ClassVar[int] = FEW_ITEMS
    about: ClassVar[About] = About(
        title="PriDe",
        source="Zheng et al. 2024 (arXiv 2309.03882)",
        idea="Permute a few items to see the label prior alone, and divide it out of the rest.",
        calls="1",
        estimation="n per estimation item (n * n with prior=cell)",
        equation="argmax_c log p(c) - log prior(label of c)",
        helps="The cheapest real correction: a few dozen items fix the prior for all others. A "
        "prior per group helps where the bias depends on the topic.",
        cannot="One prior per label sequence is one threshold for two candidates: it cannot follow "
        "a bias that changes from item to item, and says nothing about other label sequences.",
        differs="The released code answers the estimation items by averaging their calls; "
        "CalibraEval's scripts apply one prior to all three presentations.",
    )

    def _layouts(self, n: int) -> tuple[Order, ...]:
        return label_layouts(n, "all" if self.prior == "cell" else "canonical")

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Every rotation of every item, under each label sequence."""
        return plan_each(
            items,
            {
                n: tuple(Ask(shown) for layout in self._layouts(n) for shown in orbit(n, layout))
                for n in {item.n for item in items}
            },
        )

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """A copy that knows the priors; items without all probabilities are left out."""
        return self.fit_tables(estimation_tables(self, items, decisions))

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on one table per number of candidates."""
        priors: list[LabelPrior] = []
        counts: dict[int, int] = {}
        for n, table in tables.items():
            counts[n] = len(table)
            for layout in self._layouts(n):
                columns = [c for c, shown in enumerate(table.shown) if shown.labels == layout]
                logs = item_priors(table, columns)
                known = ~np.isnan(logs).any(axis=1)
                counts[n] = min(counts[n], int(known.sum()))
                if known.any():
                    priors.append(self._prior(logs[known], layout))
                if self.prior == "group":
                    groups = np.array([item.group for item in table.items], dtype=object)
                    priors += self._group_priors(logs[known], groups[known], layout)
        warn_if_few(self, counts)
        return replace(self, priors=tuple(priors))

    def _prior(self, logs: FloatArray, layout: Order, group: str | None = None) -> LabelPrior:
        values = np.exp(logs) if self.mean == "arithmetic" else logs
        mean = values.mean(axis=0)
        low = high = None
        if self.resamples and len(logs) >= FEWEST:
            bounds = self._interval(values)
            low, high = (tuple(map(float, np.clip(bound, 0, 1))) for bound in bounds)
        prior = tuple(map(float, self._as_prior(mean)))
        return LabelPrior(logs.shape[1], layout, prior, len(logs), group, low, high)

    def _interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.mean == "arithmetic":
            return mean_interval(values, resamples=self.resamples, seed=self.seed)
        rows = len(values)
        rng = np.random.default_rng(self.seed)
        means = rng.multinomial(rows, np.full(rows, 1 / rows), self.resamples) @ values / rows
        low, high = np.percentile(softmax(means), expanded_levels(rows), axis=0)
        return low, high

    def _as_prior(self, mean: FloatArray) -> FloatArray:
        return mean if self.mean == "arithmetic" else softmax(mean)

    def _group_priors(
        self, logs: FloatArray, groups: np.ndarray[tuple[int], np.dtype[np.object_]], layout: Order
    ) -> list[LabelPrior]:
        made, small = [], []
        for group in dict.fromkeys(groups.tolist()):
            rows = groups == group
            if group is None:
                continue
            if rows.sum() >= SMALLEST_GROUP:
                made.append(self._prior(logs[rows], layout, group))
            if rows.sum() < FEW_ITEMS:
                small.append(f"{group} ({rows.sum()})")
        if small:
            warn_of(
                f"pride: few estimation items in some groups: {', '.join(small)}. Below "
                f"{FEW_ITEMS} a group's prior is unreliable; below {SMALLEST_GROUP} the prior of "
                "all items is used."
            )
        return made

    def estimates(self) -> dict[str, Estimate]:
        """The priors by label, label sequence and group, with intervals."""
        return estimates_of(self.priors or ())

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates (the prior of all items)."""
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
        """Divide by the prior of the item's stratum."""
        if self.priors is None:
            raise not_fitted(self.name)
        return decide_by_priors(self.name, self.priors, table)
