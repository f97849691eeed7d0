"""Score methods under every view from one pool of decisions, cross-fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.design import (
    Stratum,
    estimation_rows,
    estimation_size,
    group_of,
)
from unswayed.auditing.pool import DecisionSource
from unswayed.auditing.settings import FOLDS
from unswayed.decisions import (
    MISSING,
    TIE,
    UNPARSED,
    BoolArray,
    Decision,
    DecisionTable,
    FloatArray,
    IntArray,
    VerdictTable,
)
from unswayed.errors import NeedsLogprobs
from unswayed.items import Item, blind
from unswayed.methods import Method
from unswayed.methods.protocol import MethodWarning
from unswayed.methods.tables import TOLERANCE
from unswayed.metrics.outcomes import Outcomes, outcomes_of
from unswayed.permutations import invert
from unswayed.presentation import Ask, Protocol, canonical, through
from unswayed.runner import Question

__all__ = [
    "Costs",
    "Scored",
    "average_of_everything",
    "direct_outcomes",
    "score_method",
    "with_reference",
]


FEWEST_VOTES = 3
"""Choices without probabilities below which a plurality is nothing but their agreement."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a method costs in calls.

    Attributes:
        calls_per_item: What one more item costs.
        calls_per_item_amortised: Distinct calls to fit it and to judge every item once, per item.
        estimation_calls: Distinct calls that fitting needs.
    """

    calls_per_item: float
    calls_per_item_amortised: float
    estimation_calls: int


@dataclass(frozen=True, eq=False)
class Scored:
    """One method's verdicts under every view, per stratum.

    Attributes:
        outcomes: By candidate of the item itself.
        costs: In calls.
        by_construction: True if every view reads the same questions, so that the verdict cannot
            depend on the view whatever the judge does.
        fitted: The method fitted for each (stratum, fold); empty if it learns nothing.
        cautions: What fitting warned about, each sentence once.
    """

    outcomes: tuple[Outcomes, ...]
    costs: Costs
    by_construction: bool
    fitted: tuple[Method, ...] = ()
    cautions: tuple[str, ...] = ()


def outcomes_for(
    stratum: Stratum, table: DecisionTable, *, group_by: str, tied: BoolArray | None = None
) -> Outcomes:
    """Join gold to choices by candidate: the only place where gold meets verdicts."""
    return replace(
        outcomes_of(stratum.items, table),
        groups=tuple(group_of(item, group_by) for item in stratum.items),
        tied=tied,
    )


def direct_outcomes(
    strata: Sequence[Stratum],
    tables: Sequence[DecisionTable],
    protocol: Protocol,
    *,
    group_by: str,
) -> tuple[Outcomes, ...]:
    """Single calls under every presentation of a protocol."""
    return tuple(
        outcomes_for(
            stratum,
            table.select([Ask(shown) for shown in stratum.protocols[protocol]]),
            group_by=group_by,
        )
        for stratum, table in zip(strata, tables, strict=True)
    )


def score_method(
    method: Method,
    strata: Sequence[Stratum],
    tables: Sequence[DecisionTable],
    source: DecisionSource,
    *,
    estimation_items: int | None,
    group_by: str,
    samples: int | None = None,
) -> Scored:
    """Fit (cross-fitted by item) and score one method in all strata.

    With probabilities estimated from R samples, a method that reads them needs R more calls for
    each question.
    """
    outcomes: list[Outcomes] = []
    fitted: list[Method] = []
    cautions: list[str] = []
    judged, union, estimation, n_items = 0.0, 0, 0, 0
    constructed = True
    for stratum, table in zip(strata, tables, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MethodWarning)
            by_fold, fit_calls = _fit_folds(method, stratum, source, estimation_items)
        cautions.extend(str(one.message) for one in caught if one.category is MethodWarning)
        fitted.extend(one for one in by_fold if one is not method)
        blind_to = samples is not None and not method.needs_probs
        scored, read = _score_stratum(by_fold, stratum, table, group_by, without_probs=blind_to)
        outcomes.append(scored)
        judged += float(read.sum())
        n_items += len(stratum.items)
        estimation += len(fit_calls)
        judging = frozenset(method.asks(stratum.n))  # asked about every item anyway
        union += sum(ask not in judging for _, ask in fit_calls)
        constructed &= is_constructed(method, stratum)
    calls = 1 if samples is None or not method.needs_probs else 1 + samples
    per_item = calls * judged / n_items
    return Scored(
        outcomes=tuple(outcomes),
        costs=Costs(per_item, per_item + calls * union / n_items, calls * estimation),
        by_construction=constructed,
        fitted=tuple(fitted),
        cautions=tuple(dict.fromkeys(cautions)),
    )


def is_constructed(method: Method, stratum: Stratum) -> bool:
    """Whether every view reads the same set of questions.

    A method that may stop early must also read the same questions up to every place where it may.
    """
    if len(stratum.views) < 2:
        return False
    asks = method.asks(stratum.n)
    ends = (*method.stops_after(stratum.n), len(asks))
    return all(
        {through(outer, ask) for ask in asks[:end]} == set(asks[:end])
        for outer in stratum.views
        for end in ends
    )


def _fit_folds(
    method: Method, stratum: Stratum, source: DecisionSource, asked: int | None
) -> tuple[list[Method], set[tuple[str, Ask]]]:
    """The method fitted for each fold, and the calls that one such fit needs."""
    size = estimation_size(len(stratum.items), asked)
    by_fold: list[Method] = []
    calls: set[tuple[str, Ask]] = set()
    for fold in range(FOLDS):
        rows = estimation_rows(stratum, size=size, fold=fold)
        chosen = [blind(stratum.items[row]) for row in rows]
        questions = [Question(item, ask) for item, ask in method.plan_fit(chosen)]
        if not questions and not method.fitted_from:
            return [method] * FOLDS, set()
        by_fold.append(_fitted(method, chosen, list(source(questions))))
        if fold == 0:
            calls = {(question.item.id, question.ask) for question in questions}
    return by_fold, calls


def _fitted(method: Method, chosen: Sequence[Item], decisions: Sequence[Decision]) -> Method:
    """The fitted method; one that learned nothing, with its warning, if these lack probabilities.

    Other items may have them, so that the method was not skipped.
    """
    try:
        return method.fit(chosen, decisions)
    except NeedsLogprobs:
        return method.fit(chosen, [])


def _score_stratum(
    by_fold: Sequence[Method],
    stratum: Stratum,
    table: DecisionTable,
    group_by: str,
    *,
    without_probs: bool,
) -> tuple[Outcomes, FloatArray]:
    size, n, views = len(stratum.items), stratum.n, stratum.views
    choices = np.full((size, len(views)), MISSING, dtype=np.int16)
    tied = np.zeros((size, len(views), n), dtype=bool)
    scores = np.full((size, len(views), n), np.nan)
    n_calls = np.zeros((size, len(views)))
    method = by_fold[0]
    asked = method.asks(n)
    # a single answer is not filled in from samples that the method does not pay for
    given = replace(table, probs=None) if without_probs else table
    for column, outer in enumerate(views):
        seen = table.select(asked, through=outer)
        verdicts = _verdicts(by_fold, stratum, given.select(asked, through=outer))
        back = invert(outer.order)
        own = verdicts.renumbered(back)
        choices[:, column], tied[:, column] = own.choices, own.tied
        if method.needs_probs and own.scores is not None:
            scores[:, column] = own.scores
        elif len(asked) == 1 and seen.probs is not None:
            scores[:, column] = seen.probs[:, 0, list(back)]
        n_calls[:, column] = verdicts.n_calls
    _keep_own_order_only(method, stratum, given, choices, tied, n_calls)
    judged = DecisionTable(
        items=table.items,
        asks=tuple(Ask(outer) for outer in views),
        shown=views,
        label_set=table.label_set,
        choices=choices,
        probs=_as_probabilities(scores),
    )
    has_ties = bool((choices == TIE).any())
    outcomes = outcomes_for(stratum, judged, group_by=group_by, tied=tied if has_ties else None)
    read = np.where(choices[:, 0] == MISSING, np.nan, n_calls[:, 0])
    # where nothing was answered it costs what it costs elsewhere
    usual = float(np.nanmean(read)) if (~np.isnan(read)).any() else float(len(asked))
    return outcomes, np.where(np.isnan(read), usual, read)


def _verdicts(by_fold: Sequence[Method], stratum: Stratum, seen: DecisionTable) -> VerdictTable:
    if all(one is by_fold[0] for one in by_fold):
        return by_fold[0].decide_table(seen)
    parts = []
    for fold, method in enumerate(by_fold):
        rows = np.flatnonzero(stratum.folds == fold)
        if len(rows):
            parts.append((rows, method.decide_table(seen.rows(rows))))
    return _gather(parts, len(stratum.items), stratum.n)


def _gather(
    parts: Iterable[tuple[NDArray[np.intp], VerdictTable]], size: int, n: int
) -> VerdictTable:
    made = VerdictTable(
        choices=np.full(size, MISSING, dtype=np.int16),
        tied=np.zeros((size, n), dtype=bool),
        scores=np.full((size, n), np.nan),
        confidence=np.full(size, np.nan),
        consistent=np.full(size, -1, dtype=np.int8),
        n_calls=np.zeros(size, dtype=np.int32),
    )
    assert made.scores is not None
    for rows, part in parts:
        made.choices[rows] = part.choices
        made.tied[rows] = part.tied
        if part.scores is not None:
            made.scores[rows] = part.scores
        made.confidence[rows] = part.confidence
        made.consistent[rows] = part.consistent
        made.n_calls[rows] = part.n_calls
    return made


def _keep_own_order_only(
    method: Method,
    stratum: Stratum,
    table: DecisionTable,
    choices: IntArray,
    tied: BoolArray,
    n_calls: FloatArray,
) -> None:
    """Items that may not be permuted have one verdict: the method's if it needs their own order
    only, else the single call's.
    """
    fixed = ~stratum.permutable
    if fixed.any() and not all(ask.as_given for ask in method.asks(stratum.n)):
        choices[fixed, 0] = table.select([Ask(canonical(stratum.n))]).choices[fixed, 0]
        tied[fixed, 0] = (choices[fixed, 0] == TIE)[:, None]
        n_calls[fixed, 0] = 1


def _as_probabilities(scores: FloatArray) -> FloatArray | None:
    """Scores that are probability distributions, for ICC; None if the method gives others.

    Shares of votes never come here: they are counts of choices, not probabilities.
    """
    known = ~np.isnan(scores).any(axis=2)
    if not known.any():
        return None
    sums = scores[known].sum(axis=1)
    if scores[known].min() < 0 or not np.allclose(sums, 1, atol=1e-3):
        return None
    return scores


def average_of_everything(
    strata: Sequence[Stratum], tables: Sequence[DecisionTable]
) -> tuple[IntArray, ...]:
    """The full-pool average's verdict for each item: the reference where there is no gold.

    Mean probability over the coupled presentations where all are known, else the plurality of
    three choices or more (TIE where that is one). Two choices without probabilities have a winner
    only where they agree, which every single call would then agree with: UNPARSED, as for one order.
    """
    verdicts = []
    for stratum, table in zip(strata, tables, strict=True):
        seen = table.select([Ask(presentation) for presentation in stratum.views])
        votes = [((seen.choices == c) & seen.allowed).sum(axis=1) for c in range(stratum.n)]
        score = np.stack(votes, axis=1).astype(np.float64)
        telling = score.sum(axis=1) >= FEWEST_VOTES
        if seen.probs is not None:
            mean = seen.probs.mean(axis=1)
            known = ~np.isnan(mean).any(axis=1) & stratum.permutable & (len(stratum.views) > 1)
            score[known] = mean[known]
            telling |= known
        best = score >= score.max(axis=1, keepdims=True) - TOLERANCE
        choice = np.where(best.sum(axis=1) == 1, best.argmax(axis=1), TIE).astype(np.int16)
        choice[~telling] = UNPARSED
        verdicts.append(choice)
    return tuple(verdicts)


def with_reference(outcomes: Outcomes, reference: IntArray) -> Outcomes:
    """The outcomes with the reference verdicts in the place of gold, to measure agreement."""
    gold = np.zeros((len(reference), len(outcomes.label_set)), dtype=bool)
    known = reference >= 0
    gold[np.flatnonzero(known), reference[known]] = True
    return replace(outcomes, gold=gold, gold_kind=known.astype(np.int8), yardstick=True)
