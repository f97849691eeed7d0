"""Metric: sufficient statistics per item, a map from their sums to values, and its words.

The point estimate is the map applied to the sums over all items; a bootstrap value is the same map
applied to the sums over a resample. One code path serves both, for one item set or a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.outcomes import CONTINUOUS, Outcomes
from unswayed.model.decisions import FloatArray

Limits = tuple[float, float]
"""The smallest and the largest share that one item can have in a value."""

OfWeights = Callable[[FloatArray], FloatArray]
"""Values of prepared outcomes from weights of their I items, shape (B, I) -> (B,)."""

Ends = tuple[float, float] | str
"""Low and high of an interval, or why there is none."""

OfUnits = Callable[[FloatArray, NDArray[np.int64]], Sequence[Ends] | None]
"""Intervals of the values from the statistics of the U units that count, (U, k), and how often each
occurs, (U,); None for those of the resamples."""

FEWEST_SCORED: Final = 3
"""Items that a correlation needs."""


class Need(Enum):
    """Requirement of a metric.

    Attributes:
        lack: What is lacking when it is not met.
        met: Whether the outcomes of one stratum meet it.
    """

    GOLD = "no item has a right answer to compare with", lambda o: o.decided.any()
    ONE_GOLD = "no item has exactly one right candidate", lambda o: (o.gold_kind == GOLD_ONE).any()
    ORDERS = "one presentation only: this needs at least two", lambda o: o.n_views > 1
    COMPLETE = "no item has an answer under every presentation", lambda o: o.complete.any()
    PERMUTABLE = "no item may be permuted", lambda o: o.permutable.any()
    PROBS = "no label probabilities", lambda o: "probs" in o.recorded
    LABEL_MASS = "no label mass was recorded", lambda o: "label_mass" in o.recorded
    PARSED = "no verdict names a candidate", lambda o: (o.pooled & (o.choices >= 0)).any()
    ABSTAINS = "the method never abstains", lambda o: o.abstains
    YARDSTICK = "there is no average over the full pool to compare with", lambda o: o.yardstick
    HUMAN = "no item has a human score", lambda o: "human" in o.recorded
    SCORE = "no item was given a score", lambda o: "score" in o.recorded
    SCORES = "no scores by candidate", lambda o: "scores" in o.recorded
    PLACES = "criteria stood in one order only", lambda o: "places" in o.recorded
    ENOUGH = (
        f"fewer than {FEWEST_SCORED} items have both a score and a human score",
        lambda o: o.scored.sum(axis=0).max(initial=0) >= FEWEST_SCORED,
    )
    HUMAN_VARIES = "all human scores are the same", lambda o: _varies(o, o.human)
    SCORE_VARIES = "all scores of the judge are the same", lambda o: _varies(o, o.score)

    def __init__(self, lack: str, met: Callable[[Outcomes], bool]) -> None:
        self.lack = lack
        self.met = met

    @property
    def recorded(self) -> bool:
        """True if it is a continuous quantity recorded beside the choices."""
        return self.name.lower() in CONTINUOUS

    def met_by(self, outcomes: Outcomes) -> bool:
        """Return True if outcomes meet it; what the answers say is asked of each pattern once."""
        return self.met(outcomes if self.recorded or self.of_values else outcomes.tally)

    @property
    def of_values(self) -> bool:
        """True if it is about the values of what is there, so that lacking it is worth telling."""
        return self in (Need.ENOUGH, Need.HUMAN_VARIES, Need.SCORE_VARIES)


def _varies(outcomes: Outcomes, values: FloatArray | None) -> bool:
    """Return True if values, (I,) or (I, V), differ between the scored items of a presentation."""
    if values is None:
        return False
    by_view = np.broadcast_to(values.reshape(len(outcomes), -1), outcomes.scored.shape)
    return any(
        len(set(own[scored].tolist())) > 1
        for own, scored in zip(by_view.T, outcomes.scored.T, strict=True)
    )


def ratio(sums: FloatArray) -> FloatArray:
    """Columns 1.. over column 0; one column gives shape (B,). NaN where column 0 is 0.

    >>> ratio(np.array([[4.0, 3.0], [0.0, 0.0]])).tolist()
    [0.75, nan]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        values: FloatArray = sums[:, 1:] / sums[:, :1]
    values[sums[:, 0] == 0] = np.nan
    return values[:, 0] if values.shape[1] == 1 else values


def fraction(n: int) -> Limits:
    """Return the limits of a mean of fractions."""
    return 0.0, 1.0


