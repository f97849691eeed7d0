"""Label priors: what a judge gives each label before it reads any content, and dividing it out.

Contextual and domain-contextual calibration, batch calibration, PriDe and the cell median differ
only in how they estimate the prior; the verdict is the same for all of them:
q(c) proportional to p(c) / prior(label of c), i.e. argmax log p - log prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import (
    DecisionTable,
    Estimate,
    FloatArray,
    VerdictTable,
    argmax_by_tie_rule,
)
from unswayed.methods.checks import UnsoundError, check_layout, check_numbers
from unswayed.methods.estimation import warn_uncorrected
from unswayed.methods.tables import (
    TOLERANCE,
    labels_by_candidate,
    log_probs_by_label,
    needed,
    softmax,
    verdict_table,
)
from unswayed.permutations import Order
from unswayed.presentation import Presentation

__all__ = [
    "LabelPrior",
    "decide_by_offsets",
    "decide_by_priors",
    "estimates_of",
    "find_prior",
    "layout_name",
    "prior_offsets",
    "prior_threshold",
]

SUM_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class LabelPrior:
    """The prior over labels of one stratum.

    Attributes:
        n: Number of candidates it holds for.
        layout: Label printed at each position; it holds for this sequence only.
        values: Prior probability by label; positive, sums to 1.
        count: Estimation items (or content-free calls) behind it.
        group: Group of items it holds for; None for all.
        low, high: 95 % bootstrap interval of each value; None if not computed.
    """

    n: int
    layout: tuple[int, ...]
    values: tuple[float, ...]
    count: int
    group: str | None = None
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what no fit makes, so that a damaged file cannot be loaded."""
        check_layout("layout", self.layout, self.n)
        for name in ("values", "low", "high"):
            numbers = getattr(self, name)
            if numbers is not None:
                check_numbers(name, numbers, self.n, least=0, most=1)
        if min(self.values) <= 0 or abs(sum(self.values) - 1) > SUM_TOLERANCE:
            raise UnsoundError(f"values: {self.values} are not positive with a sum of 1")


def layout_name(layout: Order, label_set: Sequence[str] = ()) -> str:
    """A label sequence in words: "A B"."""
    symbols = label_set or [chr(65 + label) for label in range(len(layout))]
    return " ".join(symbols[label] for label in layout)


def find_prior(
    priors: Sequence[LabelPrior], n: int, layout: Order, group: str | None = None
) -> LabelPrior | None:
    """The prior of the item's group, else of all items; None for a stratum never estimated."""
    fallback = None
    for prior in priors:
        if prior.n == n and prior.layout == layout:
            if prior.group is not None and prior.group == group:
                return prior
            if prior.group is None:
                fallback = prior
    return fallback


def prior_offsets(name: str, priors: Sequence[LabelPrior], table: DecisionTable) -> FloatArray:
    """log prior by label for every row of a one-column table, shape (I, n); 0 where there is none.

    A label sequence or number of candidates that was never estimated is left uncorrected, with
    a warning: a prior holds for one label sequence only.
    """
    layout = table.shown[0].labels
    general = find_prior(priors, table.n, layout)
    if general is None:
        if priors:
            where = f"{table.n} candidates labelled {layout_name(layout, table.label_set)}"
            warn_uncorrected(name, f"no prior was estimated for {where}")
        return np.zeros((len(table), table.n))
    offsets = np.tile(np.log(general.values), (len(table), 1))
    grouped = [p for p in priors if p.group is not None and (p.n, p.layout) == (table.n, layout)]
    if grouped:
        groups = np.array([item.group for item in table.items], dtype=object)
        for prior in grouped:
            offsets[groups == prior.group] = np.log(prior.values)
    return offsets


def decide_by_offsets(table: DecisionTable, offsets: FloatArray) -> VerdictTable:
    """argmax over candidates of log p minus the offset of the candidate's label.

    Args:
        table: One column.
        offsets: By label, in nats, shape (I, n) or (n,).
    """
    corrected = softmax(log_probs_by_label(table, 0) - offsets)
    scores: FloatArray = corrected[:, list(labels_by_candidate(table, 0))]
    choices = argmax_by_tie_rule(scores, table, tolerance=TOLERANCE)
    unread: NDArray[np.int8] = np.full(len(table), -1, dtype=np.int8)
    return verdict_table(table, choices, cells=needed(table), scores=scores, consistent=unread)


def decide_by_priors(name: str, priors: Sequence[LabelPrior], table: DecisionTable) -> VerdictTable:
    """Divide the only column's probabilities by the prior of its stratum."""
    return decide_by_offsets(table, prior_offsets(name, priors, table))


def prior_threshold(
    priors: Sequence[LabelPrior], shown: Presentation, group: str | None = None
) -> float | None:
    """The P(A) above which label A wins, for two candidates; None without a prior."""
    prior = find_prior(priors, 2, shown.labels, group)
    return None if prior is None else prior.values[0]


def estimates_of(priors: Sequence[LabelPrior]) -> dict[str, Estimate]:
    """The priors as named numbers with intervals, for reports and drift checks."""
    result = {}
    for prior in priors:
        for label, value in enumerate(prior.values):
            where = "" if prior.group is None else f", group {prior.group}"
            name = f"prior of label {chr(65 + label)} under {layout_name(prior.layout)}{where}"
            result[name] = Estimate(
                value=value,
                low=None if prior.low is None else prior.low[label],
                high=None if prior.high is None else prior.high[label],
                n=prior.count,
            )
    return result
