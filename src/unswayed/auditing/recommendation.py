"""Two recommendations from one audit, the most accurate and the steadiest, or why there is none.

A method is named only if it is measurably better than a single call: the interval of its paired
difference, which holds for all methods compared at once, lies above 0. Among those it is the
cheapest that cannot be told from the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from unswayed.decisions import Estimate

__all__ = [
    "AGREEMENT",
    "Candidate",
    "Gain",
    "Recommendation",
    "reaches_zero",
    "recommend",
    "steadiest",
]

AGREEMENT = "agreement with the average over the full pool"

FEWEST_ITEMS = 20
MOST_UNPARSED = 0.2

Gain = Callable[[str, str], Estimate]
"""Paired difference, first minus second; its interval holds for all methods compared at once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method that may be recommended.

    Attributes:
        calls: Calls per item, estimation calls spread over the items.
        score: The criterion's value: accuracy, or agreement with the full-pool average.
    """

    name: str
    calls: float
    score: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use and why.

    Attributes:
        method: None where nothing can be recommended; `reason` says why.
        criterion: "accuracy", or "agreement with the average over the full pool".
        alternative: The best method below that price, if it beats a single call.
        best: The best of the methods that beat a single call; where none does, the highest one.
        steadiest: The method for those who want steady verdicts; None where none is measured to
            be steadier than a single call.
    """

    method: str | None
    reason: str
    criterion: str
    alternative: str | None = None
    best: str | None = None
    steadiest: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """The record of `metrics.json`."""
        return {
            "method": self.method,
            "reason": self.reason,
            "criterion": self.criterion,
            "alternative": self.alternative,
            "best": self.best,
            "steadiest": self.steadiest,
        }


def recommend(
    candidates: Mapping[str, Candidate],
    gain: Gain,
    *,
    criterion: str,
    n_items: int,
    unparsed: float,
    missing: float,
) -> Recommendation:
    """The cheapest method that beats a single call and cannot be told from the best that do.

    Args:
        candidates: Methods with a defined score; must hold "direct" to be told apart from it.
        gain: Paired difference of the criterion.
        criterion: Name of what is compared.
        n_items: Items behind the comparison.
        unparsed: Share of unparsed answers.
        missing: Share of calls that failed or were not made.
    """
    reason = _too_little(n_items, unparsed, missing)
    if reason is None and "direct" not in candidates:
        reason = f"no single call has a defined {criterion}"
    if reason is not None:
        return Recommendation(None, reason, criterion)
    chosen = _cheapest_of_the_best(candidates, gain)
    if chosen is None:
        highest = max(candidates.values(), key=lambda one: (one.score, -one.calls, one.name))
        more = "more accurate" if criterion == "accuracy" else "closer to the yardstick"
        reason = f"no method is measurably {more} than a single call"
        return Recommendation("direct", reason, criterion, best=highest.name)
    method, best = chosen
    if method is best:
        reason = f"the highest {criterion}, and no cheaper method comes close enough"
    else:
        reason = f"the cheapest method whose {criterion} cannot be told from that of {best.name}"
    below = {name: one for name, one in candidates.items() if one.calls < method.calls}
    cheaper = _better(below, gain)
    alternative = max(cheaper, key=lambda one: (one.score, one.name)).name if cheaper else None
    return Recommendation(method.name, reason, criterion, alternative, best.name)


def steadiest(
    found: Recommendation,
    candidates: Mapping[str, Candidate],
    gain: Gain,
    harmless: Collection[str],
) -> Recommendation:
    """The recommendation with the method for those who want steady verdicts.

    Args:
        found: The recommendation by the criterion; where there is none nothing is added.
        candidates: Methods whose consistency is measured; one that holds by construction says
            nothing about the judge and is no candidate.
        gain: Paired difference of consistency.
        harmless: Methods whose criterion is not below that of a single call: a coin toss that is
            hidden behind a hash is steady too.
    """
    if found.method is None or "direct" not in candidates:
        return found
    kept = {name: one for name, one in candidates.items() if name in harmless or name == "direct"}
    chosen = _cheapest_of_the_best(kept, gain)
    return found if chosen is None else replace(found, steadiest=chosen[0].name)


def _too_little(n_items: int, unparsed: float, missing: float) -> str | None:
    """Why the data carry no recommendation."""
    if n_items < FEWEST_ITEMS:
        return f"too few items: {n_items} of at least {FEWEST_ITEMS}"
    if unparsed > MOST_UNPARSED:
        return f"{unparsed:.0%} of the answers could not be read"
    if missing > MOST_UNPARSED:
        return f"{missing:.0%} of the calls are missing"
    return None


def _cheapest_of_the_best(
    candidates: Mapping[str, Candidate], gain: Gain
) -> tuple[Candidate, Candidate] | None:
    """The cheapest method that beats "direct" and cannot be told from the best that do, and that
    best one; None where none beats it.
    """
    better = _better(candidates, gain)
    if not better:
        return None
    best = max(better, key=lambda one: (one.score, -one.calls, one.name))
    by_price = sorted(better, key=lambda one: (one.calls, -one.score, one.name))
    return next(m for m in by_price if m is best or reaches_zero(gain(m.name, best.name))), best


def _better(candidates: Mapping[str, Candidate], gain: Gain) -> list[Candidate]:
    others = [one for name, one in candidates.items() if name != "direct"]
    return [one for one in others if (gain(one.name, "direct").low or 0.0) > 0]


def reaches_zero(difference: Estimate) -> bool:
    """Whether the interval of a difference does not lie below 0."""
    return difference.high is not None and difference.high >= 0
