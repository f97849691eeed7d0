"""Levels of a scale, counted by value and position: what was chosen, and what could have been."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions.codes import BoolArray, FloatArray, IntArray
from unswayed.errors import ShapeError

__all__ = ["chosen_by_level", "level_ranks", "shown_by_level"]


def level_ranks(values: FloatArray) -> NDArray[np.intp]:
    """The level that each candidate is, the lowest value first.

    Args:
        values: By candidate, shape (I, n).

    Returns:
        `[i, c]` = rank of candidate c's value among those of item i, shape (I, n).

    Raises:
        ShapeError: If a value is unknown.
    """
    if np.isnan(values).any():
        raise ShapeError("levels without values cannot be ranked")
    ranks: NDArray[np.intp] = values.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return ranks


def chosen_by_level(
    choices: IntArray, levels: NDArray[np.intp], positions: NDArray[np.intp], cells: BoolArray
) -> NDArray[np.int32]:
    """How often each level was chosen at each position, shape (I, n, n): level, position.

    Unparsed answers, ties and missing calls are in no cell.

    Args:
        choices: Candidate or a code, shape (I, T).
        levels: `level_ranks`, shape (I, n).
        positions: `[t, c]` = position of candidate c in column t, shape (T, n).
        cells: Calls counted, shape (I, T).
    """
    counts = np.zeros((len(choices), levels.shape[1], levels.shape[1]), dtype=np.int32)
    rows, columns = np.nonzero(cells & (choices >= 0))
    chosen = choices[rows, columns]
    np.add.at(counts, (rows, levels[rows, chosen], positions[columns, chosen]), 1)
    return counts


def shown_by_level(
    choices: IntArray, levels: NDArray[np.intp], positions: NDArray[np.intp], cells: BoolArray
) -> NDArray[np.int32]:
    """How often each level stood at each position in an answer that names one, shape (I, n, n).

    Arguments as of `chosen_by_level`, whose counts over these are rates.
    """
    n = levels.shape[1]
    counts = np.zeros((len(choices), n, n), dtype=np.int32)
    rows, columns = np.nonzero(cells & (choices >= 0))
    for candidate in range(n):
        np.add.at(counts, (rows, levels[rows, candidate], positions[columns, candidate]), 1)
    return counts
