"""Consistency: does the verdict survive a change of presentation?

Two candidates: the share of items with the same choice under every presentation; an unparsed answer
agrees with nothing, not even another one, and a tie agrees with a tie. More candidates: the mean
over items of the mode's share of the presentations. That is biased upwards for small sets (the
same judge: 67.8% with 4 presentations, 64.7% with 24), so the set size is always printed beside
it and only values from sets of one size are compared. `pairwise_agreement`, the share of pairs of
presentations that agree, has no such bias.

Fleiss' kappa is agreement of the presentations beyond chance. Subjects are items, raters are
presentations, categories are candidates and the declared tie. Items with an unparsed or missing
answer are left out (listwise deletion). Undefined where every answer is the same candidate. Kappa of
pooled data is not the mean of the kappas of its parts.

Items that lack a presentation, or must not be permuted, are left out.

Source: Fleiss 1971; CalibraEval (arXiv 2410.15393) uses X0, X1, X2 as three raters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unswayed.metrics.metric import Metric, Need, fraction, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import TIE, UNPARSED, FloatArray


def agreeing_pairs(outcomes: Outcomes) -> FloatArray:
    """Share of pairs of presentations with the same choice, shape (I,)."""
    counts, views = outcomes.choice_counts, outcomes.n_views
    share: FloatArray = (counts * (counts - 1)).sum(axis=1) / max(views * (views - 1), 1)
    return share


def _kept(outcomes: Outcomes) -> FloatArray:
    """1 and the item's consistency, shape (I, 2)."""
    if outcomes.n == 2:
        return item_means(outcomes.unanimous.astype(float), outcomes.complete)
    share = outcomes.choice_counts.max(axis=1) / max(outcomes.n_views, 1)
    return item_means(share, outcomes.complete)


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


@dataclass(frozen=True, slots=True)
class FlipShare:
    """Share of verdicts that change, as in `metrics.json`."""

    total: int  # items whose answers are not all the same (unparsed agrees with nothing)
    n: int  # items with an answer under every presentation
    # items that picked the first position in every presentation although the candidates moved: pure
    # position picks
    first: int
    last: int  # items that picked the last position in every presentation
    unread: int  # flipped items with an answer that could not be read
    ties: int  # flipped items, all of them read, with a declared tie


def flips(strata: Sequence[Outcomes]) -> FlipShare:
    """Count the flips of some outcomes; items that lack a presentation are left out."""
    total = n = first = last = unread = ties = 0
    for outcomes in (part.tally for part in strata):
        n += outcomes.count(outcomes.complete)
        total += outcomes.count(outcomes.flipped)
        silent = outcomes.flipped & (outcomes.choices == UNPARSED).any(axis=1)
        unread += outcomes.count(silent)
        ties += outcomes.count(outcomes.flipped & ~silent & (outcomes.choices == TIE).any(axis=1))
        moved = len({presentation.order for presentation in outcomes.shown}) > 1
        if moved:
            picks = outcomes.counts_by(outcomes.positions_by_candidate)
            always = (picks == outcomes.n_views) & outcomes.complete[:, None]
            first += outcomes.count(always[:, 0])
            last += outcomes.count(always[:, -1])
    return FlipShare(total=total, n=n, first=first, last=last, unread=unread, ties=ties)


CONSISTENCY = Metric(
    title="Consistency",
    meaning="two candidates: share of items with the same verdict in every presentation; more: "
    "share of an item's presentations that give its most frequent verdict, mean over items",
    statistics=_kept,
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

PAIRWISE_AGREEMENT = replace(
    CONSISTENCY,
    title="Agreeing pairs",
    meaning="share of pairs of presentations with the same verdict, mean over items (more than two "
    "candidates)",
    statistics=lambda own: item_means(agreeing_pairs(own), own.complete),
    compared="no",
    curve=False,
    fewest=3,  # for two candidates consistency says it
    optional=True,
)


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
