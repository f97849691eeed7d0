"""Two recommendations from one audit, the most accurate and the steadiest, or why there is none.

A method is named only if it is measurably better than a single call: the interval of its paired
difference, which holds for all methods compared at once, lies above 0. Among those it is the
cheapest that cannot be told from the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from unswayed.decisions import Estimate
from unswayed.methods import BASE
from unswayed.metrics.metric import Criterion
from unswayed.metrics.table import ranked_metrics

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
        criterion: Name of the `Criterion` by which methods were compared.
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

    @property
    def metric(self) -> str:
        """The criterion's key among a method's estimates."""
        named = (
            name
            for name, metric in ranked_metrics().items()
            if metric.criterion is not None and metric.criterion.name == self.criterion
        )
        return next(named, self.criterion)


def recommend(
    candidates: Mapping[str, Candidate],
    gain: Gain,
    *,
    criterion: Criterion,
    n_items: int,
    unparsed: float,
    missing: float,
) -> Recommendation:
    """The cheapest method that beats a single call and cannot be told from the best that do.

    Args:
        candidates: Methods with a defined score; must hold `BASE` to be told apart from it.
        gain: Paired difference of the criterion.
        criterion: What is compared.
        n_items: Items behind the comparison.
        unparsed: Share of unparsed answers.
        missing: Share of calls that failed or were not made.
    """
    reason = _too_little(n_items, unparsed, missing)
    if reason is None and BASE not in candidates:
        reason = f"no single call has a defined {criterion.name}"
    if reason is not None:
        return Recommendation(None, reason, criterion.name)
    pair = _cheapest_of_the_best(candidates, gain)
    if pair is None:
        highest = max(candidates.values(), key=lambda own: (own.score, -own.calls, own.name))
        reason = f"no method is measurably {criterion.more} than a single call"
        return Recommendation(BASE, reason, criterion.name, best=highest.name)
    method, best = pair
    if method is best:
        reason = f"the highest {criterion.name}, and no cheaper method comes close enough"
    else:
        reason = (
            f"the cheapest method whose {criterion.name} cannot be told from that of {best.name}"
        )
    below = {name: own for name, own in candidates.items() if own.calls < method.calls}
    cheaper = _better(below, gain)
    alternative = max(cheaper, key=lambda own: (own.score, own.name)).name if cheaper else None
    return Recommendation(method.name, reason, criterion.name, alternative, best.name)


def steadiest(
    recommendation: Recommendation,
    candidates: Mapping[str, Candidate],
    gain: Gain,
    harmless: Collection[str],
) -> Recommendation:
    """The recommendation with the method for those who want steady verdicts.

    Args:
        recommendation: By the criterion; where there is none nothing is added.
        candidates: Methods whose consistency is measured; one that holds by construction says
            nothing about the judge and is no candidate.
        gain: Paired difference of consistency.
        harmless: Methods whose criterion is not below that of a single call: a coin toss that is
            hidden behind a hash is steady too.
    """
    if recommendation.method is None or BASE not in candidates:
        return recommendation
    kept = {name: own for name, own in candidates.items() if name in harmless or name == BASE}
    pair = _cheapest_of_the_best(kept, gain)
    return recommendation if pair is None else replace(recommendation, steadiest=pair[0].name)


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
    """The cheapest method that beats a single call and cannot be told from the best that do, and
    that best one; None where none beats it.
    """
    better = _better(candidates, gain)
    if not better:
        return None
    best = max(better, key=lambda own: (own.score, -own.calls, own.name))
    by_price = sorted(better, key=lambda own: (own.calls, -own.score, own.name))
    return next(m for m in by_price if m is best or reaches_zero(gain(m.name, best.name))), best


def _better(candidates: Mapping[str, Candidate], gain: Gain) -> list[Candidate]:
    others = [own for name, own in candidates.items() if name != BASE]
    return [own for own in others if (gain(own.name, BASE).low or 0.0) > 0]


def reaches_zero(difference: Estimate) -> bool:
    """Whether the interval of a difference does not lie below 0."""
    return difference.high is not None and difference.high >= 0
