"""Table of level choices by position: preferences of a judge of a scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray
from unswayed.model.decisions.levels import level_counts, level_ranks


def level_choices(
    outcomes: Outcomes, values: FloatArray
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count how often each level was chosen at each position, and how often it could have been, given the
    values of the levels by candidate, (I, n). Shapes (n, n): level, the lowest value first, and
    position.

    Parsed, untied choices of permutable items, as position and label shares pool them. Over a set
    of orders that shows every level equally often at every position, each row of the choices of an
    unswayed judge is even.
    """
    if values.shape != (len(outcomes), outcomes.n):
        raise ShapeError(f"values has shape {values.shape}, expected {(len(outcomes), outcomes.n)}")
    chosen, shown = level_counts(
        outcomes.choices, level_ranks(values), outcomes.positions_by_candidate, outcomes.pooled
    )
    return np.tensordot(outcomes.times, chosen, 1), np.tensordot(outcomes.times, shown, 1)
