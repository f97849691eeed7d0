"""Items that one method gets right and another wrong, and the reverse, with their exact sign test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unswayed.base.errors import UsageError
from unswayed.metrics.accuracy import credit
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.pairing import paired_by_item
from unswayed.model.decisions import MISSING


@dataclass(frozen=True, slots=True)
class Improvements:
    """Items that changed between right and wrong, each in its own order of candidates."""

    n: int  # items with gold that both methods answered
    improved: int  # right where the other is wrong; a tie is wrong
    regressed: int  # wrong where the other is right
    p: float  # two-sided exact sign test of the two
    # credit gained where a tie between k candidates, one of them right, is 1/k right; the sum over
    # the items that gained
    improved_shared: float
    regressed_shared: float  # credit lost


def sign_test(first: int, second: int) -> float:
    """Two-sided exact sign test: p of a split as uneven as `first` to `second` under a fair coin.

    >>> sign_test(9, 1)
    0.021484375
    """
    if first < 0 or second < 0:
        raise UsageError(f"the sign test needs counts, got {first} and {second}")
    if first + second == 0:
        return 1.0
    from scipy.stats import binom

    return min(1.0, 2.0 * float(binom.sf(max(first, second) - 1, first + second, 0.5)))


def improved_regressed(first: Sequence[Outcomes], other: Sequence[Outcomes]) -> Improvements:
    """Count items that only `first` gets right, and items that only `other` gets right.

    Items are matched by id and judged once: in their own order (the first presentation). An answer
    that could not be read is wrong; an item that either side failed to answer is left out.
    """
    gains: list[float] = []
    strict: list[float] = []
    for left, right in paired_by_item(first, other):
        answered = (left.choices[:, 0] != MISSING) & (right.choices[:, 0] != MISSING)
        kept = np.flatnonzero(answered & left.decided & right.decided)
        if left.weights is not None:
            kept = np.repeat(kept, left.weights[kept])
        strict += (left.right[kept, 0].astype(float) - right.right[kept, 0]).tolist()
        gains += (credit(left)[kept, 0] - credit(right)[kept, 0]).tolist()
    changed, shared = np.array(strict), np.array(gains)
    improved, regressed = int((changed > 0).sum()), int((changed < 0).sum())
    return Improvements(
        n=len(strict),
        improved=improved,
        regressed=regressed,
        p=sign_test(improved, regressed),
        improved_shared=float(shared[shared > 0].sum()),
        regressed_shared=float(-shared[shared < 0].sum()),
    )
