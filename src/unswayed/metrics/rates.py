"""How often each position and each label is chosen, whatever the content.

Shares among parsed, untied choices of permutable items. Over a set of orders that shows every
candidate equally often at every position, an unswayed judge has 1/n everywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unswayed.decisions import FloatArray
from unswayed.metrics.metric import Limits, Metric, Need, fraction, ratio
from unswayed.metrics.outcomes import Outcomes


def _by_position(outcomes: Outcomes) -> FloatArray:
    """Choices, and choices at each position; shape (I, 1 + n)."""
    return _with_total(outcomes.counts_by(outcomes.positions_by_candidate))


def _by_label(outcomes: Outcomes) -> FloatArray:
    """Choices, and choices of each label; shape (I, 1 + n)."""
    return _with_total(outcomes.counts_by(outcomes.labels_by_candidate))


def _with_total(counts: FloatArray) -> FloatArray:
    return np.column_stack([counts.sum(axis=1), counts])


def excess_of_first(sums: FloatArray) -> FloatArray:
    """Share of the first position less 1/n, (B,); negative where the last ones are preferred."""
    shares = ratio(sums)
    excess: FloatArray = shares[:, 0] - 1.0 / shares.shape[1]
    return excess


def _excess_limits(n: int) -> Limits:
    return -1.0 / n, 1.0 - 1.0 / n


POSITION_RATE = Metric(
    title="Positions",
    meaning="share of parsed choices that fall on each position, the first one first; 1/n each "
    "without bias",
    statistics=_by_position,
    undefined="no answer could be read as a candidate",
    needs=(Need.PERMUTABLE, Need.PARSED),
    percent=True,
    constructed=True,
    limits=fraction,
)

LABEL_RATE = replace(
    POSITION_RATE,
    title="Labels",
    meaning="share of parsed choices that fall on each label, in the order of the label set; 1/n "
    "each without bias",
    statistics=_by_label,
)

PRIMACY = replace(
    POSITION_RATE,
    title="Primacy",
    meaning="share of parsed choices that fall on the first position, less the 1/n of no bias",
    values=excess_of_first,
    limits=_excess_limits,
)
