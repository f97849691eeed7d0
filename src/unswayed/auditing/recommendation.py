"""One recommendation in words, with its reason, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unswayed.decisions import Estimate

__all__ = ["Candidate", "Recommendation", "recommend"]

FEWEST_ITEMS = 20
MOST_UNPARSED = 0.2


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
    """

    method: str | None
    reason: str
    criterion: str
    alternative: str | None = None
    best: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """The record of `metrics.json`."""
        return {
            "method": self.method,
            "reason": self.reason,
            "criterion": self.criterion,
            "alternative": self.alternative,
            "best": self.best,
        }


def recommend(
    candidates: Mapping[str, Candidate],
    difference: Callable[[str, str], Estimate],
    *,
    criterion: str,
    n_items: int,
    unparsed: float,
    missing: float,
) -> Recommendation:
    """The cheapest method that cannot be told from the most accurate one.

    Args:
        candidates: Methods with a defined score; must hold "direct" to be told apart from it.
        difference: Paired difference of the criterion, first minus second, with its interval.
        criterion: Name of what is compared.
        n_items: Items behind the comparison.
        unparsed: Share of unparsed answers.
        missing: Share of calls that failed or were not made.
    """
    if n_items < FEWEST_ITEMS:
        return Recommendation(
            None, f"too few items: {n_items} of at least {FEWEST_ITEMS}", criterion
        )
    if unparsed > MOST_UNPARSED:
        return Recommendation(None, f"{unparsed:.0%} of the answers could not be read", criterion)
    if missing > MOST_UNPARSED:
        return Recommendation(None, f"{missing:.0%} of the calls are missing", criterion)
    if not candidates:
        return Recommendation(None, f"no method has a defined {criterion}", criterion)
    best = max(candidates.values(), key=lambda one: (one.score, -one.calls, one.name))
    # at the price of a single call nothing but a measured gain is a reason to change
    by_price = sorted(
        candidates.values(), key=lambda one: (one.calls, one.name != "direct", -one.score, one.name)
    )
    chosen = next(
        one for one in by_price if one is best or _not_below(difference(one.name, best.name))
    )
    if chosen.name == "direct":
        return Recommendation(
            "direct", "no method is measurably better than a single call", criterion, best=best.name
        )
    if chosen is best:
        reason = f"the highest {criterion}, and no cheaper method comes close enough"
    else:
        reason = f"the cheapest method whose {criterion} cannot be told from that of {best.name}"
    cheaper = [one for one in by_price if one.calls < chosen.calls and one.name != "direct"]
    beats = [
        one for one in cheaper if "direct" in candidates and _above(difference(one.name, "direct"))
    ]
    alternative = max(beats, key=lambda one: one.score).name if beats else None
    return Recommendation(chosen.name, reason, criterion, alternative, best.name)


def _not_below(gain: Estimate) -> bool:
    return gain.high is not None and gain.high >= 0


def _above(gain: Estimate) -> bool:
    return gain.low is not None and gain.low > 0
