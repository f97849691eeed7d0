"""Bounds on the share of questions with an event, from a count on questions like them.

`high` is the Clopper-Pearson upper end at confidence 1 - risk; `mean` is (events + 1)/(questions + 1), which bounds the
mean over estimation sets if less sure questions have more events (arXiv 2208.02814; SCOPE, arXiv 2602.13110).
"""

from __future__ import annotations

import math
from typing import Final, Literal

from unswayed.base.errors import UsageError
from unswayed.methods.checks import ROUNDING, UnsoundError
from unswayed.methods.tables import TOLERANCE

Guarantee = Literal["high", "mean"]
"""Whether a share is bounded with a confidence, or in the mean over estimation sets."""
LEAST_SHARE: Final = 1e-9
"""Smallest share that a number of questions can bound in practice."""


def upper_end(guarantee: Guarantee, events: int, count: int, risk: float) -> float:
    """Return the bound on a share, in [0, 1], after `events` among `count` questions.

    >>> round(upper_end("high", 0, 45, 0.1), 3), upper_end("mean", 1, 19, 0.1)
    (0.05, 0.1)
    """
    from scipy.special import betaincinv

    if guarantee == "mean":
        return (events + 1) / (count + 1)
    return 1.0 if events >= count else float(betaincinv(events + 1, count - events, 1 - risk))


def check_settings(name: str, gap: float | None, **shares: float) -> None:
    """Check the settings of a method with a bound: shares below 1, a gap of at least 0."""
    for part, value in shares.items():
        if not LEAST_SHARE <= value < 1:
            raise UsageError(
                f"{name}: {part} must be at least {LEAST_SHARE:g} and less than 1, got {value}."
            )
    if gap is not None and not gap >= 0:
        raise UsageError(f"{name}: gap must be at least 0, got {gap}.")


def check_bound(
    guarantee: Guarantee, events: int, count: int, *, risk: float, share: float
) -> None:
    """Check that a learned count proves the bound that a method states."""
    if upper_end(guarantee, events, count, risk) > share + ROUNDING:
        raise UnsoundError(f"{events} events among {count} do not prove a share of {share:g}")


def fewest(guarantee: Guarantee, share: float, risk: float) -> int:
    """Return the number of questions from which no event at all bounds the share."""
    if guarantee == "mean":
        return math.ceil(1 / share - 1 - TOLERANCE)
    return math.ceil(math.log(risk) / math.log1p(-share))
