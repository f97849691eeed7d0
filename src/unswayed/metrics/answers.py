"""Shares of unparsed answers and declared ties, and the probability on the labels.

Shares of the calls that were answered, of all items; a failed call is not an answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from unswayed.metrics.metric import Metric, Need, fraction
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import TIE, UNPARSED, FloatArray


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
