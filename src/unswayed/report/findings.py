"""What a run shows, decided from intervals before a word is written.

The states and their limits are the report's rules: 3 points of half-width settle a question, a
position or label is favoured when its whole interval lies above 1/n, widened so that it holds for
all the shares that are looked at together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist
from typing import Literal

import msgspec

from unswayed.auditing.records import Metrics
from unswayed.auditing.rows import Rates
from unswayed.decisions import Estimate
from unswayed.report.data import RunData
from unswayed.report.numerals import two_digits_up
from unswayed.report.reading import AGREEMENT, CONSISTENCY, Audit, model_name
from unswayed.tasks import TASKS, task_of
from unswayed.visible import one_line

__all__ = ["Finding", "Place", "State", "apart", "disjoint", "find", "half_width"]

SETTLED_POINTS = 0.03
"""Half-width of an interval below which "no bias" may be said."""

FEWEST_ITEMS = 20
UNPARSED_LIMIT = 0.20
"""Share of unreadable answers above which the report describes the rest only."""

UNPARSED_NOTE = 0.05
FLIPS_MATTER = 0.10
"""Flip rate whose interval must lie above this for flips without a favoured position to be the
headline."""

COUNTED_UP_TO = 10_000
"""Flips are given as a count up to this many items, above as a share."""

ITEMS_FOR_SETTLED = 1067
"""Items that give a share of one half an interval of ±3 points: (1.96 * 0.5 / 0.03) ** 2."""


class State(StrEnum):
    """What the headline is about."""

    FAILED = "failed"
    UNPARSED = "unparsed"
    ONE_ORDER = "one order"
    FEW = "few"
    POSITION = "position"
    HIDDEN = "hidden"
    FLIPS = "flips"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Place:
    """A position or a label, and its share of the choices."""

    kind: Literal["position", "label"]
    index: int
    rate: Estimate


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of a run and the numbers that decided it.

    Attributes:
        n: Number of candidates.
        items: Items with every presentation.
        rates: By position, as the judge is normally asked.
        favoured: Position whose joint interval lies above 1/n (the largest share); None if there is
            none.
        avoided: Position whose joint interval lies below 1/n where none is favoured.
        widest: The share whose interval decides whether "no bias" may be said.
        settling: Items that would settle ±3 points; only in state FEW.
        hidden: In state HIDDEN: what is favoured on its own.
    """

    run: RunData
    audit: Audit
    state: State
    n: int
    items: int
    rates: Rates
    favoured: int | None = None
    avoided: int | None = None
    widest: Place | None = None
    settling: int | None = None
    hidden: Place | None = None

    @property
    def metrics(self) -> Metrics:
        """The figures of the run."""
        return self.run.metrics

    @property
    def noun(self) -> str:
        """What a candidate is called, as its task says, if that is known here."""
        task = self.metrics.data.task or ""
        return task_of(task).noun if task in TASKS else "candidate"

    @property
    def width(self) -> float | None:
        """Half of the widest interval, as a fraction."""
        return None if self.widest is None else half_width(self.widest.rate)

    @property
    def expected(self) -> float:
        """The share of a judge without bias."""
        return 1 / self.n

    @property
    def looks(self) -> int:
        """Shares that are compared with 1/n in search of a bias."""
        return _looks(self.audit)

    def jointly(self, rate: Estimate) -> Estimate:
        """The share with an interval that holds for all these shares together."""
        return _jointly(rate, self.looks)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label symbols, in label order."""
        if len(self.run.run.labels) >= self.n:
            return tuple(one_line(symbol) for symbol in self.run.run.labels)
        shown = next((view for item in self.run.flipped for view in item.shown), None)
        if shown is not None and len(shown.labels) == self.n:
            # Coupled presentations: the labels stand in their own order.
            return tuple(one_line(symbol) for symbol in shown.labels)
        if self.n > 26:
            return tuple(str(label + 1) for label in range(self.n))
        return tuple(chr(65 + label) for label in range(self.n))

    @property
    def position(self) -> int:
        """The position the report speaks about: the favoured one, else the first."""
        return self.favoured or 0

    @property
    def consistency(self) -> Estimate | None:
        """That of single calls, as the judge is normally asked."""
        return self.audit.plain.get(CONSISTENCY) or self.audit.base_row.get(CONSISTENCY)

    @property
    def flips(self) -> int:
        """Items whose verdict changed with the order."""
        return self.run.n_flipped

    @property
    def flip_share(self) -> float | None:
        """Flips as a share of the items, where there are too many to count."""
        return self.flips / self.items if self.items > COUNTED_UP_TO else None

    @property
    def flips_are_plain(self) -> bool:
        """Whether pairs flip beyond doubt, although no position can be named."""
        if self.n != 2 or self.items < FEWEST_ITEMS or not self.flips or self.consistency is None:
            return False
        return self.consistency.high is not None and 1 - self.consistency.high > FLIPS_MATTER

    @property
    def favours_last(self) -> bool:
        """Of two answers: whether the last one is favoured, or the first one avoided."""
        return self.favoured == 1 or (self.favoured is None and self.avoided == 0)

    @property
    def model(self) -> str:
        """The model's name."""
        return model_name(self.metrics.model)

    @property
    def nothing_read(self) -> bool:
        """Whether no answer at all could be read."""
        return (
            self.state is State.UNPARSED
            and self.metrics.calls.unparsed >= self.metrics.calls.answered
        )

    def symbols(self, labels: Iterable[int]) -> list[str]:
        """The symbols of some labels."""
        return [self.labels[label] for label in labels]

    @property
    def unparsed_share(self) -> float:
        """Share of the answers that could not be read."""
        return (
            self.metrics.calls.unparsed / self.metrics.calls.answered
            if self.metrics.calls.answered
            else 0.0
        )

    @property
    def unparsed_matters(self) -> bool:
        """Whether unreadable answers are worth a sentence beside the finding."""
        return self.state is not State.UNPARSED and self.unparsed_share > UNPARSED_NOTE

    @property
    def recommends(self) -> bool:
        """Whether the data carry a recommendation."""
        few = self.state is State.FEW and self.items < FEWEST_ITEMS
        return self.state not in {State.FAILED, State.UNPARSED, State.ONE_ORDER} and not few

    @property
    def recommended(self) -> str | None:
        """The recommended method, where one may be recommended."""
        advice = self.metrics.recommendation
        if not self.recommends or advice is None or len(self.metrics.methods) < 2:
            return None
        return advice.method if advice.method in self.metrics.methods else None

    @property
    def no_advice(self) -> str:
        """Why no method is recommended where the data would carry one; empty if nobody said."""
        advice = self.metrics.recommendation
        told = advice is not None and self.recommends and self.recommended is None
        return advice.reason if advice is not None and told else ""

    @property
    def label_free(self) -> bool:
        """Whether methods were judged without gold labels."""
        advice = self.metrics.recommendation
        return advice is not None and advice.metric == AGREEMENT

    @property
    def settled_by_order(self) -> tuple[str, ...]:
        """Methods of this run that give one verdict whatever the order."""
        return tuple(
            method
            for method, row in self.metrics.methods.items()
            if (e := row.get(CONSISTENCY)) is not None and e.by_construction
        )


