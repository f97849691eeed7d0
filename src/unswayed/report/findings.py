"""Findings of a run, decided from intervals before a word is written.

3 points of half-width settle a question; a position or label is favoured when its whole interval,
widened so that it holds for all the shares looked at together, lies above 1/n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

from unswayed.auditing.recommendation import FEWEST_UNITS, MOST_TIED, MOST_UNREAD, Recommendation
from unswayed.auditing.records import Metrics
from unswayed.base.visible import one_line
from unswayed.methods import ALL_ORDERS as ALL_ORDERS
from unswayed.methods import BASE
from unswayed.metrics import METRICS, accuracy, consistency, correlation, rates
from unswayed.metrics.accuracy import CONSISTENT_ACCURACY as RIGHT_MOST_OFTEN
from unswayed.metrics.repeats import Repeats
from unswayed.metrics.rows import Rates, Row
from unswayed.model.decisions import Estimate
from unswayed.report.data import RunData
from unswayed.report.intervals import (
    SlotFinding,
    above,
    below,
    favoured_of,
    half_width,
    jointly,
    widened,
)
from unswayed.report.numerals import two_digits_up

ACCURACY: Final = METRICS.name_of(accuracy.ACCURACY)
ACCURACY_FRACTIONAL: Final = METRICS.name_of(accuracy.FRACTIONAL)
AGREEMENT: Final = METRICS.name_of(accuracy.AGREEMENT)
CONSISTENCY: Final = METRICS.name_of(consistency.CONSISTENCY)
CONSISTENT_ACCURACY: Final = METRICS.name_of(RIGHT_MOST_OFTEN)
POSITION_EFFECT: Final = METRICS.name_of(rates.POSITION_EFFECT)
POSITION_RATE: Final = METRICS.name_of(rates.POSITION_RATE)
SPEARMAN: Final = METRICS.name_of(correlation.SPEARMAN)
TIE_RATE: Final = METRICS.name_of(rates.TIE_RATE)
UNPARSED_RATE: Final = METRICS.name_of(rates.UNPARSED_RATE)
"""The metrics that sentences speak about; every other one is shown as its registration says."""

SETTLED_POINTS = 0.03
"""Half-width of an interval below which "no bias" may be said."""

UNPARSED_NOTE = 0.05
REASKED_NOTE = 0.05
DISAGREE_NOTE = 0.001
FLIPS_MATTER = 0.10
"""Flip rate above which flips are the headline where no position is favoured."""
ITEMS_FOR_SETTLED = 1067
"""Items that give a share of one half an interval of ±3 points: (1.96 * 0.5 / 0.03) ** 2."""

NO_ROW = Row({})
_REVISION = re.compile(r"@(?:sha256:)?[0-9a-f]{12,}(?=$|\+)")


class State(StrEnum):
    """Subject of the headline."""

    FAILED = "failed"
    UNPARSED = "unparsed"
    ONE_ORDER = "one order"
    TIES = "ties"
    FEW = "few"
    POSITION = "position"
    HIDDEN = "hidden"
    FLIPS = "flips"
    CLEAN = "clean"


@dataclass(frozen=True)
class Finding:
    """A run, the state that its figures put the report in, and the numbers that decided it."""

    run: RunData
    name: str = ""  # what tells the run from the others of a report; empty where it stands alone

    @property
    def metrics(self) -> Metrics:
        """The figures of the run."""
        return self.run.metrics

    @property
    def model(self) -> str:
        """The model's name without its revision, where that is a long hash."""
        return _REVISION.sub("", self.metrics.model)

    @property
    def noun(self) -> str:
        """Word for a candidate."""
        return self.metrics.data.noun

    # Which rows the report speaks about.

    @property
    def base(self) -> str | None:
        """The method that is the judge as it is used now: the single call, else the first one."""
        return BASE if BASE in self.metrics.methods else next(iter(self.metrics.methods), None)

    @property
    def base_row(self) -> Row:
        """The row of `base`; an empty one without a method."""
        return self.metrics.methods[self.base] if self.base is not None else NO_ROW

    @property
    def plain(self) -> Row:
        """Single calls under the coupled protocol: what headlines speak about."""
        coupled = self.metrics.protocols.get("coupled", NO_ROW)
        return coupled if coupled.values else self.base_row

    @cached_property
    def n(self) -> int:
        """Number of candidates: the most frequent one where items differ, 2 if nothing tells it."""
        strata, plain = self.plain.strata, self.plain
        if strata and not plain.position_rate:
            asked = {n: [rate.n for rate in row.position_rate] for n, row in strata.items()}
            return max(strata, key=lambda n: (max(asked[n], default=0), strata[n].items))
        shown = max(len(plain.position_rate), len(plain.label_rate))
        return shown or max(self.metrics.protocol.n_candidates, default=2)

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers of candidates, fewest first."""
        strata = self.plain.strata
        return tuple(sorted(strata)) if strata and not self.plain.position_rate else (self.n,)

    @property
    def orders_each(self) -> int:
        """Orders under which every item was asked; 0 where that differs between items."""
        return self.metrics.protocol.n_presentations if len(self.sizes) == 1 else 0

    def shares(self, protocol: str, what: str, n: int | None = None) -> Rates:
        """Shares by "position" or "label" under a protocol; empty where not measured."""
        row = self.plain if protocol == "coupled" else self.metrics.protocols.get(protocol, NO_ROW)
        wanted = self.n if n is None else n
        return row.positions(wanted) if what == "position" else row.labels(wanted)

    @cached_property
    def rates(self) -> Rates:
        """Shares by position, as the judge is normally asked."""
        return self.shares("coupled", "position")

    @property
    def consistency(self) -> Estimate | None:
        """Consistency of single calls, as the judge is normally asked."""
        return self.plain.get(CONSISTENCY) or self.base_row.get(CONSISTENCY)

    @property
    def repeats(self) -> Repeats | None:
        """Repeat noise, where enough items were asked again."""
        again = self.metrics.repeats
        return again if again and (again.beyond.n or 0) >= FEWEST_UNITS else None

    @property
    def has_gold(self) -> bool:
        """True if any method has an accuracy."""
        return any(row.get(ACCURACY) for row in self.metrics.methods.values())

    @cached_property
    def items(self) -> int:
        """Items behind the headline: those with every presentation."""
        measured = (row.get(CONSISTENCY) for row in (self.plain, self.base_row))
        return next((e.n for e in measured if e is not None and e.n), self.metrics.data.n_items)

    @property
    def units(self) -> int:
        """Distinct questions behind the headline; items where they were not counted."""
        return min(self.items, self.metrics.data.n_units or self.items)

    def difference(self, method: str, other: str, metric: str) -> Estimate | None:
        """Return the paired difference method minus other, with the interval that claims rest on: the one
        for all methods compared at once, where there is one. None if it was not measured.
        """
        gaps = self.metrics.differences
        gap = gaps.get(f"{method}-{other}", {}).get(metric)
        if gap is None and (turned := gaps.get(f"{other}-{method}", {}).get(metric)) is not None:
            gap = turned.negated()
        if gap is None or gap.value is None:
            return None
        low, high = gap.joint or (gap.low, gap.high)
        return Estimate(value=gap.value, low=low, high=high, n=gap.n)

    # What is favoured, and how sure that is.

    @property
    def expected(self) -> float:
        """The share of a judge without bias."""
        return 1 / self.n

    @property
    def looks(self) -> int:
        """Shares that are compared with 1/n: two that add up to 1 are one, more are as many."""
        others = (self.shares("order", "position"), self.shares("label", "label"))
        return (1 + sum(bool(rates) for rates in others)) * (self.n if self.n > 2 else 1)

    def jointly(self, rate: Estimate) -> Estimate:
        """Return the share with an interval that holds for all these shares together."""
        return jointly(rate, self.looks)

    @property
    def effect(self) -> Estimate | None:
        """For two candidates, comparisons won when shown first minus those won when shown last."""
        return self.plain.get(POSITION_EFFECT) if self.n == 2 else None

    @cached_property
    def favoured(self) -> int | None:
        """Position that the effect proves, else the largest share with a joint interval above 1/n.

        None in one presentation: there the share is that of what stood in the position, too.
        """
        if self.consistency is None:
            return None
        if self.effect is None:
            return favoured_of(self.rates, self.looks)
        joint = widened(self.effect, self.looks)
        return 0 if above(joint, 0.0) else 1 if below(joint, 0.0) else None

    @property
    def avoided(self) -> int | None:
        """The first position whose joint interval lies below 1/n, of more than two."""
        under = (i for i, r in enumerate(self.rates) if below(self.jointly(r), self.expected))
        return next(under, None) if self.n > 2 and self.consistency is not None else None

    @property
    def position(self) -> int:
        """The position the report speaks about: the favoured one, else the first."""
        return self.favoured or 0

    @property
    def hidden(self) -> SlotFinding | None:
        """A position or label favoured on its own although the two together favour nothing."""
        places = []
        for alone in (self._places("order", "position"), self._places("label", "label")):
            index = favoured_of([place.rate for place in alone], self.looks) if alone else None
            if index is not None:
                places.append(alone[index])
        return max(places, key=lambda place: place.rate.value or 0.0, default=None)

    @cached_property
    def widest(self) -> SlotFinding | None:
        """The share whose interval decides whether "no bias" may be said: the widest by position;
        the widest by label only where the positions are settled.
        """
        first, second = (
            max(
                (place for place in places if half_width(place.rate) is not None),
                key=lambda place: round(place.width, 9),
                default=None,
            )
            for places in (self._places("coupled", "position"), self._places("label", "label"))
        )
        if first is None or second is None:
            return first or second
        settled = first.width <= SETTLED_POINTS < second.width and self.units >= FEWEST_UNITS
        return second if settled else first

    def _places(self, protocol: str, kind: Literal["position", "label"]) -> list[SlotFinding]:
        return [
            SlotFinding(kind, index, rate) for index, rate in enumerate(self.shares(protocol, kind))
        ]

    @property
    def width(self) -> float | None:
        """Half of the widest interval, as a fraction."""
        return None if self.widest is None else half_width(self.widest.rate)

    @property
    def settling(self) -> int:
        """Distinct questions that would settle ±3 points: the interval shrinks with their root."""
        if not self.width:
            return two_digits_up(ITEMS_FOR_SETTLED)
        scaled = self.units * (self.width / SETTLED_POINTS) ** 2
        return max(FEWEST_UNITS, two_digits_up(scaled))

    @cached_property
    def state(self) -> State:
        """Subject of the headline."""
        if self.metrics.calls.missing and not self.metrics.calls.answered:
            return State.FAILED
        if self.unparsed_share > MOST_UNREAD:
            return State.UNPARSED
        if self.consistency is None:
            return State.ONE_ORDER
        enough = self.units >= FEWEST_UNITS
        if enough and (self.favoured is not None or self.avoided is not None):
            return State.POSITION
        if enough and self.hidden is not None:
            return State.HIDDEN
        if self.tie_share >= MOST_TIED:
            return State.TIES
        if not enough or self.width is None or self.width > SETTLED_POINTS:
            return State.FEW
        return State.FLIPS if self._flips_matter else State.CLEAN

    # Flips and unreadable answers.

    @property
    def flips(self) -> int:
        """Items whose verdict changed with the order."""
        return self.run.flips.n_flipped

    @property
    def _flips_matter(self) -> bool:
        return self.consistency is not None and below(self.consistency, 1 - FLIPS_MATTER)

    @property
    def tie_share(self) -> float:
        """Share of ties among the answers."""
        rate = self.plain.get(TIE_RATE)
        return 0.0 if rate is None else rate.value or 0.0

    @property
    def flips_are_plain(self) -> bool:
        """True if pairs flip beyond doubt, although no position can be named."""
        return self.n == 2 and self.units >= FEWEST_UNITS and self.flips > 0 and self._flips_matter

    @property
    def unparsed_share(self) -> float:
        """Share of the answers that could not be read."""
        calls = self.metrics.calls
        return calls.unparsed / calls.heard if calls.heard else 0.0

    @property
    def unparsed_matters(self) -> bool:
        """True if unreadable answers are worth a sentence beside the finding."""
        return self.state is not State.UNPARSED and self.unparsed_share > UNPARSED_NOTE

    @property
    def nothing_read(self) -> bool:
        """True if no answer at all could be read."""
        return self.state is State.UNPARSED and self.unparsed_share >= 1

    # Labels.

    @property
    def labels(self) -> tuple[str, ...]:
        """The label symbols, in label order."""
        symbols = self.run.run.labels
        if len(symbols) < self.n:  # coupled presentations: the labels stand in their own order
            shown = (view.labels for item in self.run.flips.flipped for view in item.shown)
            symbols = next(shown, ())
            if len(symbols) != self.n:
                numbers = range(self.n)
                symbols = tuple(chr(65 + i) if self.n <= 26 else str(i + 1) for i in numbers)
        return tuple(map(one_line, symbols))

    def symbols(self, labels: Iterable[int]) -> list[str]:
        """Return the symbols of some labels."""
        return [self.labels[label] for label in labels]

    # The recommendation.

    @property
    def recommends(self) -> bool:
        """True if the data carry a recommendation."""
        if self.state is State.FEW:
            return self.units >= FEWEST_UNITS
        return self.state not in {State.FAILED, State.UNPARSED, State.ONE_ORDER, State.TIES}

    @property
    def recommended(self) -> str | None:
        """The recommended method, where one may be recommended."""
        return self.advised.method

    @property
    def advised(self) -> Recommendation:
        """The recommendation; an empty one where none can be, or a method that it names is not here."""
        given, rows = self.metrics.recommendation, self.metrics.methods
        told = self.recommends or self.state is State.ONE_ORDER
        if given is None or len(rows) < 2 or (given.state != "none" and not told):
            return Recommendation()
        if given.state == "none":
            return replace(given, method=None)
        named = {given.method, given.cheapest, given.most_accurate} - {None}
        return given if named <= rows.keys() else Recommendation()

    @property
    def criterion(self) -> str:
        """The metric by which methods are compared."""
        return self.accuracy if self.base_row.get(SPEARMAN) is None else SPEARMAN

    @property
    def accuracy(self) -> str:
        """The accuracy by which methods are compared: ties shared, unless they are a class."""
        classes = self.run.run.settings.get("gold_ties") == "class"
        return ACCURACY if classes else ACCURACY_FRACTIONAL

    @property
    def ties(self) -> bool:
        """True if any method shares ties in its accuracy."""
        rates = [row.get(TIE_RATE) for row in self.metrics.methods.values()]
        return self.accuracy != ACCURACY and any(rate and rate.value for rate in rates)
