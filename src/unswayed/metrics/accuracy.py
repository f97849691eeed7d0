"""Accuracy, the share of right answers over all presentations, and consistent accuracy, right whatever they are.

Items are weighted equally. Ties and unparsed answers are wrong; a failed call does not count, so an
item counts the presentations it has. Items whose gold is unknown (or a tie, unless ties are a class)
are left out. `accuracy_fractional` credits a tie among m candidates with the share of them that is right.
`agreement` is the accuracy beside the average over the full pool in the place of gold.

Consistent accuracy is right whatever the presentation. Two candidates: right under every
presentation. More: the unique mode of the answers is right; a tie of modes is wrong, and
`consistent_accuracy_fractional` credits it with the share of the modes that is right. Items without
gold, that lack a presentation or must not be permuted are left out.

Source: PA-GRPO (arXiv 2603.21016), accuracy on the expanded set, and consistent accuracy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unswayed.metrics.gold import GOLD_TIE
from unswayed.metrics.metric import Metric, Need, fraction, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import TIE, BoolArray, FloatArray


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


def _consistently_right(outcomes: Outcomes) -> FloatArray:
    """1 and whether the item is right whatever the presentation, shape (I, 2)."""
    if outcomes.n == 2:
        hit = outcomes.right.all(axis=1)
    else:
        modes, right = _modes(outcomes)
        hit = (modes & right).any(axis=1) & (modes.sum(axis=1) == 1)
    return item_means(hit.astype(float), outcomes.complete & outcomes.decided)


def _credited_modes(outcomes: Outcomes) -> FloatArray:
    """1 and the share of the modes that is right, shape (I, 2)."""
    modes, right = _modes(outcomes)
    share = (modes & right).sum(axis=1) / np.maximum(modes.sum(axis=1), 1)
    return item_means(share, outcomes.complete & outcomes.decided)


def _modes(outcomes: Outcomes) -> tuple[BoolArray, BoolArray]:
    """Return the most frequent answers and the right ones; candidates, then the tie; shape (I, n + 1)."""
    counts = outcomes.choice_counts
    top = counts.max(axis=1, keepdims=True)
    modes: BoolArray = np.asarray((counts == top) & (top > 0), dtype=np.bool_)
    tie_right = outcomes.tie_is_class & (outcomes.gold_kind == GOLD_TIE)
    return modes, np.column_stack([outcomes.gold, tie_right])


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
    meaning="share of verdicts equal to the verdicts of the average over all presentations; replaces "
    "accuracy without gold",
    needs=(Need.YARDSTICK,),
    curve=False,
    optional=True,
)

CONSISTENT_ACCURACY = replace(
    ACCURACY,
    title="Consistent accuracy",
    meaning="two candidates: share of items judged correctly in every presentation; more: share of "
    "items whose only most frequent verdict is right",
    statistics=_consistently_right,
    undefined="no complete item has gold",
    needs=(Need.GOLD, Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    compared="paired",
    curve=False,
)

CONSISTENT_FRACTIONAL = replace(
    CONSISTENT_ACCURACY,
    title="Consistent accuracy, modes shared",
    meaning="consistent accuracy in which k most frequent verdicts, one of them right, earn 1/k "
    "(more than two candidates)",
    statistics=_credited_modes,
    compared="no",
    fewest=3,  # for two candidates there is no mode to tie
    optional=True,
)
