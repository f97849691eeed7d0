"""Coverage of a method that abstains, and its errors if it decided more or fewer.

Every other metric is about the verdicts that are given. Answers are ranked by
the gap of log p between the likeliest candidate and the next, withheld ones included. The curve
gives the share of errors among the surest of them; AURC is the mean of this share over all numbers
of answers (Geifman et al. 2019, arXiv 1805.08206).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from unswayed.metrics.metric import Metric, Need, OfWeights, fraction
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import ABSTAINED, UNPARSED, BoolArray, FloatArray

SHARES: Final = tuple(step / 10 for step in range(1, 11))
"""Coverages of the points of the curve."""


class RiskPoint(Struct, frozen=True, kw_only=True):
    """A point of the curve."""

    coverage: float  # share of answers decided, the surest first
    error: float  # share of errors among them


def _ranked(outcomes: Outcomes) -> tuple[FloatArray, BoolArray, NDArray[np.intp]]:
    """Gaps, largest first, whether the likeliest candidate is wrong, and the item of each answer; (C,)."""
    assert outcomes.probs is not None  # a need of what calls this
    counted = ~np.isnan(outcomes.probs).any(axis=2) & outcomes.decided[:, None]
    item, view = np.nonzero(counted)
    probs = outcomes.probs[item, view]
    with np.errstate(divide="ignore"):
        first, second = np.log(np.sort(probs, axis=1)[:, :-3:-1]).T
    gaps = first - second
    order = np.argsort(-gaps, kind="stable")
    wrong: BoolArray = ~outcomes.gold[item, probs.argmax(axis=1)]
    return gaps[order], wrong[order], item[order]


def _counted(outcomes: Outcomes) -> FloatArray:
    """1 for an item that has a place in the curve, shape (I, 1)."""
    counted = np.zeros((len(outcomes), 1))
    if outcomes.probs is None:
        return counted
    _, _, item = _ranked(outcomes)
    counted[item] = 1.0
    return counted


def _area(outcomes: Outcomes) -> OfWeights:
    _, wrong, item = _ranked(outcomes)

    def value(weights: FloatArray) -> FloatArray:
        own = weights[:, item]
        reached, errors = own.cumsum(axis=1), (own * wrong).cumsum(axis=1)
        shares = errors / np.maximum(reached, 1e-12)
        total = own.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            area: FloatArray = (own * shares).sum(axis=1) / total
        return area

    return value


def risk_curve(strata: Sequence[Outcomes]) -> tuple[RiskPoint, ...]:
    """Return the curve over items of all numbers of candidates; empty without probabilities or gold."""
    ranked = [_ranked(part) for part in strata if part.probs is not None]
    gaps = np.concatenate([own[0] for own in ranked]) if ranked else np.zeros(0)
    if not len(gaps):
        return ()
    wrong = np.concatenate([own[1] for own in ranked])[np.argsort(-gaps, kind="stable")]
    counts = [max(1, round(share * len(gaps))) for share in SHARES]
    return tuple(
        RiskPoint(coverage=count / len(gaps), error=float(wrong[:count].mean())) for count in counts
    )


COVERAGE = Metric(
    title="Coverage",
    meaning="share of verdicts that are given: neither withheld nor unparsed",
    statistics=lambda own: np.column_stack(
        [
            ((own.choices == ABSTAINED) | own.answered).sum(axis=1),
            (own.answered & (own.choices != UNPARSED)).sum(axis=1),
        ]
    ).astype(float),
    undefined="no call was answered",
    needs=(Need.ABSTAINS,),
    better=1,
    percent=True,
    limits=fraction,
    across=True,
    optional=True,
)

AURC = Metric(
    title="AURC",
    meaning="share of errors among the k surest answers, mean over all k, withheld answers "
    "included",
    statistics=_counted,
    undefined="no answer has probabilities",
    needs=(Need.ABSTAINS, Need.PROBS, Need.GOLD),
    better=-1,
    percent=True,
    limits=fraction,
    optional=True,
    weighted=_area,
)
