"""Escalate: ask the next order only while the corrected calls are not sure.

z_k = centred log p of an item's k-th call, less the offset of each candidate's label; m_k = mean of
z_1..z_k; gap = largest less second largest of m_k. The orders permute the candidates sorted by content,
so that the verdict is the same in whatever order they are given; the first one follows from a hash of the
item's content, so that no order is favoured, and the others follow in their cycle. It stops where the gap
reaches the threshold, or where every order is asked; then the verdict is exactly that of the whole set.
Fit, without gold: offsets from one half of the estimation questions, the threshold from the other half,
on which the verdicts that change against the whole set are counted. The thresholds of a fixed grid are
tried from the largest down, until the first whose bound exceeds `share`: with `guarantee=high` the
Clopper-Pearson bound at confidence 1 - `risk` (fixed-sequence testing), with `guarantee=mean`
(changed + 1)/(questions + 1) (conformal risk control, Angelopoulos et al. 2024, arXiv 2208.02814).
Calls: fit the size of the set per estimation item, judge between 1 and that size. Ties: the tie rule.
AnyJev stops early by such a bound too, without offsets (`offsets=none`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.base.digests import digest, number_of
from unswayed.methods.bounds import check_bound, check_settings, fewest, upper_end
from unswayed.methods.checks import UnsoundError, check_numbers, check_offsets
from unswayed.methods.estimation import Tables, not_fitted, warn_if_few, warn_of, warn_uncorrected
from unswayed.methods.protocol import About, Learned, Method, learned, learned_for
from unswayed.methods.sets import presentation_set
from unswayed.methods.tables import (
    TOLERANCE,
    labels_by_candidate,
    log_probs_by_label,
    margin,
    softmax,
    verdict_table,
)
from unswayed.model.decisions import (
    MISSING,
    BoolArray,
    Decision,
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    IntArray,
    VerdictTable,
    argmax_by_tie_rule,
)
from unswayed.model.items import Item, blind, question_mark
from unswayed.model.permutations import invert
from unswayed.model.presentation import Ask, askable

CURVE: Final = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, math.inf)
"""Gaps of the points that show what fewer calls cost."""

GRID: Final = tuple(round(0.05 * step, 2) for step in range(241))
"""Thresholds on the gap, in nats, 0 to 12."""

FEWEST: Final = 2
"""Estimation questions in each half without which nothing is learned."""


@dataclass(frozen=True, slots=True)
class Escalation(Learned):
    """When to stop, for one number of candidates."""

    offsets: tuple[float, ...]  # added to log p by each label, in nats; sums to 0
    gap: float | None  # smallest gap that stops, in nats; None: every order is asked
    changed: int  # questions whose verdict differs from that of every order, at this gap
    count: int  # questions on which the gap was chosen
    calls: float  # mean calls per item on them

    def __post_init__(self) -> None:
        check_offsets(self.offsets, self.n)
        check_numbers("calls", [self.calls], 1, least=1)
        if not 0 <= self.changed <= self.count or not self.count:
            raise UnsoundError(f"changed: {self.changed} of {self.count}")
        if self.gap is not None and not 0 <= self.gap <= GRID[-1]:
            raise UnsoundError(f"gap: {self.gap} is not between 0 and {GRID[-1]}")


@dataclass(frozen=True, slots=True)
class Escalate(Method):
    """Corrected calls of an item, until their mean is sure.

    Attributes:
        share: Largest share of verdicts that may differ from the verdicts of all orders.
        guarantee: Bound on the share: with confidence 1 − `risk` (`high`), or in the mean over
            estimation sets (`mean`), provided that a smaller gap changes at least as many verdicts.
        risk: Probability with which `high` may exceed the share.
        orders: Set of orders; `auto` is swap for two candidates and cyclic for more.
        arranged: Candidates that the orders permute: sorted by `content`, so that the verdict does not
            depend on the order given, or as `given`.
        offsets: Offsets of the labels: `fitted`, or all 0 (`none`), which corrects nothing.
        gap: Gap at which to stop, in nats, in place of the fitted gap. No bound holds then.
        stops: What `fit` learned.
    """

    share: float = 0.05
    guarantee: Literal["high", "mean"] = "high"
    risk: float = 0.1
    orders: str = "auto"
    arranged: Literal["content", "given"] = "content"
    offsets: Literal["fitted", "none"] = "fitted"
    gap: float | None = None
    stops: tuple[Escalation, ...] | None = learned()

    name: ClassVar[str] = "escalate"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = 2 * FEWEST
    learns_threshold: ClassVar[bool] = True
    about: ClassVar[About] = About(
        title="Escalation with a bound",
        source="Unswayed; bounds by conformal risk control (arXiv 2208.02814) and Clopper-Pearson",
        idea="Correct one call, and ask the next order only if the corrected probabilities are close.",
        calls="between 1 and n",
        estimation="n per estimation item",
        equation="stop at call k if the gap of mean_j<=k (log p_j - offset) >= threshold",
        helps="you want the verdicts of all orders for little more than one call per item, with a bound"
        " on the share that differs",
        cannot="Calls of one item wait for each other. The bound limits changes from the verdicts of all"
        " orders, not errors, and holds for items like the estimation items. With few estimation items, every"
        " order is asked, with a warning.",
        default=False,
    )

    def __post_init__(self) -> None:
        check_settings(self.name, self.gap, share=self.share, risk=self.risk)
        for own in self.stops or ():
            if own.gap is not None:
                check_bound(
                    self.guarantee, own.changed, own.count, risk=self.risk, share=self.share
                )

    @property
    def questions_needed(self) -> int:
        """Fewest questions in the second half with which no change at all proves the bound."""
        return fewest(self.guarantee, self.share, self.risk)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every order of the set."""
        shown = presentation_set(self.orders, n)
        return tuple(Ask(own, arranged=self.arranged) for own in shown)

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Every order of the set."""
        return self.asks(n)

    def stops_after(self, n: int) -> Sequence[int]:
        """After each call but the last."""
        return range(1, len(self.asks(n)))

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """Return the orders up to the next one, counted from the item's first; none after a stop."""
        asks = askable(item, self.asks(item.n))
        if not item.permutable or not asks:
            return list(asks)
        first = first_order(item, len(asks))
        cycle = [*asks[first:], *asks[:first]]
        answered = {decision.ask for decision in seen}
        got = next((k for k, ask in enumerate(cycle) if ask not in answered), len(cycle))
        table = DecisionTable.of([blind(item)], seen).select(self.asks(item.n))
        done = got and self.decide_table(table).choices[0] != MISSING
        return cycle[: got if done else got + 1]

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows offsets and gap for each number of candidates."""
        fitted = {n: self._stop(table.select(self.asks(n))) for n, table in tables.items()}
        if not fitted:
            warn_if_few(self.name, {}, least=2 * self.questions_needed)
        for n, stop in fitted.items():
            if self.gap is None and (stop is None or stop.gap is None):
                warn_of(
                    f"escalate asks every order of {n} candidates: a share of {self.share:g} needs at least "
                    f"{2 * self.questions_needed} estimation questions with all probabilities, and there are "
                    f"{stop.units if stop else 0}. Give more items (in an audit: --estimation-items) or a larger share."
                )
        return replace(self, stops=tuple(stop for stop in fitted.values() if stop))

    def _stop(self, table: DecisionTable) -> Escalation | None:
        logs = centred_logs(table)
        rows = distinct_rows(logs, table)
        if len(rows) < 2 * FEWEST:
            return None
        offsets: FloatArray = logs[rows[::2]].mean(axis=(0, 1)) * (self.offsets == "fitted")
        proving = table.rows(rows[1::2])
        means, gaps = _running(_in_turn(corrected_logs(proving, offsets), _turns(proving)))
        asked = means.shape[1]
        verdicts = np.stack([leaders(means[:, k], proving) for k in range(asked)], axis=1)
        gap, changed, calls = None, 0, float(asked)
        for threshold in reversed(GRID):
            last = _last(gaps, threshold)
            differ = int((np.take_along_axis(verdicts, last[:, None], 1) != verdicts[:, -1:]).sum())
            if upper_end(self.guarantee, differ, len(proving), self.risk) > self.share:
                break
            gap, changed, calls = threshold, differ, float(last.mean() + 1)
        return Escalation(
            n=table.n,
            offsets=tuple(map(float, offsets)),
            gap=gap,
            changed=changed,
            count=len(proving),
            calls=calls,
            units=len(rows),
        )

    def settings(self) -> tuple[Self, ...]:
        """Return the method at several gaps, the last one asking every order."""
        return tuple(replace(self, gap=gap) for gap in CURVE)

    def estimates(self) -> dict[str, Estimate]:
        """Return the gap, in nats, and the share of changed verdicts with its bound."""
        result = {}
        for stop in self.stops or ():
            of = f"among {stop.n} candidates"
            reason = "" if stop.gap is not None else "every order is asked"
            result[f"gap that stops {of}"] = Estimate(
                value=stop.gap, n=stop.count, reason=reason, n_units=stop.units
            )
            result[f"share of changed verdicts {of}"] = Estimate(
                value=stop.changed / stop.count,
                low=0.0,
                high=upper_end(self.guarantee, stop.changed, stop.count, self.risk),
                n=stop.count,
            )
        return result

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the verdict at each item's stop; later calls are not read.

        An answer without probabilities before the stop leaves the item without a verdict.
        """
        if self.stops is None:
            raise not_fitted(self.name)
        stop = learned_for(table.n, self.stops)
        if stop is None and self.stops:
            warn_uncorrected(self.name, f"nothing was fitted for {table.n} candidates")
        offsets = np.zeros(table.n) if stop is None else np.array(stop.offsets)
        fitted = math.inf if stop is None or stop.gap is None else stop.gap
        gap = fitted if self.gap is None else self.gap
        turns = _turns(table)
        z = _in_turn(corrected_logs(table, offsets), turns)
        means, gaps = _running(z)
        unknown: BoolArray = np.asarray(np.isnan(z).any(axis=2))
        last = np.where(unknown.any(axis=1), unknown.argmax(axis=1), z.shape[1] - 1)
        last = np.minimum(last, _last(gaps, gap))
        last[~table.subjects.permutable] = 0
        rows = np.arange(len(table))
        scores = softmax(means[rows, last])
        choices = leaders(means[rows, last], table)
        choices[np.take_along_axis(table.choices, turns, axis=1)[rows, last] == MISSING] = MISSING
        read: BoolArray = np.arange(z.shape[1]) <= last[:, None]
        cells: BoolArray = np.zeros_like(read)
        np.put_along_axis(cells, turns, read, axis=1)
        return verdict_table(table, choices, cells=cells & table.allowed, scores=scores)