def half_width(estimate: Estimate) -> float | None:
    """Half the interval, as a fraction."""
    if estimate.low is None or estimate.high is None:
        return None
    return (estimate.high - estimate.low) / 2


def disjoint(a: Estimate, b: Estimate) -> bool:
    """Whether two intervals have no point in common."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def apart(a: Estimate, b: Estimate, n: int) -> bool:
    """Whether the extremes of n independent estimates differ, for all pairs together (Bonferroni).

    Of ten groups that are alike, the intervals of the two extremes are disjoint in every sixth run.
    """
    if not disjoint(a, b):
        return False
    lower, upper = sorted((a, b), key=lambda estimate: estimate.value or 0.0)
    # the sides that face each other: an interval near 0 or 1 is lopsided
    reach = (lower.high or 0.0) - (lower.value or 0.0), (upper.value or 0.0) - (upper.low or 0.0)
    pairs = n * (n - 1) / 2
    wider = NormalDist().inv_cdf(1 - 0.025 / pairs) / NormalDist().inv_cdf(0.975)
    return (upper.value or 0.0) - (lower.value or 0.0) > wider * math.hypot(*reach)


def above(estimate: Estimate, expected: float) -> bool:
    """Whether the whole interval lies above the expected share."""
    return estimate.low is not None and estimate.low > expected


def below(estimate: Estimate, expected: float) -> bool:
    """Whether the whole interval lies below the expected share."""
    return estimate.high is not None and estimate.high < expected


def _jointly(estimate: Estimate, looks: int) -> Estimate:
    """The estimate with an interval that holds for all shares looked at together (Bonferroni).

    Of twelve shares without any bias one lies outside its own 95 % interval in every third run.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    wider = NormalDist().inv_cdf(1 - 0.025 / looks) / NormalDist().inv_cdf(0.975)
    low = estimate.value - wider * (estimate.value - estimate.low)
    high = estimate.value + wider * (estimate.high - estimate.value)
    return msgspec.structs.replace(estimate, low=max(low, 0.0), high=min(high, 1.0))


