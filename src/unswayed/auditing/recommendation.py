"""Recommend a method in place of a single call: the ladder, from paired differences on common items.

The first question is whether reading every order is better than one call, a planned comparison that
needs no correction; the second whether something cheaper is as good within a margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import msgspec

from unswayed.base.quantiles import NORMAL
from unswayed.methods import ALL_ORDERS, BASE
from unswayed.metrics.simultaneous import Contrasts
from unswayed.model.decisions.estimate import Count, Estimate

FEWEST_UNITS: Final = 20
MOST_UNREAD: Final = 0.2
MOST_TIED: Final = 0.9
"""Limits beyond which nothing is recommended, and the report describes what is left."""

_POWER: Final = 0.84
"""Normal quantile of 80%, the power of `needed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended method with its reason."""

    # a method is "better" than a single call; that is "enough"; reading every order is "worse";
    # both are the "same" sum; the question is "open"; nothing may be said ("none")
    state: Literal["better", "enough", "worse", "same", "open", "none"] = "none"
    method: str | None = None  # what to use; None: keep what you have
    # in the open state and near chance a single call; where a method is better, the highest
    # measured of those below its price, none shown to be within the margin
    cheapest: str | None = None
    # what is measured to be most accurate: all orders, or what is shown above it; where no method
    # is named, a single call if all orders are more than the margin below it
    most_accurate: str | None = None
    # all orders, or what is shown above them: what decides whether a single call will do
    top: str | None = None
    # Over a single call: of `method` where it is better, else of `top`. In the state "enough" its
    # high end is one-sided.
    gain: Estimate | None = None
    # the smallest difference that matters, a fraction
    margin: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.01
    # items, units: compared, with every answer that every compared method reads
    items: Count = 0
    units: Count = 0
    needed: Count | None = None  # more items that would decide an open question, about
    criterion: str = ""  # key of the metric by which methods were compared
    reason: str = ""  # part of a sentence, where there is more to say

    def __post_init__(self) -> None:
        if self.state == "none" and self.method is not None:  # a file from before the ladder
            object.__setattr__(self, "method", None)
            object.__setattr__(self, "reason", "the audit used an earlier rule; run it again")
        told = (self.gain and self.gain.value, self.most_accurate)
        used = self.cheapest if self.state == "open" else self.method
        if self.state not in ("none", "same") and None in (*told, used):
            raise ValueError(f"the state {self.state} goes with a gain and methods")


def recommend(
    compared: Contrasts,
    calls: Mapping[str, float],
    given: Recommendation,
    *,
    chance: float | None = None,
    agreed: tuple[float, float] | None = None,
    unread: float = 0.0,
    missing: float = 0.0,
    tied: float = 0.0,
) -> Recommendation:
    """Climb the ladder, from the criterion of the methods that may be named and the calls of each per
    item, estimation calls spread over the items.

    `chance` is what guessing is worth, None where nothing is guessed. `agreed` are the share of items
    on which the two orders of two candidates agree, and of these the share that is right: without ties
    a vote over them is the same sum as single calls, apart from unread answers; None of other designs,
    and where a tie may be right. Shares of the answers are `unread`, of the calls `missing` (failed or not
    made), and of the answers read `tied`.
    """
    given = replace(given, items=compared.items, units=compared.units)
    if reason := _too_little(compared, unread, missing, tied):
        return replace(given, reason=reason)
    plain = {name: name.partition(":")[0] for name in compared.names if name != BASE}
    # all orders, or without a method that reads them what asks most
    places = {own: (*ALL_ORDERS, plain[own]).index(plain[own]) for own in plain}
    whole = min(plain, key=lambda own: (places[own], ":" in own, -calls[own], own))
    over = compared.against(whole)
    above = [name for name, gap in over.items() if name != BASE and _low(gap) > 0]
    top = min(
        above, key=lambda name: (-(over[name].value or 0.0), calls[name], name), default=whole
    )
    vote = agreed if plain[whole] == ALL_ORDERS[1] else None
    critical = NORMAL if top == whole else compared.critical(BASE)
    gain = compared.difference(top, BASE, critical)
    is_unread = unread > 0.0 and not tied and _low(gain) <= 0.0  # the only cause of a difference
    if vote and top == whole and (is_unread or not compared.apart(whole, BASE).any()):
        reason = "both orders agree on {:.0%} of the compared items; those verdicts are right {:.0%} of the time"
        none = "both orders agree on no compared item"
        return replace(given, state="same", reason=reason.format(*vote) if vote[0] else none)
    measured = gain.value or 0.0
    leads = top if measured >= -given.margin else BASE
    given = replace(given, top=top, most_accurate=top, gain=gain)
    if chance is not None:
        level = compared.above(top, chance)
        if max(_low(level), _low(compared.above(BASE, chance))) <= 0:
            ends = (level.value, level.low, level.high)
            value, low, high = (100 * min(max(chance + (end or 0.0), 0.0), 1.0) for end in ends)
            reason = (
                "on these items, no method is shown to be better than guessing "
                f"({top}: {value:.0f}%, {low:.0f} to {high:.0f}; guessing: {chance:.0%})"
            )
            return replace(given, cheapest=BASE, most_accurate=leads, reason=reason)
    if (gain.high or 0.0) < 0:
        return replace(given, state="worse", method=BASE)
    short = compared.against(top, one_sided=True)
    near = [top, *(name for name, gap in short.items() if _low(gap) >= -given.margin)]
    if BASE in near:
        return replace(given, state="enough", method=BASE, gain=short[BASE].negated())
    if _low(gain) > 0:
        gains = {**compared.against(BASE), top: gain}
        shown = [name for name in near if _low(gains[name]) > 0]
        method = min(shown, key=lambda own: (calls[own], -(gains[own].value or 0.0), own))
        below = [name for name in gains if name not in near and calls[name] < calls[method]]
        second = "the gain comes from second answers where the first is unparsed"
        highest = max(
            below, key=lambda name: (gains[name].value or 0.0, -calls[name], name), default=None
        )
        given = replace(given, reason=second if vote and unread and not tied else "")
        return replace(given, state="better", method=method, cheapest=highest, gain=gains[method])
    reach = max(measured, given.margin - measured)
    need = ((critical + _POWER) * compared.spread(top, BASE) / reach) ** 2
    needed = max(math.ceil(need - compared.units), 0) or None
    return replace(given, state="open", cheapest=BASE, most_accurate=leads, needed=needed)


def _low(gap: Estimate) -> float:
    return -math.inf if gap.low is None else gap.low


def _too_little(compared: Contrasts, unread: float, missing: float, tied: float) -> str | None:
    """Why the data carry no recommendation."""
    if unread > MOST_UNREAD:
        return f"{unread:.0%} of the answers could not be read"
    if missing > MOST_UNREAD:
        return f"{missing:.0%} of the calls are missing"
    if tied >= MOST_TIED:
        rest = "its other preferences cannot be measured"
        return f"this judge calls a tie in {tied:.0%} of its answers; {rest}"
    if BASE not in compared.names or len(compared.names) < 2:
        return "no method was compared with a single call"
    if compared.units < FEWEST_UNITS:
        return f"too few distinct questions to compare methods on ({compared.units})"
    return None
