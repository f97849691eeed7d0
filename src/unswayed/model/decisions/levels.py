"""Levels of a scale, counted by value and position: what was chosen, and what could have been."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.model.decisions.codes import BoolArray, FloatArray, IntArray


def level_ranks(values: FloatArray) -> NDArray[np.intp]:
    """Return the rank of each candidate's value among those of its item, the lowest 0; (I, n) -> (I, n)."""
    if np.isnan(values).any():
        raise ShapeError("levels without values cannot be ranked")
    return values.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")


def level_counts(
    choices: IntArray, levels: NDArray[np.intp], positions: NDArray[np.intp], cells: BoolArray
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Count how often each level was chosen, and shown, at each position.

    Counted are answers that name a level: unparsed ones, ties and missing calls are in no cell.
    `levels` are `level_ranks`, `positions[t, c]` is the position of candidate c in column t, and
    `cells` are the calls that count, shape (I, T). Both results have shape (I, n, n): level, position.
    """
    n = levels.shape[1]
    chosen, shown = np.zeros((2, len(choices), n, n), dtype=np.int32)
    rows, columns = np.nonzero(cells & (choices >= 0))
    named = choices[rows, columns]
    np.add.at(chosen, (rows, levels[rows, named], positions[columns, named]), 1)
    for candidate in range(n):
        np.add.at(shown, (rows, levels[rows, candidate], positions[columns, candidate]), 1)
    return chosen, shown
