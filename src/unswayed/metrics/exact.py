"""Exact tests and bounds, in closed form.

`majority_error_bound` is illustrative: it assumes independent answers, and the presentations of one
item are not. The exact value under the same assumption stands beside it.
"""

from __future__ import annotations

import math

from unswayed.base.errors import UsageError


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


def majority_error_bound(votes: int, accuracy: float) -> float:
    """Hoeffding's bound on the error of a majority of K (odd) independent votes, each right with
    chance q > 1/2: exp(-2 K (q - 1/2)^2). Source: PCFJudge, Proposition 1.
    """
    _check_votes(votes, accuracy)
    return math.exp(-2.0 * votes * (accuracy - 0.5) ** 2)


def majority_error(votes: int, accuracy: float) -> float:
    """Return the exact error of the same majority: P(Bin(K, q) <= (K - 1) / 2).

    >>> round(majority_error(3, 0.8), 6)
    0.104
    """
    _check_votes(votes, accuracy)
    from scipy.stats import binom

    return float(binom.cdf((votes - 1) // 2, votes, accuracy))


def _check_votes(votes: int, accuracy: float) -> None:
    if votes < 1 or votes % 2 == 0:
        raise UsageError(f"a majority needs an odd number of votes, got {votes}")
    if not 0.5 < accuracy <= 1.0:
        raise UsageError(f"the bound holds for an accuracy above 0.5, got {accuracy}")
