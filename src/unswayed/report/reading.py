"""`metrics.json` as a report speaks of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unswayed.auditing.recommendation import Recommendation
from unswayed.auditing.records import Calls, Data, Metrics
from unswayed.auditing.rows import Rates, Row
from unswayed.decisions import Estimate

__all__ = ["Audit", "Rates", "Recommendation", "Row", "model_name"]

_REVISION = re.compile(r"@(?:sha256:)?[0-9a-f]{12,}(?=$|\+)")

NO_ROW = Row({})


def _asked(row: Row) -> int:
    """Calls behind the shares by position."""
    return max((rate.n for rate in row.position_rate), default=0)


@dataclass(frozen=True, slots=True)
class Audit:
    """The figures of a run, and what follows from them."""

    metrics: Metrics

    @property
    def model(self) -> str:
        """The model, with its revision."""
        return self.metrics.model

    @property
    def data(self) -> str:
        """Name of the data."""
        return self.counts.name

    @property
    def counts(self) -> Data:
        """Items by what is special about them."""
        return self.metrics.data

    @property
    def n_items(self) -> int:
        """Items audited."""
        return self.counts.n_items

    @property
    def orders(self) -> str:
        """Name of the set of orders."""
        return self.metrics.protocol.name

    @property
    def n_presentations(self) -> int:
        """Most presentations of an item."""
        return self.metrics.protocol.n_presentations

    @property
    def calls(self) -> Calls:
        """What was asked and what came back."""
        return self.metrics.calls

    @property
    def planned(self) -> int:
        """Distinct calls."""
        return self.calls.planned

    @property
    def answered(self) -> int:
        """Calls that came back, made or from cache."""
        return self.calls.answered

    @property
    def missing(self) -> int:
        """Planned calls without an answer."""
        return self.calls.missing

    @property
    def unparsed(self) -> int:
        """Answers that could not be read."""
        return self.calls.unparsed

    @property
    def protocols(self) -> Mapping[str, Row]:
        """Any of coupled, order, label."""
        return self.metrics.protocols

    @property
    def methods(self) -> Mapping[str, Row]:
        """By name, the single call first."""
        return self.metrics.methods

    @property
    def groups(self) -> Mapping[str, Mapping[str, Row]]:
        """Group to method to row."""
        return self.metrics.groups

    @property
    def macro(self) -> Mapping[str, Row]:
        """Method to averages over groups."""
        return self.metrics.macro

    @property
    def recommendation(self) -> Recommendation | None:
        """What to use and why."""
        return self.metrics.recommendation

    @property
    def skipped(self) -> Mapping[str, str]:
        """Methods that were asked for and left out, with the reason."""
        return self.metrics.skipped

    @property
    def cautions(self) -> Mapping[str, tuple[str, ...]]:
        """Method to what fitting warned about."""
        return self.metrics.cautions

    @property
    def flips(self) -> Mapping[str, int]:
        """Items whose verdict changes, and what became of them."""
        return self.metrics.flips

    @property
    def base(self) -> str | None:
        """The method that is the judge as it is used now: direct, else the first one."""
        return "direct" if "direct" in self.methods else next(iter(self.methods), None)

    @property
    def base_row(self) -> Row:
        """The row of `base`; an empty one if there is no method."""
        return self.methods[self.base] if self.base is not None else NO_ROW

    @property
    def plain(self) -> Row:
        """Single calls under the coupled protocol: what headlines speak about."""
        coupled = self.protocols.get("coupled", NO_ROW)
        return coupled if coupled.values else self.base_row

    @property
    def n(self) -> int:
        """Number of candidates: the most frequent one where items differ, 2 if nothing says."""
        plain = self.plain
        if plain.strata and not plain.position_rate:
            return max(plain.strata, key=lambda n: (_asked(plain.strata[n]), plain.strata[n].items))
        return max(len(plain.position_rate), len(plain.label_rate)) or 2

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers of candidates, fewest first."""
        plain = self.plain
        return (
            tuple(sorted(plain.strata)) if not plain.position_rate and plain.strata else (self.n,)
        )

    @property
    def orders_each(self) -> int:
        """Orders under which every item was asked; 0 where that differs between items."""
        return self.n_presentations if len(self.sizes) == 1 else 0

    def rates(self, protocol: str, what: str, n: int | None = None) -> Rates:
        """Shares by "position" or "label" under a protocol; empty where not measured."""
        row = self.plain if protocol == "coupled" else self.protocols.get(protocol, NO_ROW)
        wanted = self.n if n is None else n
        return row.positions(wanted) if what == "position" else row.labels(wanted)

    @property
    def has_gold(self) -> bool:
        """Whether any method has an accuracy."""
        return any(row.get("accuracy") for row in self.methods.values())

    @property
    def complete_items(self) -> int:
        """Items behind the headline: those with every presentation."""
        for row in (self.plain, self.base_row):
            consistency = row.get("consistency")
            if consistency is not None and consistency.n:
                return consistency.n
        return self.n_items

    def difference(self, method: str, other: str, metric: str) -> Estimate | None:
        """The paired difference method minus other; None if it was not measured."""
        gap = self.metrics.differences.get(f"{method}-{other}", {}).get(metric)
        if gap is not None:
            return gap if gap.value is not None else None
        gap = self.metrics.differences.get(f"{other}-{method}", {}).get(metric)
        if gap is None or gap.value is None:
            return None
        low, high, joint = gap.low, gap.high, gap.joint
        return Estimate(
            value=-gap.value,
            low=None if high is None else -high,
            high=None if low is None else -low,
            n=gap.n,
            by_construction=gap.by_construction,
            joint=None if joint is None else (-joint[1], -joint[0]),
        )


def model_name(model: str) -> str:
    """A model's name without its revision, where that is a long hash."""
    return _REVISION.sub("", model)