def first_order(item: Item, count: int) -> int:
    """Return the place, among `count` orders, of the one in which an item is asked first.

    It follows from the texts, whatever their order; recorded decisions without texts have their id.
    """
    content = question_mark(item) if all(item.candidates) else item.id
    return int.from_bytes(digest("order", content)[:8], "big") % count


def _turns(table: DecisionTable) -> NDArray[np.intp]:
    """Columns in the order in which each item is asked, shape (I, K); a fixed item begins with its own."""
    count = len(table.asks)
    first = [
        first_order(item, count) if permutable else 0
        for item, permutable in zip(table.items, table.subjects.permutable.tolist(), strict=True)
    ]
    return (np.array(first, dtype=np.intp)[:, None] + np.arange(count)) % count


def distinct_rows(logs: FloatArray, table: DecisionTable) -> NDArray[np.intp]:
    """Rows with all `centred_logs`, one of each unit, by a hash of their ids."""
    complete: BoolArray = np.asarray(~np.isnan(logs).any(axis=(1, 2)))
    _, first = np.unique(table.subjects.units[complete], return_index=True)
    some = np.flatnonzero(complete)[first].tolist()
    return np.array(sorted(some, key=lambda row: number_of(table.items[row].id)), dtype=np.intp)


def _by_content(table: DecisionTable) -> tuple[DecisionTable, NDArray[np.intp]]:
    """Return the table with the candidates that its questions permute, and the candidate at each of their
    places, shape (I, n).
    """
    places = np.tile(np.arange(table.n), (len(table), 1))
    if all(ask.arranged == "given" for ask in table.asks):
        return table, places
    seen_as = np.array(places[0] if table.outer is None else invert(table.outer))
    for row, order in enumerate(table.subjects.content_orders):
        if order is not None:
            places[row] = seen_as[list(order)]
    probs = table.probs
    probs = None if probs is None else np.take_along_axis(probs, places[:, None], axis=2)
    return replace(table, probs=probs, outer=None), places


