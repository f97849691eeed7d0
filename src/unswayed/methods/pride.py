"""PriDe: estimate the label prior from a few permuted items and divide it out of all others.

prior_i(l) = softmax_l( mean_t log(p_t(l) + 1e-10) ) over the n rotations of the candidates under a
fixed label sequence, where every candidate carries every label once and the content averages out
(PA-GRPO Eq. 16-18; Zheng et al. 2024). The global prior is their arithmetic mean; other items:
argmax log p - log prior. A prior holds for the number of candidates and the label sequence it was
estimated on, never for another (the CalibraEval scripts apply the coupled prior to X1 too).
Calls: fit n per estimation item (n² with `prior=cell`), judge 1. Ties: the tie rule.
Differences from the released code: estimation items are not scored (there they are answered by
averaging their n calls, which inflates accuracy); the geometric mean is offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from unswayed.methods.estimation import FEW_ITEMS, warn_of
from unswayed.methods.intervals import FEWEST, expanded_levels, mean_interval
from unswayed.methods.priors import LabelPrior, PriorMethod
from unswayed.methods.protocol import About
from unswayed.methods.sets import label_layouts, orbit
from unswayed.methods.tables import log_probs_by_label, softmax
from unswayed.model.decisions import Clusters, DecisionTable, FloatArray, Subjects
from unswayed.model.permutations import Order
from unswayed.model.presentation import Ask

SMALLEST_GROUP = 5
"""Groups with fewer estimation items share the prior of all items."""


def item_priors(table: DecisionTable, columns: Sequence[int]) -> FloatArray:
    """log of each item's label prior, shape (I, n), from columns in which every candidate carries
    every label equally often; NaN where one has no probabilities.
    """
    total = np.zeros((len(table), table.n))
    for column in columns:
        total += log_probs_by_label(table, column)
    logs: FloatArray = total / len(columns)
    peak = logs.max(axis=1, keepdims=True)
    result: FloatArray = logs - peak - np.log(np.exp(logs - peak).sum(axis=1, keepdims=True))
    return result


@dataclass(frozen=True, slots=True)
class PriDe(PriorMethod):
    """Division by a prior estimated on permuted items.

    Attributes:
        prior: Scope of a prior: all items (`global`), each label sequence (`cell`) or each group
            of items (`group`; small and unknown groups use the global prior).
        mean: Mean of the items' priors.
        resamples: Bootstrap resamples for the interval of the prior, which needs 60 items; 0 skips
            it.
        seed: Seed of the bootstrap.
    """

    prior: Literal["global", "cell", "group"] = "global"
    mean: Literal["arithmetic", "geometric"] = "arithmetic"
    resamples: int = 1000
    seed: int = 0

    name: ClassVar[str] = "pride"
    about: ClassVar[About] = About(
        title="PriDe",
        source="Zheng et al. 2024 (arXiv 2309.03882)",
        idea="Learn the judge's preference for each label from a few items shown in n "
        "orders, and divide it out of all other answers.",
        calls="1",
        estimation="n per estimation item; n² with `prior=cell`",
        equation="argmax_c log p(c) - log prior(label of c)",
        helps="you have label probabilities and can afford one call per item; `prior=group` "
        "helps if the bias depends on the topic",
        cannot="For two candidates, a prior is one threshold: it cannot follow a bias that "
        "differs from item to item, and it does not correct other label sequences.",
        group_variants=("pride:prior=group",),
        per_layout="pride:prior=cell",
    )

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Every rotation, under each label sequence."""
        layouts = label_layouts(n, "all" if self.prior == "cell" else "canonical")
        return tuple(Ask(shown) for layout in layouts for shown in orbit(n, layout))

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the prior of all items, then those of groups; items without all answers are left out."""
        layout = table.shown[columns[0]].labels
        logs = item_priors(table, columns)
        complete = ~np.isnan(logs).any(axis=1)
        if not complete.any():
            return ()
        logs, subjects = logs[complete], table.subjects.rows(np.flatnonzero(complete))
        priors = [self._prior(logs, subjects.clusters(), layout)]
        if self.prior == "group":
            priors += self._group_priors(logs, subjects, layout)
        return priors

    def _prior(
        self, logs: FloatArray, clusters: Clusters, layout: Order, group: str | None = None
    ) -> LabelPrior:
        values = np.exp(logs) if self.mean == "arithmetic" else logs
        mean = values.mean(axis=0)
        low = high = None
        count, units = len(logs), clusters.count
        if self.resamples and units >= FEWEST:
            bounds = self._interval(clusters.entries(values))
            low, high = (tuple(map(float, np.clip(bound, 0, 1))) for bound in bounds)
        prior = tuple(map(float, mean if self.mean == "arithmetic" else softmax(mean)))
        return LabelPrior(logs.shape[1], layout, prior, count, group, low, high, units=units)

    def _interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.mean == "arithmetic":
            return mean_interval(values, resamples=self.resamples, seed=self.seed)
        rows = len(values)
        rng = np.random.default_rng(self.seed)
        means = rng.multinomial(rows, np.full(rows, 1 / rows), self.resamples) @ values / rows
        low, high = np.percentile(softmax(means), expanded_levels(rows), axis=0)
        return low, high

    def _group_priors(
        self, logs: FloatArray, subjects: Subjects, layout: Order
    ) -> list[LabelPrior]:
        priors, small = [], []
        for group in dict.fromkeys(subjects.groups.tolist()):
            rows = subjects.groups == group
            if group is None:
                continue
            if rows.sum() >= SMALLEST_GROUP:
                priors.append(self._prior(logs[rows], subjects.clusters(rows), layout, group))
            if (units := subjects.clusters(rows).count) < FEW_ITEMS:
                small.append(f"{group} ({units})")
        if small:
            shown = ", ".join(small[:5]) + (
                f" and {len(small) - 5:,} more" if len(small) > 5 else ""
            )
            warn_of(
                f"pride:prior=group: few estimation questions in some groups: {shown}. Below "
                f"{FEW_ITEMS} a group's prior is unreliable; below {SMALLEST_GROUP} the prior of all items is used. "
                f"Give more items, or use pride."
            )
        return priors
