"""Selective: a verdict where the corrected answer is sure enough, else an abstention.

z = centred log p by candidate, less the offset of each candidate's label; gap = largest less second
largest of z, or of its mean over a set of orders, where offsets cancel if the set is even. The verdict
is given where the gap reaches the threshold. That both orders agree is no reason to give it: agreeing
verdicts may be less accurate than all (Claude 3 Haiku on JudgeBench).
Fit, with gold: the threshold falls from the surest question until the bound on errors among verdicts
exceeds `error`. With `guarantee=high`, at 60 steps from the ceil(1.15 ln risk / ln(1 - error)) surest
questions to all: Clopper-Pearson at confidence 1 - `risk`, stopping at the first step that fails
(fixed-sequence testing; Trust or Escalate, arXiv 2407.18370). With `guarantee=mean`, the most questions
with (errors + 1)/(questions + 1) <= error (SCOPE, arXiv 2602.13110). For one order, offsets come from
the questions without gold, or from every third if these are few, and each other question is read in one
order that follows from a hash of its texts, so that the order of gold in the data cannot help.
Calls: fit the size of the set (one order: n) per estimation item, judge the size of the set. Ties: the
tie rule; questions with equal gaps are decided together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Self

import numpy as np

from unswayed.methods.bounds import check_bound, check_settings, fewest, upper_end
from unswayed.methods.checks import UnsoundError, check_numbers, check_offsets
from unswayed.methods.escalate import (
    centred_logs,
    corrected_logs,
    distinct_rows,
    first_order,
    leaders,
)
from unswayed.methods.estimation import FEW_ITEMS, Tables, not_fitted, warn_of
from unswayed.methods.protocol import About, Learned, Method, learned, learned_for
from unswayed.methods.sets import asks_of_set
from unswayed.methods.tables import margin, softmax, verdict_table
from unswayed.model.decisions import (
    ABSTAINED,
    BoolArray,
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    VerdictTable,
)
from unswayed.model.presentation import Ask

STEPS: Final = 60
"""Numbers of questions that are tried, surest first."""

FEWEST: Final = 3
"""Estimation questions without which nothing is learned."""


@dataclass(frozen=True, slots=True)
class Selection(Learned):
    """The threshold on the gap, for one number of candidates."""

    offsets: tuple[float, ...]  # added to log p by each label, in nats; sums to 0
    gap: float | None  # smallest gap with a verdict, in nats; None: no verdict is given
    errors: int  # wrong ones among the questions decided at this gap
    decided: int  # questions decided at it
    count: int  # questions with gold on which it was chosen

    def __post_init__(self) -> None:
        check_offsets(self.offsets, self.n)
        if self.gap is not None:
            check_numbers("gap", [self.gap], 1, least=0)
        if not 0 <= self.errors <= self.decided <= self.count:
            raise UnsoundError(f"errors: {self.errors} of {self.decided} of {self.count}")


@dataclass(frozen=True, slots=True)
class Selective(Method):
    """Verdicts where they are sure enough for a bound on their errors.

    Attributes:
        error: Largest share of wrong verdicts among the verdicts given.
        guarantee: Bound on the share: with confidence 1 − `risk` (`high`), or in the mean over
            estimation sets (`mean`).
        risk: Probability with which `high` may exceed the share.
        orders: Set of orders whose mean decides; `identity` is one call, `auto` is swap for two
            candidates and cyclic for more.
        gap: Smallest gap with a verdict, in nats, in place of the fitted gap. No bound holds then.
    """

    error: float = 0.1
    guarantee: Literal["high", "mean"] = "high"
    risk: float = 0.1
    orders: str = "identity"
    gap: float | None = None
    selections: tuple[Selection, ...] | None = learned()

    name: ClassVar[str] = "selective"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = FEWEST
    needs_gold: ClassVar[bool] = True
    abstains: ClassVar[bool] = True
    learns_threshold: ClassVar[bool] = True
    about: ClassVar[About] = About(
        title="Verdict or abstention",
        source="Unswayed; bounds by Trust or Escalate (arXiv 2407.18370) and SCOPE (arXiv 2602.13110)",
        idea="Give a verdict only where the corrected probabilities are far enough apart.",
        calls="1",
        estimation="n per estimation item, which needs gold",
        equation="verdict = argmax_c z_c if the gap of z reaches the threshold, z = log p - offset",
        helps="a wrong verdict costs more than no verdict, and some items have gold: the share of wrong"
        " verdicts then has a bound",
        cannot="The bound holds for items like the estimation items, and for all verdicts together, not for"
        " a single one. With little gold, the method abstains on every item. Audits neither compare it with"
        " methods that decide every item nor recommend it. Agreement of both orders does not show that a"
        " verdict is right.",
        default=False,
    )

    def __post_init__(self) -> None:
        check_settings(self.name, self.gap, error=self.error, risk=self.risk)
        for own in self.selections or ():
            if own.gap is not None:
                check_bound(
                    self.guarantee, own.errors, own.decided, risk=self.risk, share=self.error
                )

    @property
    def fewest_decided(self) -> int:
        """Fewest questions that are decided together: without an error, they prove the bound."""
        if self.guarantee == "mean":
            return fewest(self.guarantee, self.error, self.risk)
        return math.ceil(1.15 * math.log(self.risk) / math.log1p(-self.error))

    def without_abstaining(self) -> Self:
        """Return the method with a verdict for every gap."""
        return replace(self, gap=0.0)

    def keeps_order(self, n: int) -> bool:
        """Return True: an item that keeps its order is decided, or not, by its own call."""
        return True

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every order of the set."""
        return asks_of_set(self.orders, n)

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Every order of the set; for a single order those in which each label meets each candidate."""
        asks = self.asks(n)
        return asks if len(asks) > 1 else asks_of_set("auto", n)

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows offsets and gap for each number of candidates."""
        fitted = {n: self._select(table) for n, table in tables.items()}
        if not fitted:
            warn_of("selective: no estimation questions; nothing is corrected or decided.")
        for n, own in fitted.items():
            count = own.count if own else 0
            if self.gap is None and (own is None or own.gap is None):
                least = self.fewest_decided
                needed = math.ceil(least * 1.5) if len(self.asks(n)) == 1 else least
                why = (
                    f"the surest of {count} questions with gold have too many errors"
                    if count >= least
                    else f"it needs at least {needed} estimation questions with gold and all "
                    f"probabilities, and the threshold rests on {count}"
                )
                warn_of(
                    f"selective abstains on every item with {n} candidates: for an error of "
                    f"{self.error:g}, {why}. Give more gold or a larger error."
                )
        return replace(self, selections=tuple(own for own in fitted.values() if own))

    def _select(self, table: DecisionTable) -> Selection | None:
        logs = centred_logs(table)
        rows = distinct_rows(logs, table)
        if len(rows) < FEWEST:
            return None
        none: BoolArray = np.zeros((len(table), table.n), np.bool_)
        gold = none if table.gold is None else table.gold
        single = len(self.asks(table.n)) == 1
        proving = gold[rows].any(axis=1)
        few = (~proving).sum() < FEW_ITEMS
        teaching = np.arange(len(rows)) % 3 == 0 if few else ~proving
        offsets: FloatArray = (
            logs[rows[teaching]].mean(axis=(0, 1)) if single else np.zeros(table.n)
        )
        proven = rows[proving & ~(teaching & single)]
        own = table.rows(proven)
        z = corrected_logs(own, offsets)
        if single:
            turns = [first_order(item, len(table.asks)) for item in own.items]
            means = z[np.arange(len(own)), np.array(turns, dtype=np.intp)]
        else:
            means = z.mean(axis=1)
        gaps = margin(means)
        wrong = ~gold[proven, leaders(means, own)]
        order = np.argsort(-gaps, kind="stable")
        decided, errors = self._surest(gaps[order], wrong[order])
        return Selection(
            n=table.n,
            offsets=tuple(map(float, offsets)),
            gap=float(gaps[order][decided - 1]) if decided else None,
            errors=errors,
            decided=decided,
            count=len(own),
            units=len(rows),
        )

    def _surest(self, gaps: FloatArray, wrong: BoolArray) -> tuple[int, int]:
        """Return how many questions to decide, surest first, and the errors among them; none where none
        may be: gaps fall, shape (Q,).
        """
        high, least = self.guarantee == "high", self.fewest_decided
        if len(gaps) < least:
            return 0, 0
        until = (
            np.linspace(least, len(gaps), STEPS).astype(int)
            if high
            else range(least, len(gaps) + 1)
        )
        alike = np.searchsorted(-gaps, -gaps, side="right")  # equal gaps are decided together
        errors, best = wrong.cumsum(), (0, 0)
        for count in dict.fromkeys(int(alike[place - 1]) for place in until):
            among = int(errors[count - 1])
            if upper_end(self.guarantee, among, count, self.risk) <= self.error:
                best = count, among
            elif high:
                break
        return best

    def estimates(self) -> dict[str, Estimate]:
        """Return offsets and gap, in nats, the share of items decided, and errors with their bound."""
        result = {}
        for own in self.selections or ():
            of, units = f"among {own.n} candidates", own.units
            for label, offset in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", own.offsets, strict=False):
                if any(own.offsets):
                    result[f"offset of {label} {of}"] = Estimate(value=offset, n=units or 0)
            reason = "" if own.gap is not None else "it abstains on everything"
            result[f"gap of a verdict {of}"] = Estimate(
                value=own.gap, n=units or 0, reason=reason, n_units=units
            )
            if own.decided:
                bound = upper_end(self.guarantee, own.errors, own.decided, self.risk)
                result[f"errors among verdicts {of}"] = Estimate(
                    value=own.errors / own.decided, low=0.0, high=bound, n=own.decided
                )
                result[f"share of items decided {of}"] = Estimate(
                    value=own.decided / own.count, n=own.count
                )
        return result

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the verdict of the mean where its gap is large enough, with scores even where it is not.

        An item that must keep its order has one call: no bound holds if verdicts take more.
        """
        if self.selections is None:
            raise not_fitted(self.name)
        own = learned_for(table.n, self.selections)
        z = corrected_logs(table, np.zeros(table.n) if own is None else np.array(own.offsets))
        cells = table.allowed
        count = np.maximum(cells.sum(axis=1), 1)[:, None]
        means = np.where(cells[:, :, None], z, 0.0).sum(axis=1) / count
        fitted = math.inf if own is None or own.gap is None else own.gap
        least = np.full(len(table), fitted if self.gap is None else self.gap)
        if self.gap is None:
            least[cells.sum(axis=1) < len(table.asks)] = math.inf
        choices = leaders(means, table)
        choices[(choices >= 0) & (margin(means) < least)] = ABSTAINED
        return verdict_table(table, choices, cells=cells, scores=softmax(means))
