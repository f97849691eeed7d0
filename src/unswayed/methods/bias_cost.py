"""Bias cost: find the order of the levels in which the judge's liking for positions shows least.

A probe asks about some items in 2n orders that show every level twice at every position. With
rate r(s, p) = (s chosen at p) / (s shown at p in an answer that was read), P(p|s) = r(s, p) /
sum_p r(s, p), and Cost(order) = sum_p |P(p|level at p) - 1/n|. The order of least cost is asked
once per item from then on, and its answer is the verdict.
Smoothing: 1/n answers are added to each position of a level, spread evenly, so that a level that
was never chosen costs nothing anywhere; that is warned about. Equal costs: the order that comes
first when written as numbers, levels counted by value: the usual scale before all others, however
the items list the levels. The exact best of all n! orders is a linear assignment (ours).
Calls per item: fit 2n, judge 1. Ties: a declared tie is a tie.
The exact normaliser could not be verified against the paper: with as many choices at every
position the form above is N(s at p) / N(s), as its summary has it. The paper has no smoothing and
takes the best of the 2n orders, as the default does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.methods.checks import UnsoundError, check_layout, check_numbers
from unswayed.methods.estimation import (
    Tables,
    not_fitted,
    warn_if_few,
    warn_of,
    warn_uncorrected,
)
from unswayed.methods.intervals import FEWEST, expanded_interval
from unswayed.methods.protocol import About, Learned, Method, learned, learned_for
from unswayed.methods.sets import asks_of_set, content_ask, presentation_set
from unswayed.methods.tables import positions_by_candidate
from unswayed.methods.voting import decide_by_vote, values_of
from unswayed.model.decisions import (
    Clusters,
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    VerdictTable,
)
from unswayed.model.decisions.levels import level_counts, level_ranks
from unswayed.model.permutations import FULL_LIMIT, Order, balanced, full
from unswayed.model.presentation import Ask, Presentation

EQUAL: Final = 1e-9
"""Costs closer than this are equal: far above rounding, far below one answer."""


def position_shares(chosen: FloatArray, shown: FloatArray, *, added: float = 0.0) -> FloatArray:
    """P(p|s), shape (..., n, n) by level and position: where a level stood when it was chosen, had
    it stood everywhere equally often.

    Rows have the sum 1; 1/n where a level was never chosen, or never stood at some position.
    `chosen` are the answers that name a level at a position, `shown` those that could have, and
    `added` answers are added to each position of a level.

    Source: rubric position bias (arXiv 2602.02219); the rates where exposure differs are ours.
    """
    rates = chosen / np.maximum(shown, 1.0) * shown.mean(axis=-1, keepdims=True)
    telling = (shown > 0).all(axis=-1, keepdims=True) & (chosen.sum(axis=-1, keepdims=True) > 0)
    rates = np.where(telling, rates + added, 1.0)
    shares: FloatArray = rates / rates.sum(axis=-1, keepdims=True)
    return shares


def bias_cost(shares: FloatArray, order: Order) -> float:
    """sum_p |P(p|level at p) - 1/n| of shares (n, n), levels counted from the lowest value, 0."""
    n = len(order)
    return float(sum(abs(shares[level, p] - 1.0 / n) for p, level in enumerate(order)))


def cheapest(shares: FloatArray, orders: Sequence[Order]) -> Order:
    """Return the order of least cost; of equal ones the first as numbers."""
    costs = [bias_cost(shares, order) for order in orders]
    least = min(costs) + EQUAL
    return min(order for order, cost in zip(orders, costs, strict=True) if cost <= least)


def cheapest_of_all(shares: FloatArray) -> Order:
    """Return the order of least cost of all n!, by linear assignment; of equal ones the first as numbers."""
    from scipy.optimize import linear_sum_assignment

    n = len(shares)
    costs = np.abs(shares - 1.0 / n).T  # by position and level

    def least(positions: Sequence[int], levels: Sequence[int]) -> float:
        part = costs[np.ix_(positions, levels)]
        return float(part[linear_sum_assignment(part)].sum())

    left, spent, order = list(range(n)), 0.0, list[int]()
    total = least(left, left)
    for position in range(n):
        rest = range(position + 1, n)
        for level in left:
            others = [other for other in left if other != level]
            cost = spent + float(costs[position, level])
            if cost + least(rest, others) <= total + EQUAL:
                order.append(level)
                left, spent = others, cost
                break
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Probe(Learned):
    """Result of a probe about the orders of n levels, counted by value from 0, the lowest."""

    # answers naming each level at each position, level by level
    chosen: tuple[tuple[int, ...], ...]
    shown: tuple[tuple[int, ...], ...]  # answers in which each level stood at each position
    order: tuple[int, ...]  # level at each position of the order that is asked
    cost: float  # its cost
    # cost of each of the 2n orders, in the order of `permutations.balanced`: the usual scale
    # first
    costs: tuple[float, ...]
    count: int  # probed items behind them
    # low, high: 95% intervals of `rates`; empty if not computed
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_layout("order", self.order, self.n)
        for name, rows in (("chosen", self.chosen), ("shown", self.shown)):
            if len(rows) != self.n:
                raise UnsoundError(f"{name}: {len(rows)} levels where {self.n} are needed")
            for row in rows:
                check_numbers(name, row, self.n, least=0)
        for name, bounds in (("low", self.low), ("high", self.high)):
            if bounds:
                check_numbers(name, bounds, self.n, least=0, most=1)
        check_numbers("costs", self.costs, len(balanced(self.n)), least=0)
        told = (self.cost, *self.costs)
        actual = [bias_cost(self.shares, order) for order in (self.order, *balanced(self.n))]
        if not np.allclose(told, actual, atol=EQUAL):
            raise UnsoundError("cost, costs: they do not follow from the counts")
        if self.cost > min(self.costs) + EQUAL:
            raise UnsoundError(f"order: {list(self.order)} costs more than another that was probed")

    @property
    def shares(self) -> FloatArray:
        """P(p|s), shape (n, n)."""
        return position_shares(
            np.array(self.chosen, dtype=float), np.array(self.shown, dtype=float), added=1 / self.n
        )

    @property
    def rates(self) -> FloatArray:
        """Share of answers that name the level at each position, whichever it is, shape (n,)."""
        return _rates(np.array(self.chosen), np.array(self.shown))

    @property
    def unknown(self) -> tuple[int, ...]:
        """Levels of which nothing is known: never chosen, or never shown at some position."""
        chosen, shown = np.array(self.chosen), np.array(self.shown)
        lacking = (chosen.sum(axis=1) == 0) | (shown == 0).any(axis=1)
        return tuple(map(int, np.flatnonzero(lacking)))


@dataclass(frozen=True, slots=True)
class BiasCost(Method):
    """One call in the order of levels that a probe found least biased.

    Attributes:
        search: Orders to choose from: the 2n that were probed (`balanced`), or all n! (`all`). An
            audit makes every call that a fit may lead to, so there `all` takes at most 6 levels.
        resamples: Bootstrap resamples for the intervals, which need 60 items; 0 skips them.
        seed: Seed of the bootstrap.
        probes: What `fit` learned.
    """

    search: Literal["balanced", "all"] = "balanced"
    resamples: int = 1000
    seed: int = 0
    probes: tuple[Probe, ...] | None = learned()

    name: ClassVar[str] = "bias-cost"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.LEVELS})
    fitted_from: ClassVar[int] = 50
    about: ClassVar[About] = About(
        title="Order of least bias cost",
        source="rubric position bias (arXiv 2602.02219)",
        idea="Probe the judge's preferred positions for each level, then ask in the one "
        "order of levels in which that preference is smallest.",
        calls="1",
        estimation="2n per estimation item",
        equation="argmin_order sum_p |P(p|level at p) - 1/n|; verdict = the answer in that order",
        helps="you can afford one call per item and have no human scores to choose an order by",
        cannot="It chooses among biased orders and removes no bias: a judge that prefers a "
        "position for every level prefers it in every order.",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the order learned, levels counted by value; before `fit` all that may be learned."""
        if self.probes is not None:
            probe = learned_for(n, self.probes)
            return (_by_value(probe.order) if probe else content_ask(n),)
        if self.search == "balanced":
            return tuple(map(_by_value, (shown.order for shown in presentation_set("balanced", n))))
        if n > FULL_LIMIT:
            raise UsageError(
                f"bias-cost:search=all could learn any of {math.factorial(n):,} orders of {n} "
                f"levels; the limit is {FULL_LIMIT} levels. Use bias-cost, or calibrate it first: "
                "then only the order learned is asked."
            )
        return tuple(map(_by_value, full(n)))

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Return the 2n orders, counted from the item's own: an audit asks them anyway."""
        return asks_of_set("balanced", n)

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows an order for every number of levels probed."""
        by_size = {n: self._learn(table) for n, table in tables.items()}
        probes = tuple(probe for probe in by_size.values() if probe is not None)
        counts = {n: (probe and probe.units) or 0 for n, probe in by_size.items()}
        warn_if_few(self.name, counts, least=self.fitted_from)
        for probe in probes:
            if probe.unknown:
                names = ", ".join(str(level + 1) for level in probe.unknown)
                warn_of(
                    f"bias-cost: of {probe.n} levels, counted from the lowest, the probe does not cover {names}; "
                    f"their choices are taken as equally likely at every position."
                )
        return replace(self, probes=probes)

    def _learn(self, table: DecisionTable) -> Probe | None:
        """Return the costs of orders from the answers of a probe; None without any."""
        levels = level_ranks(values_of(table, self.name))
        columns = range(len(table.asks))
        positions = np.array([positions_by_candidate(table, column) for column in columns])
        chosen, shown = level_counts(
            table.choices, levels, positions.astype(np.intp), table.allowed
        )
        rows = chosen.any(axis=(1, 2))
        if not rows.any():
            return None
        chosen, shown, clusters = chosen[rows], shown[rows], table.subjects.clusters(rows)
        totals = (counts.sum(axis=0).astype(float) for counts in (chosen, shown))
        shares = position_shares(*totals, added=1 / table.n)
        orders = balanced(table.n)
        best = cheapest_of_all(shares) if self.search == "all" else cheapest(shares, orders)
        low: tuple[float, ...] = ()
        high = low
        if self.resamples and clusters.count >= FEWEST:
            low, high = self._interval(chosen, shown, clusters)
        return Probe(
            n=table.n,
            chosen=_counts(chosen),
            shown=_counts(shown),
            order=best,
            cost=bias_cost(shares, best),
            costs=tuple(bias_cost(shares, order) for order in orders),
            count=len(chosen),
            low=low,
            high=high,
            units=clusters.count,
        )

    def _interval(
        self, chosen: NDArray[np.int32], shown: NDArray[np.int32], clusters: Clusters
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        by_position = chosen.sum(axis=1), shown.sum(axis=1)

        def statistic(rows: NDArray[np.intp]) -> FloatArray:
            often, could = (counts[rows].sum(axis=0)[None] for counts in by_position)
            return _rates(often, could)

        low, high = expanded_interval(statistic, clusters, resamples=self.resamples, seed=self.seed)
        return tuple(map(float, low)), tuple(map(float, high))

    def estimates(self) -> dict[str, Estimate]:
        """Estimate how often each position is chosen; a change of the judge shows here.

        Costs are in `Probe`: as sums of sizes they are above 0 for a judge without any bias, the
        more so the fewer items were probed.
        """
        return {
            f"share of position {position} among {probe.n} levels": Estimate(
                value=float(rate),
                low=probe.low[position] if probe.low else None,
                high=probe.high[position] if probe.high else None,
                n=probe.count,
                n_units=probe.units,
            )
            for probe in self.probes or ()
            for position, rate in enumerate(probe.rates)
        }

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the answer in the only column."""
        if self.probes is None:
            raise not_fitted(self.name)
        if self.probes and learned_for(table.n, self.probes) is None:
            warn_uncorrected(self.name, f"no order was learned for {table.n} levels")
        return decide_by_vote(table)


def _by_value(order: Order) -> Ask:
    """Return the levels in an order, counted by value, labels in their own sequence."""
    own = tuple(range(len(order)))
    return Ask(Presentation(order, own), arranged="content")


def _rates(chosen: NDArray[np.int32], shown: NDArray[np.int32]) -> FloatArray:
    """Choices over exposures by position, with the sum 1, from counts (..., n); shape (n,)."""
    rates = chosen.sum(axis=0) / np.maximum(shown.sum(axis=0), 1)
    result: FloatArray = rates / rates.sum()
    return result


def _counts(by_item: NDArray[np.int32]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in by_item.sum(axis=0))
