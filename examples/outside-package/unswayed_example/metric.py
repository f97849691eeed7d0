"""Metrics: whether the first two presentations give one verdict, and how sure the verdicts are."""

import numpy as np

from unswayed.ext.metrics import UNPARSED, Metric, Need, Outcomes, fraction, item_means


def _same(outcomes: Outcomes):
    first, second = outcomes.choices[:, 0], outcomes.choices[:, min(1, outcomes.n_views - 1)]
    return item_means((first == second) & (first != UNPARSED), outcomes.complete)


FIRST_TWO = Metric(
    title="First two alike",
    meaning="share of items with one verdict in the first two presentations",
    statistics=_same,
    undefined="no complete item",
    needs=(Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    better=1,
    percent=True,
    compared="jointly",
    constructed=True,
    curve=True,
    limits=fraction,
    across=True,
)


def _surest(outcomes: Outcomes):
    largest = np.nan_to_num(outcomes.probs).max(axis=2).mean(axis=1)  # nan: not known
    return item_means(largest, outcomes.complete)


SUREST = Metric(
    title="Surest",
    meaning="mean of the largest label probability",
    statistics=_surest,
    undefined="no complete item",
    needs=(Need.PROBS,),
    compared="paired",
    across=True,
)
