"""Choices as the codes of a column, and the one place that renumbers them."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.model.permutations import Order, invert

Choice = int | Literal["tie"] | None
"""A candidate, a declared tie, or None (unparsed)."""

UNPARSED: Final = -1
"""Column code of a choice that could not be read."""
TIE: Final = -2
"""Column code of a declared tie."""
MISSING: Final = -3
"""Column code of a call that was not made or failed: never a decision."""
ABSTAINED: Final = -4
"""Column code of a verdict that a method withholds: neither right nor wrong, and no tie."""

REASKED: Final = 1
DISAGREES: Final = 2
"""Bits of a column of marks, for `Decision.reasked` and `Decision.disagrees`."""

IntArray = NDArray[np.int16]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def code_of(choice: Choice) -> int:
    """Return the column code of a choice.

    >>> code_of("tie"), code_of(None), code_of(1)
    (-2, -1, 1)
    """
    if choice is None:
        return UNPARSED
    return TIE if choice == "tie" else int(choice)


def choice_of(code: int) -> Choice:
    """Return the choice of a column code (MISSING reads None)."""
    if code >= 0:
        return int(code)
    return "tie" if code == TIE else None


def renumbered(choices: IntArray, order: Order) -> IntArray:
    """Codes after the candidates were renumbered: new candidate j is old candidate `order[j]`.

    Values by candidate follow as `values[..., list(order)]`; the way back is `invert(order)`.

    >>> renumbered(np.array([0, 2, TIE], dtype=np.int16), (2, 0, 1)).tolist()
    [1, 0, -2]
    """
    new = np.array(invert(order), dtype=np.int16)
    return np.where(choices >= 0, new[np.maximum(choices, 0)], choices)


def value_of_choices(
    choices: IntArray, values: FloatArray, tied: BoolArray | None = None
) -> FloatArray:
    """Return the values (I, n) of chosen levels, NaN where none was; (I, T) -> (I, T).

    Of tied levels, marked in shape (I, T, n), their mean.

    >>> levels = np.array([[1.0, 2.0, 3.0]])
    >>> value_of_choices(np.array([[2, TIE, 0]], dtype=np.int16), levels).tolist()
    [[3.0, nan, 1.0]]
    """
    chosen = np.take_along_axis(values, np.maximum(choices, 0).astype(np.intp), axis=1)
    scores: FloatArray = np.where(choices >= 0, chosen, np.nan)
    if tied is not None:
        rows, columns = np.nonzero((choices == TIE) & tied.any(axis=2))
        among = tied[rows, columns]
        scores[rows, columns] = (values[rows] * among).sum(axis=1) / among.sum(axis=1)
    return scores


def sd_of_rows(scores: FloatArray) -> FloatArray:
    """Return standard deviation (ddof 1) of the known scores of each row, (I, T) -> (I,).

    NaN for fewer than two.
    """
    stated = ~np.isnan(scores)
    count = stated.sum(axis=1)
    mean = np.where(stated, scores, 0.0).sum(axis=1) / np.maximum(count, 1)
    squares = np.where(stated, (scores - mean[:, None]) ** 2, 0.0).sum(axis=1)
    return np.where(count < 2, np.nan, np.sqrt(squares / np.maximum(count - 1, 1)))
