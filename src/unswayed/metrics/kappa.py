"""Fleiss' kappa: agreement of the presentations beyond chance.

Subjects are items, raters are presentations, categories are candidates and the declared tie. Items
with an unparsed or missing answer are left out (listwise deletion). Undefined where every answer
is the same candidate. Kappa of pooled data is not the mean of the kappas of its parts.

Source: Fleiss 1971; CalibraEval (arXiv 2410.15393) uses X0, X1, X2 as three raters.
"""

from __future__ import annotations

import numpy as np

from unswayed.metrics.consistency import agreeing_pairs
from unswayed.metrics.metric import Metric, Need
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray


def _agreement_and_counts(outcomes: Outcomes) -> FloatArray:
    """1, the item's agreement P_i, and its count of each category; shape (I, 2 + n + 1)."""
    counts = outcomes.choice_counts
    used = outcomes.complete & (counts.sum(axis=1) == outcomes.n_views)
    table: FloatArray = np.column_stack([np.ones(len(used)), agreeing_pairs(outcomes), counts])
    return np.where(used[:, None], table, 0.0)


def kappa(sums: FloatArray) -> FloatArray:
    """Kappa from sums of items, agreements and counts of each category, shape (B,)."""
    items, counts = sums[:, 0], sums[:, 2:]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = sums[:, 1] / items
        shares = counts / counts.sum(axis=1, keepdims=True)
        expected = (shares**2).sum(axis=1)
        beyond_chance = (observed - expected) / (1.0 - expected)
    return np.where((items > 0) & (expected < 1.0 - 1e-12), beyond_chance, np.nan)


FLEISS_KAPPA = Metric(
    title="Fleiss κ",
    meaning="agreement between presentations beyond chance; 1 is full agreement",
    statistics=_agreement_and_counts,
    values=kappa,
    undefined="every readable answer names the same candidate, or none is complete",
    needs=(Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    better=1,
    constructed=True,
)