def _looks(audit: Audit) -> int:
    """Two shares that add up to 1 are one question, more are as many."""
    others = (audit.rates("order", "position"), audit.rates("label", "label"))
    return (1 + sum(bool(rates) for rates in others)) * (audit.n if audit.n > 2 else 1)


def favoured_of(rates: Sequence[Estimate], looks: int) -> int | None:
    """The index with the largest share among those whose joint interval lies above 1/n."""
    over = [i for i, rate in enumerate(rates) if above(_jointly(rate, looks), 1 / len(rates))]
    return max(over, key=lambda i: rates[i].value or 0.0, default=None)


def find(run: RunData) -> Finding:
    """Decide what a run shows."""
    audit = Audit(run.metrics)
    rates, looks = audit.rates("coupled", "position"), _looks(audit)
    avoided = (i for i, rate in enumerate(rates) if below(_jointly(rate, looks), 1 / len(rates)))
    finding = Finding(
        run=run,
        audit=audit,
        state=State.CLEAN,
        n=audit.n,
        items=audit.complete_items,
        rates=rates,
        favoured=favoured_of(rates, looks),
        avoided=next(avoided, None),
        widest=_widest(audit),
    )
    return _with_state(finding)


def _widest(audit: Audit) -> Place | None:
    """The interval that decides whether "no bias" may be said.

    The widest by position; the widest by label only where the positions are settled.
    """
    first = _widest_of(_places(audit, "coupled", "position"))
    second = _widest_of(_places(audit, "label", "label"))
    if first is None or second is None:
        return first or second
    unsettled = (half_width(first.rate) or 0.0) > SETTLED_POINTS
    wider = (half_width(second.rate) or 0.0) > SETTLED_POINTS
    return first if unsettled or not wider or audit.complete_items < FEWEST_ITEMS else second


def _places(audit: Audit, protocol: str, kind: Literal["position", "label"]) -> list[Place]:
    return [Place(kind, index, rate) for index, rate in enumerate(audit.rates(protocol, kind))]


def _widest_of(places: Iterable[Place]) -> Place | None:
    measured = [place for place in places if half_width(place.rate) is not None]
    return max(measured, key=lambda place: round(half_width(place.rate) or 0.0, 9), default=None)


def _with_state(finding: Finding) -> Finding:
    audit = finding.audit
    if audit.metrics.calls.missing and not audit.metrics.calls.answered:
        return replace(finding, state=State.FAILED)
    if finding.unparsed_share > UNPARSED_LIMIT:
        return replace(finding, state=State.UNPARSED)
    if finding.consistency is None:
        return replace(finding, state=State.ONE_ORDER)
    few = replace(finding, state=State.FEW, settling=_settling(finding))
    if finding.items < FEWEST_ITEMS:
        return few
    if finding.favoured is not None or finding.avoided is not None:
        return replace(finding, state=State.POSITION)
    hidden = _hidden(audit)
    if hidden is not None:
        return replace(finding, state=State.HIDDEN, hidden=hidden)
    if finding.width is None or finding.width > SETTLED_POINTS:
        return few
    high = finding.consistency.high
    flips = high is not None and 1 - high > FLIPS_MATTER
    return replace(finding, state=State.FLIPS if flips else State.CLEAN)


def _settling(finding: Finding) -> int:
    """Items that would settle ±3 points: the interval shrinks with the root of their number."""
    if not finding.width:
        return two_digits_up(ITEMS_FOR_SETTLED)
    scaled = finding.items * (finding.width / SETTLED_POINTS) ** 2
    return max(FEWEST_ITEMS, two_digits_up(scaled))


def _hidden(audit: Audit) -> Place | None:
    """A position or label favoured on its own although the two together favour nothing."""
    looks = _looks(audit)
    places = []
    for alone in (_places(audit, "order", "position"), _places(audit, "label", "label")):
        index = favoured_of([place.rate for place in alone], looks) if alone else None
        if index is not None:
            places.append(alone[index])
    return max(places, key=lambda place: place.rate.value or 0.0, default=None)
