"""Shares of choices by position and by label, whatever the content, and of answers that name nothing.

Shares among parsed, untied choices of permutable items. Over a set of orders that shows every
candidate equally often at every position, an unswayed judge has 1/n everywhere; an item that lacks
an order counts for what its candidates are worth, so only complete items count where there are any.
`level_choices` counts the choices of a scale by level and position.

Shares of unparsed answers and declared ties, and the probability on the labels, are of the calls that
were answered, of all items; a failed call is not an answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ShapeError
from unswayed.metrics.metric import Ends, Metric, Need, correlation, fraction, item_means, ratio
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rare import of_differences, of_shares
from unswayed.model.decisions import TIE, UNPARSED, FloatArray
from unswayed.model.decisions.levels import level_counts, level_ranks


def _with_total(outcomes: Outcomes, map_of_candidate: NDArray[np.intp]) -> FloatArray:
    """Choices, and choices at each position or of each label; shape (I, 1 + n)."""
    counts, complete = outcomes.counts_by(map_of_candidate), outcomes.complete
    if complete.any():
        counts[~complete] = 0.0
    return np.column_stack([counts.sum(axis=1), counts])


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


def excess_of_first(sums: FloatArray) -> FloatArray:
    """Share of the first position less 1/n, (B,); negative where the last ones are preferred."""
    excess: FloatArray = (shares := ratio(sums))[:, 0] - 1.0 / shares.shape[1]
    return excess


def _excess_ends(statistics: FloatArray, counts: NDArray[np.int64]) -> list[Ends]:
    even = 1.0 / (statistics.shape[1] - 1)
    low, high = of_shares(statistics, counts)[0]
    return [(low - even, high - even)]


def _effect(outcomes: Outcomes) -> FloatArray:
    """1 and what the answer shown first wins less what the other does, shape (I, 2)."""
    read = outcomes.pooled & (outcomes.choices != UNPARSED)
    sides = [read[:, place].sum(axis=1) for place in outcomes.positions_by_candidate.T == 0]
    wins = outcomes.counts_by(outcomes.positions_by_candidate)
    even = (sides[0] == sides[1]) & (sides[0] > 0)  # one order alone says which answer is better
    return item_means((wins[:, 0] - wins[:, 1]) / np.maximum(2 * sides[0], 1), even)


def _answers(outcomes: Outcomes, *, code: int) -> FloatArray:
    """Count calls, and calls with this answer; shape (I, 2)."""
    alike = (outcomes.choices == code).sum(axis=1)
    return np.column_stack([outcomes.answered.sum(axis=1), alike]).astype(float)


def _masses(outcomes: Outcomes) -> FloatArray:
    """Return calls with a known mass, and their mass; shape (I, 2)."""
    if outcomes.label_mass is None:
        return np.zeros((len(outcomes), 2))
    recorded = outcomes.answered & ~np.isnan(outcomes.label_mass)
    mass = np.where(recorded, outcomes.label_mass, 0.0).sum(axis=1)
    return np.column_stack([recorded.sum(axis=1), mass])


POSITION_RATE = Metric(
    title="Positions",
    meaning="share of parsed choices on each position, the first one first, over complete items if "
    "there are any; 1/n each without bias",
    statistics=lambda own: _with_total(own, own.positions_by_candidate),
    undefined="no verdict names a candidate",
    needs=(Need.PERMUTABLE, Need.PARSED),
    percent=True,
    constructed="evenly",
    limits=fraction,
    interval=of_shares,
)

LABEL_RATE = replace(
    POSITION_RATE,
    title="Labels",
    meaning="share of parsed choices on each label, in the order of the label set, over complete "
    "items if there are any; 1/n each without bias",
    statistics=lambda own: _with_total(own, own.labels_by_candidate),
)

PRIMACY = replace(
    POSITION_RATE,
    title="Primacy",
    meaning="share of choices on the first position minus 1/n, the share without bias",
    values=excess_of_first,
    limits=lambda n: (-1.0 / n, 1.0 - 1.0 / n),
    interval=_excess_ends,
)

POSITION_EFFECT = Metric(
    title="Position effect",
    meaning="share of comparisons that an answer wins when shown first minus its share when shown last, "
    "with a tie as half; mean over items with equally many readable answers in both orders; 0 without bias (two candidates)",
    statistics=_effect,
    undefined="no item was read equally often with each answer first",
    needs=(Need.PERMUTABLE,),
    percent=True,
    constructed="evenly",
    limits=correlation,
    interval=of_differences,
    most=2,
)

UNPARSED_RATE = Metric(
    title="Unparsed",
    meaning="share of answers that could not be read",
    statistics=partial(_answers, code=UNPARSED),
    undefined="no call was answered",
    better=-1,
    percent=True,
    limits=fraction,
    across=True,
)

TIE_RATE = replace(
    UNPARSED_RATE,
    title="Ties",
    meaning="share of verdicts that are ties",
    statistics=partial(_answers, code=TIE),
)

LABEL_MASS = Metric(
    title="Label mass",
    meaning="probability on the labels before it is normalised",
    statistics=_masses,
    undefined="no label mass was recorded",
    needs=(Need.LABEL_MASS,),
    percent=True,
    limits=fraction,
    across=True,
    optional=True,
)
