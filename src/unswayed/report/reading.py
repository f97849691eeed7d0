"""`metrics.json` as a report speaks of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from unswayed.auditing.records import Metrics
from unswayed.auditing.rows import Rates, Row
from unswayed.decisions import Estimate
from unswayed.methods import BASE
from unswayed.metrics import METRICS, accuracy, answers, consistency, consistent_accuracy, rates

__all__ = [
    "ACCURACY",
    "ACCURACY_FRACTIONAL",
    "AGREEMENT",
    "CONSISTENCY",
    "CONSISTENT_ACCURACY",
    "POSITION_RATE",
    "TIE_RATE",
    "UNPARSED_RATE",
    "Audit",
    "model_name",
]

ACCURACY: Final = METRICS.name_of(accuracy.ACCURACY)
ACCURACY_FRACTIONAL: Final = METRICS.name_of(accuracy.FRACTIONAL)
AGREEMENT: Final = METRICS.name_of(accuracy.AGREEMENT)
CONSISTENCY: Final = METRICS.name_of(consistency.CONSISTENCY)
CONSISTENT_ACCURACY: Final = METRICS.name_of(consistent_accuracy.CONSISTENT_ACCURACY)
POSITION_RATE: Final = METRICS.name_of(rates.POSITION_RATE)
TIE_RATE: Final = METRICS.name_of(answers.TIE_RATE)
UNPARSED_RATE: Final = METRICS.name_of(answers.UNPARSED_RATE)
"""The metrics that sentences speak about; every other one is shown as its registration says."""

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
    def base(self) -> str | None:
        """The method that is the judge as it is used now: the single call, else the first one."""
        return BASE if BASE in self.metrics.methods else next(iter(self.metrics.methods), None)

    @property
    def base_row(self) -> Row:
        """The row of `base`; an empty one if there is no method."""
        return self.metrics.methods[self.base] if self.base is not None else NO_ROW

    @property
    def plain(self) -> Row:
        """Single calls under the coupled protocol: what headlines speak about."""
        coupled = self.metrics.protocols.get("coupled", NO_ROW)
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
        return self.metrics.protocol.n_presentations if len(self.sizes) == 1 else 0

    def rates(self, protocol: str, what: str, n: int | None = None) -> Rates:
        """Shares by "position" or "label" under a protocol; empty where not measured."""
        row = self.plain if protocol == "coupled" else self.metrics.protocols.get(protocol, NO_ROW)
        wanted = self.n if n is None else n
        return row.positions(wanted) if what == "position" else row.labels(wanted)

    @property
    def has_gold(self) -> bool:
        """Whether any method has an accuracy."""
        return any(row.get(ACCURACY) for row in self.metrics.methods.values())

    @property
    def complete_items(self) -> int:
        """Items behind the headline: those with every presentation."""
        for row in (self.plain, self.base_row):
            consistency = row.get(CONSISTENCY)
            if consistency is not None and consistency.n:
                return consistency.n
        return self.metrics.data.n_items

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
