"""PCFJudge: score a list of answers in several orders and add up scores, ranks, tops and caution.

For each of K runs over orders that all items share, the judge scores every candidate (0 to 100),
ranks them and flags them. With s the mean score, B = 100/(K(n-1)) sum_r (n - rank), v the share of
runs whose highest-scored set holds the candidate (split among equals) and u the share of runs that
call it rightly cautious (Eq. 1-4), the consensus score is C = .50 s + .25 B + .20 * 100 v + .05 *
100 u (Eq. 5). Errors and made-up details that were flagged are reported, and are in no score.

A run without a ranking is ranked by its scores, equal ones averaged. A run that was answered but
lacks a score is dropped for its item, and K with it; without any run left the item is unparsed. A
call that failed is not a run: its item has no verdict until it is made, or what is left would be
another set of orders than the other items'. A flag that a run leaves out is not raised there; one
that no run gives is unknown, and adds nothing.
Calls per item: fit 0, judge K. Ties: all within `tolerance` of the highest C. The paper's seven
orders and tolerance are not published, nor is its code: seeded draws and 1e-6 are our choice, and
so are the sets `cyclic` and `balanced`, which show every candidate equally often at every position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from unswayed.base.errors import UsageError
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import asks_of_set
from unswayed.methods.voting import SCORE_TOLERANCE, decide_by_score, mean_by_candidate
from unswayed.model.decisions import (
    RANK,
    SCORE,
    BoolArray,
    DecisionTable,
    Evidence,
    FloatArray,
    VerdictTable,
)
from unswayed.model.parsing import FLAGS
from unswayed.model.presentation import Ask

CAUTION: Final = "calibrated_uncertainty"
"""The flag that is a merit."""


@dataclass(frozen=True, slots=True)
class PCF(Method):
    """Consensus of several orders of one list.

    Attributes:
        runs: Number of seeded orders, the item's own included; all n! if that is fewer.
        orders: Orders to read: the paper's seeded draws, or balanced sets that ignore `runs` and
            `seed`: `cyclic` (n orders) and `balanced` (2n).
        seed: Seed of the draws.
        tolerance: Points of C, out of 100, within which the highest candidates tie.
    """

    runs: int = 7
    orders: Literal["seeded", "cyclic", "balanced"] = "seeded"
    seed: int = 0
    tolerance: float = SCORE_TOLERANCE

    name: ClassVar[str] = "pcf"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.SCORES})
    about: ClassVar[About] = About(
        title="Permutation consensus (PCFJudge)",
        source="Huang et al. 2026 (arXiv 2603.20562)",
        idea="Score and rank the whole list in several orders, and combine mean scores, ranks,"
        " first places and flags for calibrated uncertainty.",
        calls="7, or n! if that is less; n with `orders=cyclic`, 2n with `orders=balanced`",
        equation="C = .50 mean score + .25 Borda + .20 top-set share + .05 uncertainty share, each of "
        "100; argmax_c C",
        helps="you pick the best of several answers and their order in the list moves the scores",
        cannot="Seven drawn orders do not show every candidate first equally often, so part of "
        "a first-place preference remains. `orders=cyclic` and `orders=balanced` are "
        "even.",
        variants=("pcf:orders=cyclic",),
    )

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UsageError(f"pcf:runs={self.runs}: give at least 1.")
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise UsageError(f"pcf:tolerance={self.tolerance}: give 0 or more points.")

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the orders of the set, labels moving with them."""
        name = f"random:{self.runs}" if self.orders == "seeded" else self.orders
        return asks_of_set(name, n, seed=self.seed)

    def prefixes(self, n: int) -> Sequence[int]:
        """Every number of runs, where there are several."""
        runs = len(self.asks(n))
        return range(1, runs + 1) if runs > 1 else ()

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the highest C of each row, with its parts."""
        scores = table.ratings.get(SCORE)
        if scores is None:
            scores = np.full((*table.choices.shape, table.n), np.nan)
        runs: BoolArray = table.allowed & ~np.isnan(scores).any(axis=2)
        ranks = table.ratings.get(RANK, np.full_like(scores, np.nan)).copy()
        unranked = runs & np.isnan(ranks).any(axis=2)
        ranks[unranked] = _ranks(scores[unranked])
        top = scores == scores.max(axis=2, keepdims=True)
        shares = top / np.maximum(top.sum(axis=2, keepdims=True), 1)
        mean = _mean(scores, runs)
        borda = 100.0 * (table.n - _mean(ranks, runs)) / (table.n - 1)
        vote = _mean(shares, runs)
        raised = {
            name: _raised(table.ratings[name], runs) for name in FLAGS if name in table.ratings
        }
        caution = np.nan_to_num(raised.get(CAUTION, np.zeros_like(vote)))
        consensus = 0.50 * mean + 0.25 * borda + 0.20 * 100.0 * vote + 0.05 * 100.0 * caution
        return decide_by_score(
            table,
            consensus,
            tolerance=self.tolerance,
            parts={"mean_score": mean, "borda": borda, "top_share": vote, **raised},
        )


def _ranks(scores: FloatArray) -> FloatArray:
    """Ranks by score, 1 for the highest, equal ones averaged; (..., n)."""
    own, other = scores[..., :, None], scores[..., None, :]
    ranks: FloatArray = (other > own).sum(axis=-1) + ((other == own).sum(axis=-1) + 1) / 2
    return ranks


def _mean(values: FloatArray, runs: BoolArray) -> FloatArray:
    """Mean over the runs of each row of values (I, T, n), NaN without any; (I, n)."""
    return mean_by_candidate(values, runs, np.ones(runs.shape[1]))


def _raised(flags: FloatArray, runs: BoolArray) -> FloatArray:
    """Share of the runs that raise a flag (I, T, n), NaN where none gives it; (I, n)."""
    given = (runs[:, :, None] & ~np.isnan(flags)).any(axis=1)
    return np.where(given, _mean(np.nan_to_num(flags), runs), np.nan)
