"""Consistent accuracy: right whatever the presentation.

Two candidates: right under every presentation. More: the unique mode of the answers is right; a tie
of modes is wrong, and `consistent_accuracy_fractional` credits it with the share of the modes that
is right. Items without gold, that lack a presentation or must not be permuted are left out.

Source: PA-GRPO (arXiv 2603.21016).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unswayed.metrics.gold import GOLD_TIE
from unswayed.metrics.metric import Metric, Need, fraction, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import BoolArray, FloatArray


def _right(outcomes: Outcomes) -> FloatArray:
    """1 and whether the item is right, shape (I, 2)."""
    if outcomes.n == 2:
        hit = outcomes.right.all(axis=1)
    else:
        modes, right = _modes(outcomes)
        hit = (modes & right).any(axis=1) & (modes.sum(axis=1) == 1)
    return item_means(hit.astype(float), outcomes.complete & outcomes.decided)


def _credited(outcomes: Outcomes) -> FloatArray:
    """1 and the share of the modes that is right, shape (I, 2)."""
    modes, right = _modes(outcomes)
    credit = (modes & right).sum(axis=1) / np.maximum(modes.sum(axis=1), 1)
    return item_means(credit, outcomes.complete & outcomes.decided)


def _modes(outcomes: Outcomes) -> tuple[BoolArray, BoolArray]:
    """Return the most frequent answers and the right ones; candidates, then the tie; shape (I, n + 1)."""
    counts = outcomes.choice_counts
    top = counts.max(axis=1, keepdims=True)
    modes: BoolArray = np.asarray((counts == top) & (top > 0), dtype=np.bool_)
    tie_right = outcomes.tie_is_class & (outcomes.gold_kind == GOLD_TIE)
    return modes, np.column_stack([outcomes.gold, tie_right])


CONSISTENT_ACCURACY = Metric(
    title="Consistent accuracy",
    meaning="two candidates: share of items judged correctly in every presentation; more: share of "
    "items whose only most frequent verdict is right",
    statistics=_right,
    undefined="no complete item has gold",
    needs=(Need.GOLD, Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    better=1,
    percent=True,
    compared="paired",
    limits=fraction,
    across=True,
)

FRACTIONAL = replace(
    CONSISTENT_ACCURACY,
    title="Consistent accuracy, modes shared",
    meaning="consistent accuracy in which k most frequent verdicts, one of them right, earn 1/k "
    "(more than two candidates)",
    statistics=_credited,
    compared="no",
    fewest=3,  # for two candidates there is no mode to tie
    optional=True,
)
