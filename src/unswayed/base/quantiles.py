"""The quantiles of 95% intervals: the normal's, and how far out few items move them."""

from __future__ import annotations

import functools
from typing import Final

TAIL: Final = 0.025
"""Probability left out on each side of a 95% interval."""

NORMAL: Final = 1.959963984540054
"""The normal quantile of a 95% interval."""

NORMAL_ONE_SIDED: Final = 1.6448536269514722
"""The same of one that is open on one side."""


@functools.lru_cache(maxsize=4096)
def student(items: int, tail: float = TAIL) -> float:
    """Return the quantile of Student's t that leaves `tail` above it, for the mean of at least two items."""
    from scipy.special import stdtrit

    return -float(stdtrit(items - 1, tail))


@functools.lru_cache(maxsize=4096)
def expanded_tail(items: int) -> float:
    """Return the share of resamples of the items to leave out on each side.

    Resamples of n items vary by sqrt((n - 1) / n) less than samples do, and their spread is itself
    an estimate: the quantiles move out as Student's t would (from 2.5 to 2.0% at 40 items), which
    makes the expanded percentile interval. A single item moves nothing.

    Source: Hesterberg (2015), The American Statistician 69, 371.
    """
    if items < 2:
        return TAIL
    from scipy.special import ndtr

    return float(ndtr(-student(items) * (items / (items - 1)) ** 0.5))
