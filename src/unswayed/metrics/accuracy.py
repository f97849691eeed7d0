"""Accuracy: the share of right answers, over all presentations, items weighted equally.

Ties and unparsed answers are wrong; a failed call does not count, so an item counts the presentations
it has. Items whose gold is unknown (or a tie, unless ties are a class) are left out.
`accuracy_fractional` credits a tie among m candidates with the share of them that is right.
`agreement` is the accuracy beside the average over the full pool in the place of gold.

Source: PA-GRPO (arXiv 2603.21016), accuracy on the expanded set.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unswayed.metrics.gold import GOLD_TIE
from unswayed.metrics.metric import Metric, Need, fraction, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import TIE, FloatArray


def credit(outcomes: Outcomes) -> FloatArray:
    """1 for a right choice, |tied and right| / |tied| for a tie, else 0; shape (I, V)."""
    earned = outcomes.right.astype(float)
    rows, views = np.nonzero(outcomes.choices == TIE)
    gold = outcomes.gold[rows]
    tied = np.ones_like(gold) if outcomes.tied is None else outcomes.tied[rows, views]
    share = (tied & gold).sum(axis=1) / np.maximum(tied.sum(axis=1), 1)
    is_class = outcomes.tie_is_class & (outcomes.gold_kind[rows] == GOLD_TIE)
    earned[rows, views] = np.where(is_class, earned[rows, views], share)
    return earned


def _mean_over_answered(earned: FloatArray, outcomes: Outcomes) -> FloatArray:
    calls = outcomes.answered.sum(axis=1)
    mean = np.where(outcomes.answered, earned, 0.0).sum(axis=1) / np.maximum(calls, 1)
    return item_means(mean, outcomes.decided & (calls > 0))


ACCURACY = Metric(
    title="Accuracy, ties wrong",
    meaning="share of right answers, averaged over the presentations of each item; ties and "
    "unparsed answers count as wrong",
    statistics=lambda own: _mean_over_answered(own.right.astype(float), own),
    undefined="no answered item has gold",
    needs=(Need.GOLD,),
    better=1,
    percent=True,
    compared="jointly",
    curve=True,
    limits=fraction,
    across=True,
)

FRACTIONAL = replace(
    ACCURACY,
    title="Accuracy",
    meaning="share of right answers, averaged over the presentations of each item; a tie between k "
    "candidates, one of them right, earns 1/k, unparsed answers nothing",
    statistics=lambda own: _mean_over_answered(credit(own), own),
    curve=False,
)

AGREEMENT = replace(
    ACCURACY,
    title="Agreement",
    meaning="share of verdicts equal to those of the average over every presentation; replaces "
    "accuracy if there is no gold",
    needs=(Need.YARDSTICK,),
    curve=False,
    optional=True,
)
