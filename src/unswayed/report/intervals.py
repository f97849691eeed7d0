"""Read an interval: above, below, apart, alone or jointly with others that are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import msgspec

from unswayed.model.decisions import Estimate


@dataclass(frozen=True, slots=True)
class SlotFinding:
    """A position or a label, and its share of the choices."""

    kind: Literal["position", "label"]
    index: int
    rate: Estimate

    @property
    def width(self) -> float:
        """Half its interval; 0 where it has none."""
        return half_width(self.rate) or 0.0


def half_width(estimate: Estimate) -> float | None:
    """Half the interval, as a fraction."""
    if estimate.low is None or estimate.high is None:
        return None
    return (estimate.high - estimate.low) / 2


def above(estimate: Estimate, expected: float) -> bool:
    """Return True if the whole interval lies above the expected value."""
    return estimate.low is not None and estimate.low > expected


def below(estimate: Estimate, expected: float) -> bool:
    """Return True if the whole interval lies below the expected value."""
    return estimate.high is not None and estimate.high < expected


def disjoint(a: Estimate, b: Estimate) -> bool:
    """Return True if two intervals have no point in common."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def _wider(looks: float) -> float:
    """Return the factor by which a 95% interval widens when it holds for so many looks (Bonferroni)."""
    return NormalDist().inv_cdf(1 - 0.025 / looks) / NormalDist().inv_cdf(0.975)


def apart(a: Estimate, b: Estimate, n: int) -> bool:
    """Return True if the extremes of n independent estimates differ, for all pairs together.

    Of ten groups that are alike, the intervals of the two extremes are disjoint in every sixth run.
    """
    if not disjoint(a, b):
        return False
    lower, upper = sorted((a, b), key=lambda estimate: estimate.value or 0.0)
    # the sides that face each other: an interval near 0 or 1 is lopsided
    reach = (lower.high or 0.0) - (lower.value or 0.0), (upper.value or 0.0) - (upper.low or 0.0)
    return (upper.value or 0.0) - (lower.value or 0.0) > _wider(n * (n - 1) / 2) * math.hypot(
        *reach
    )


def jointly(estimate: Estimate, looks: int) -> Estimate:
    """Return the share with an interval that holds for all shares looked at together.

    Of twelve shares without any bias one lies outside its own 95% interval in every third run.
    """
    wide = widened(estimate, looks)
    if wide.low is None or wide.high is None:
        return wide
    return msgspec.structs.replace(wide, low=max(wide.low, 0.0), high=min(wide.high, 1.0))


def widened(estimate: Estimate, looks: int, span: float = math.inf) -> Estimate:
    """Return an estimate of any unit, at most `span` from 0, with an interval that holds for all that are looked at."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    low = estimate.value - _wider(looks) * (estimate.value - estimate.low)
    high = estimate.value + _wider(looks) * (estimate.high - estimate.value)
    return msgspec.structs.replace(estimate, low=max(low, -span), high=min(high, span))


def favoured_of(rates: Sequence[Estimate], looks: int) -> int | None:
    """Return the index with the largest share among those whose joint interval lies above 1/n."""
    over = [i for i, rate in enumerate(rates) if above(jointly(rate, looks), 1 / len(rates))]
    return max(over, key=lambda i: rates[i].value or 0.0, default=None)