def centred_logs(table: DecisionTable) -> FloatArray:
    """log p by label, less its mean over the labels, shape (I, K, n); NaN where unknown."""
    table, _ = _by_content(table)
    logs = np.stack([log_probs_by_label(table, k) for k in range(len(table.asks))], axis=1)
    result: FloatArray = logs - logs.mean(axis=2, keepdims=True)
    return result


def corrected_logs(table: DecisionTable, offsets: FloatArray) -> FloatArray:
    """Centred log p less the offset of the label, by candidate, shape (I, K, n)."""
    z = centred_logs(table) - offsets
    seen, places = _by_content(table)
    labels = [list(labels_by_candidate(seen, k)) for k in range(len(table.asks))]
    by_place = np.stack([z[:, k, own] for k, own in enumerate(labels)], axis=1)
    return np.take_along_axis(by_place, places.argsort(axis=1)[:, None], axis=2)


def _in_turn(z: FloatArray, turns: NDArray[np.intp]) -> FloatArray:
    return np.take_along_axis(z, turns[:, :, None], axis=1)


def _running(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means over the first 1 to K calls, shape (I, K, n), and their gaps, shape (I, K)."""
    means: FloatArray = z.cumsum(axis=1) / np.arange(1, z.shape[1] + 1)[None, :, None]
    return means, margin(means)


def _last(gaps: FloatArray, threshold: float) -> NDArray[np.intp]:
    """Return the place of the call after which each item stops, shape (I,)."""
    enough = gaps >= threshold
    enough[:, -1] = True
    last: NDArray[np.intp] = enough.argmax(axis=1)
    return last


def leaders(means: FloatArray, table: DecisionTable) -> IntArray:
    """Return the leader of each row of means, shape (I, n), by the tie rule; UNPARSED for NaN."""
    return argmax_by_tie_rule(softmax(means), table, tolerance=TOLERANCE)
