"""A number and how sure it is."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number with its 95% interval, or a reason why there is none.

    Attributes:
        value, low, high: The estimate and its interval, fractions in [0, 1] for rates.
        n: Items (or calls, for rates over calls) behind it.
        n_units: Distinct questions behind it, where they were counted.
        reason: Why `value` is None, or has no interval.
        by_construction: The value holds for any judge (a method that reads every order is always
            consistent) and is not evidence.
        joint: Of a difference between methods: the interval that holds with 95% for all methods
            compared at once.
        groups: Of an average over groups: in how many of them it is defined.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: Count = 0
    reason: str | None = None
    by_construction: bool = False
    joint: tuple[float, float] | None = None
    groups: Count | None = None
    n_units: Count | None = None

    @property
    def units(self) -> int:
        """Number of units behind the estimate; each question counts once."""
        return self.n if self.n_units is None else self.n_units

    def negated(self) -> Estimate:
        """Return the difference the other way round."""
        value, low, high = (
            None if end is None else 0.0 - end for end in (self.value, self.high, self.low)
        )
        joint = None if self.joint is None else (0.0 - self.joint[1], 0.0 - self.joint[0])
        return msgspec.structs.replace(self, value=value, low=low, high=high, joint=joint)
