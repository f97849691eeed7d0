"""Label priors: what a judge gives each label before it reads any content, and dividing it out.

Contextual and domain-contextual calibration, batch calibration, PriDe and the cell median differ
only in how they estimate the prior; the verdict is the same for all of them:
q(c) proportional to p(c) / prior(label of c), i.e. argmax log p - log prior.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.methods.checks import UnsoundError, check_layout, check_numbers
from unswayed.methods.estimation import (
    FEW_ITEMS,
    Tables,
    not_fitted,
    warn_if_few,
    warn_of,
    warn_uncorrected,
)
from unswayed.methods.protocol import Learned, Method, learned
from unswayed.methods.sets import canonical_ask
from unswayed.methods.tables import (
    TOLERANCE,
    labels_by_candidate,
    log_probs_by_label,
    softmax,
    verdict_table,
)
from unswayed.model.decisions import (
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    VerdictTable,
    argmax_by_tie_rule,
)
from unswayed.model.permutations import Order
from unswayed.model.presentation import Ask, Presentation, label_symbols

SUM_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class LabelPrior(Learned):
    """The prior over labels of one stratum."""

    layout: tuple[int, ...]  # label printed at each position; it holds for this sequence only
    values: tuple[float, ...]  # prior probability by label; positive, sums to 1
    count: int  # estimation items (or content-free calls) behind it
    group: str | None = None  # group of items it holds for; None for all
    # low, high: 95% interval of each value; None if not computed
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_layout("layout", self.layout, self.n)
        for name, numbers in (("values", self.values), ("low", self.low), ("high", self.high)):
            if numbers is not None:
                check_numbers(name, numbers, self.n, least=0, most=1)
        if min(self.values) <= 0 or abs(sum(self.values) - 1) > SUM_TOLERANCE:
            raise UnsoundError(f"values: {self.values} are not positive with a sum of 1")


@dataclass(frozen=True, slots=True)
class PriorMethod(Method):
    """One call, its probabilities divided by a prior over labels: `layout_priors` estimates it."""

    priors: tuple[LabelPrior, ...] | None = learned()  # what `fit` learned

    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = FEW_ITEMS
    evidence: ClassVar[str] = "questions"  # what the estimates rest on, as warnings call it
    caution: ClassVar[str] = ""  # A warning that belongs to every fit; empty if there is none

    @abstractmethod
    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the priors of one label sequence, the prior of all items first, from the columns of the
        answers to `plan_fit` that show it; empty without any answer.
        """

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation."""
        return (canonical_ask(n),)

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows the prior of every label sequence asked about."""
        priors: list[LabelPrior] = []
        counts: dict[int, int] = {}
        for n, table in tables.items():
            by_layout: dict[Order, list[int]] = {}
            for column, shown in enumerate(table.shown):
                by_layout.setdefault(shown.labels, []).append(column)
            estimated = [self.layout_priors(table, columns) for columns in by_layout.values()]
            counts[n] = min(((part and part[0].units) or 0 for part in estimated), default=0)
            priors += [prior for part in estimated for prior in part]
        warn_if_few(self.name, counts, least=self.fitted_from, what=self.evidence)
        if self.caution:
            warn_of(self.caution)
        return replace(self, priors=tuple(priors))

    def estimates(self) -> dict[str, Estimate]:
        """Return the priors by label, label sequence and group, with intervals."""
        return {
            _name(prior, label): Estimate(
                value=value,
                low=None if prior.low is None else prior.low[label],
                high=None if prior.high is None else prior.high[label],
                n=prior.count,
                n_units=prior.units,
            )
            for prior in self.priors or ()
            for label, value in enumerate(prior.values)
        }

    def threshold(self, shown: Presentation) -> float | None:
        """Return the P(A) above which A wins, for two candidates: the prior of all items."""
        prior = self._general(2, shown.labels)
        return None if prior is None else prior.values[0]

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide the only column's probabilities by the prior of the item's stratum."""
        return decide_by_offsets(table, self._offsets(table))

    def _general(self, n: int, layout: Order) -> LabelPrior | None:
        priors = [
            p for p in self.priors or () if p.group is None and (p.n, p.layout) == (n, layout)
        ]
        return priors[-1] if priors else None

    def _offsets(self, table: DecisionTable) -> FloatArray:
        """log prior by label for every row, shape (I, n); 0 where there is none.

        A label sequence or number of candidates that was never estimated is left uncorrected, with
        a warning: a prior holds for one label sequence only.
        """
        if self.priors is None:
            raise not_fitted(self.name)
        layout = table.shown[0].labels
        general = self._general(table.n, layout)
        if general is None:
            if self.priors:
                where = f"{table.n} candidates labelled {layout_name(layout, table.label_set)}"
                warn_uncorrected(self.name, f"no prior was estimated for {where}")
            return np.zeros((len(table), table.n))
        offsets = np.tile(np.log(general.values), (len(table), 1))
        stratum = [prior for prior in self.priors if (prior.n, prior.layout) == (table.n, layout)]
        if any(prior.group is not None for prior in stratum):
            for prior in stratum:
                if prior.group is not None:
                    offsets[table.subjects.groups == prior.group] = np.log(prior.values)
        return offsets


def decide_by_offsets(table: DecisionTable, offsets: FloatArray) -> VerdictTable:
    """argmax over candidates of log p minus the offset of the candidate's label.

    Args:
        table: The first column is read; others are calls behind the offsets.
        offsets: By label, in nats, shape (I, n) or (n,).
    """
    corrected = softmax(log_probs_by_label(table, 0) - offsets)
    scores: FloatArray = corrected[:, list(labels_by_candidate(table, 0))]
    choices = argmax_by_tie_rule(scores, table, tolerance=TOLERANCE)
    single: NDArray[np.int8] = np.full(len(table), -1, dtype=np.int8)
    return verdict_table(table, choices, scores=scores, consistent=single)


def layout_name(layout: Order, label_set: Sequence[str] = ()) -> str:
    """Return a label sequence in words: "A B"."""
    symbols = label_set or label_symbols(len(layout))
    return " ".join(symbols[label] for label in layout)


def with_labels(name: str, label_set: Sequence[str]) -> str:
    """Return the name of a learned value with these labels in the place of the usual ones."""
    usual = dict(zip(label_symbols(len(label_set)), label_set, strict=True))
    words, group, rest = name.partition(", group ")
    return " ".join(usual.get(word, word) for word in words.split(" ")) + group + rest


def _name(prior: LabelPrior, label: int) -> str:
    where = "" if prior.group is None else f", group {prior.group}"
    return (
        f"prior of label {label_symbols(prior.n)[label]} under {layout_name(prior.layout)}{where}"
    )