def correlation(n: int) -> Limits:
    """Return the limits of a mean of correlations."""
    return -1.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A quantity over outcomes.

    Attributes:
        title: Its name in words, as the head of a column.
        meaning: What it says, as a noun phrase.
        statistics: Per-item statistics of outcomes, shape (I, k). Column 0 is the item's share in
            what `Estimate.n` counts (1 per item, or its calls), and 0 for an item that is left
            out, whose other columns are then 0 as well.
        values: Values from sums of statistics, shape (B, k) -> (B,), or (B, m) for a list of m;
            NaN where undefined.
        undefined: The reason when all needs are met and the value still does not exist.
        needs: Checked in this order for the reason of an undefined value. What `statistics` reads
            of continuous quantities must be among them.
        better: 1 where more is better, -1 where less is, 0 where neither is.
        percent: Whether its values are fractions, which are shown in percent.
        compared: Whether methods, and runs, are compared in it item by item: "no"; "paired", each
            difference with an interval of its own; "jointly", with one as well that holds for all
            methods compared at once, which takes a mean over items or a weighted metric.
        constructed: Whether its value is the same for every judge where all presentations read the
            same questions, so that it is no evidence there.
        curve: Whether it is followed over the number of estimation items.
        limits: The range of one item's share, given n, in a value that is a mean over items. It
            serves items that are all alike, where a bootstrap says nothing
            (`uncertainty.interval`). Of a weighted metric the range of its value. None for other
            values.
        interval: Its intervals, where resamples say too little of rare events (`rare`).
        inflated: Power of the value to which errors add, 1 of a divergence, 2 of a spread: resamples
            lie above the value as it lies above the truth, so the low end mirrors the high one.
        fewest, most: Fewest and most candidates for which it is defined.
        across: Defined for items with different numbers of candidates together.
        optional: Left out of a row, instead of null with a reason, where its needs are not met
            (but those of values: that all scores are the same is worth telling).
        weighted: For a quantity that is no function of sums over items (ranks depend on who else
            was drawn): prepares outcomes and gives its value from how often each item counts; NaN
            where undefined. All items once give the estimate, the numbers of a resample a bootstrap
            value, items left out in turn the differences (`jackknife`), so it must change smoothly
            with the weights. `statistics` then says which items count, and `values` is not read. It
            is never pooled over numbers of candidates.
    """

    title: str
    meaning: str
    statistics: Callable[[Outcomes], FloatArray]
    undefined: str
    values: Callable[[FloatArray], FloatArray] = ratio
    needs: tuple[Need, ...] = ()
    better: Literal[-1, 0, 1] = 0
    percent: bool = False
    compared: Literal["no", "paired", "jointly"] = "no"
    constructed: bool | Literal["evenly"] = False
    curve: bool = False
    limits: Callable[[int], Limits] | None = None
    interval: OfUnits | None = None
    inflated: int = 0
    fewest: int = 2
    most: int | None = None
    across: bool = False
    optional: bool = False
    weighted: Callable[[Outcomes], OfWeights] | None = None

    def __post_init__(self) -> None:
        if self.weighted is None:
            return
        if self.across:
            raise UsageError(f"{self.title}: a weighted metric has no value across strata.")
        if self.compared != "no" and self.limits is None:
            raise UsageError(f"{self.title}: a weighted metric that is compared needs limits.")

    @property
    def continuous(self) -> bool:
        """True if it reads continuous quantities: items cannot be counted by answer pattern."""
        return any(need.recorded for need in self.needs)

    def applies_to(self, n: int) -> bool:
        """Return True if it is defined for items with n candidates at all."""
        return self.fewest <= n <= (self.most or n)

    def lacking(self, strata: Sequence[Outcomes]) -> list[Need]:
        """Return the needs that no stratum meets."""
        return [need for need in self.needs if not any(map(need.met_by, strata))]

    def unrecorded(self, strata: Sequence[Outcomes]) -> list[Need]:
        """Return the needs for quantities that were never recorded: the metric cannot read the outcomes."""
        return [need for need in self.lacking(strata) if need.recorded]

    def left_out(self, strata: Sequence[Outcomes]) -> bool:
        """Return True if it is no part of a row about these strata."""
        if not any(self.applies_to(outcomes.n) for outcomes in strata):
            return True
        return self.optional and any(not need.of_values for need in self.lacking(strata))


def item_means(per_item: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """Statistics of a mean over the counted items, shape (I, 2)."""
    return np.column_stack([counted.astype(float), np.where(counted, per_item, 0.0)])
