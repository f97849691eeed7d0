"""Score methods under every view from one pool of decisions, cross-fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.design import Stratum, estimation_rows, estimation_size
from unswayed.auditing.pool import DecisionSource
from unswayed.auditing.settings import FOLDS
from unswayed.base.counts import plural
from unswayed.base.errors import NeedsLogprobs
from unswayed.calls import Question
from unswayed.methods import Method
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import spec_name
from unswayed.methods.tables import TOLERANCE, choices_of
from unswayed.methods.voting import count_votes, decide_by_vote, mean_probs
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import (
    MISSING,
    SCORE,
    TIE,
    BoolArray,
    DecisionTable,
    Evidence,
    FloatArray,
    IntArray,
    leaders_of,
)
from unswayed.model.items import Item
from unswayed.model.permutations import Exposure, exposure, invert
from unswayed.model.presentation import Ask, askable, canonical, through

MOST_LEVEL = 0.01
"""Share of verdicts between equal scores from which it is told."""
FEWEST_VOTES = 3
"""Choices without probabilities below which a plurality is nothing but their agreement."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of a method in calls."""

    calls_per_item: float  # what one more item costs
    # distinct calls to fit it and to judge every item once, per item
    calls_per_item_amortised: float
    estimation_calls: int  # distinct calls that fitting needs


@dataclass(frozen=True, eq=False)
class Scored:
    """One method's verdicts under every view, per stratum."""

    outcomes: tuple[Outcomes, ...]  # by candidate of the item itself
    costs: Costs  # in calls
    # true if every view reads the same questions, so that the verdict cannot depend on the view
    # whatever the judge does
    by_construction: bool
    # the method fitted for each (stratum, fold); empty if it learns nothing
    fitted: tuple[Method, ...] = ()
    cautions: tuple[str, ...] = ()  # what fitting warned about, each sentence once
    remarks: tuple[str, ...] = ()  # on orders that are not even, and verdicts between equal scores
    # by number of candidates, of a method that reads a set of orders that may be cut
    exposures: Mapping[int, Exposure] = field(default_factory=dict)


def score_method(
    method: Method,
    strata: Sequence[Stratum],
    source: DecisionSource,
    *,
    estimation_items: int | None,
    samples: int | None = None,
    prefix: int | None = None,
) -> Scored:
    """Fit (cross-fitted by item) and score one method in all strata.

    With probabilities estimated from R samples, a method that reads them needs R more calls for
    each question. With a prefix (`Method.prefixes`) it reads the first so many of its questions.
    """
    outcomes: list[Outcomes] = []
    fitted: list[Method] = []
    cautions: list[str] = []
    judged, union, estimation, n_items = 0.0, 0.0, 0, 0
    constructed = True
    for stratum in strata:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MethodWarning)
            by_fold, fit_calls = _fit_folds(method, stratum, source, estimation_items)
        cautions.extend(str(w.message) for w in caught if w.category is MethodWarning)
        fitted.extend(own for own in by_fold if own is not method)
        blind_to = samples is not None and Evidence.PROBS not in method.reads
        scored, read = _score_stratum(by_fold, stratum, without_probs=blind_to, prefix=prefix)
        outcomes.append(scored)
        judged += float(read.sum())
        n_items += len(stratum.items)
        estimation += len(fit_calls)
        union += _only_to_fit(by_fold[0], stratum, fit_calls, read)
        constructed &= is_constructed(method, stratum, prefix=prefix)
    calls = 1 if samples is None or Evidence.PROBS not in method.reads else 1 + samples
    per_item = calls * judged / n_items
    exposures = {
        stratum.n: exposure([ask.presentation.order for ask in method.asks(stratum.n)])
        for stratum in strata
        if method.prefixes(stratum.n)
    }
    return Scored(
        outcomes=tuple(outcomes),
        costs=Costs(per_item, per_item + calls * union / n_items, calls * estimation),
        by_construction=constructed,
        fitted=tuple(fitted),
        cautions=tuple(dict.fromkeys(cautions)),
        remarks=(*_uneven(spec_name(method), exposures), *_level(method, outcomes)),
        exposures=exposures,
    )


def _only_to_fit(
    method: Method, stratum: Stratum, fit_calls: Sequence[tuple[Item, Ask]], read: FloatArray
) -> float:
    """Count the calls of fitting that judging does not make: others, and those after an early stop."""
    judging = method.asks(stratum.n)
    place = {item.id: row for row, item in enumerate(stratum.items)}
    shared: dict[str, int] = {}
    others = 0
    for item, ask in fit_calls:
        if ask in askable(item, judging):
            shared[item.id] = shared.get(item.id, 0) + 1
        else:
            others += 1
    unread = [max(0.0, count - float(read[place[item]])) for item, count in shared.items()]
    return others + sum(unread)


def _uneven(name: str, exposures: Mapping[int, Exposure]) -> Iterator[str]:
    """Warn about orders that do not show every candidate first equally often."""
    uneven = [
        f"{plural(shown.orders, 'order')} of {n} candidates put them first {'/'.join(map(str, shown.first))} times"
        for n, shown in exposures.items()
        if not shown.is_even_first
    ]
    if uneven:
        yield (
            f"{name}: {'; '.join(uneven)}, so part of a first-place preference stays. "
            "Use an even set, such as cyclic or balanced."
        )


def _level(method: Method, outcomes: Sequence[Outcomes]) -> Iterator[str]:
    """Tell how many verdicts lie between equal probabilities, where they are more than `MOST_LEVEL`."""
    if Evidence.PROBS not in method.reads:
        return
    given = [own.probs[own.choices >= 0] for own in outcomes if own.probs is not None]
    count = sum(map(len, given))
    level = sum(int((leaders_of(probs, TOLERANCE).sum(axis=1) > 1).sum()) for probs in given)
    if level > MOST_LEVEL * count:
        yield (
            f"{spec_name(method)}: {level:,} of {plural(count, 'verdict')} have equal scores, so a hash of id "
            "and text decides."
        )


def is_constructed(method: Method, stratum: Stratum, *, prefix: int | None = None) -> bool:
    """Return True if every view reads the same set of questions.

    A method that may stop early must also read the same questions up to every place where it may.
    """
    if len(stratum.views) < 2:
        return False
    asks = method.asks(stratum.n)[:prefix]
    ends = (*method.stops_after(stratum.n), len(asks))
    return all(
        {through(outer, ask) for ask in asks[:end]} == set(asks[:end])
        for outer in stratum.views
        for end in ends
    )


def _fit_folds(
    method: Method, stratum: Stratum, source: DecisionSource, asked: int | None
) -> tuple[list[Method], list[tuple[Item, Ask]]]:
    """Return the method fitted for each fold, and the calls that one such fit needs."""
    size = estimation_size(len(stratum.items), asked)
    by_fold: list[Method] = []
    calls: list[tuple[Item, Ask]] = []
    for fold in range(FOLDS):
        rows = estimation_rows(stratum, size=size, fold=fold)
        chosen = [stratum.subjects[row] for row in rows]
        taught = [stratum.items[row] for row in rows] if method.needs_gold else chosen
        questions = [Question(item, ask) for item, ask in method.plan_fit(chosen)]
        if not questions and not method.fitted_from:
            return [method] * FOLDS, []
        decisions = list(source(questions))
        try:
            by_fold.append(method.fit(taught, decisions))
        except NeedsLogprobs:  # other items may have them, so that the method was not skipped
            by_fold.append(method.fit(taught, []))
        if fold == 0:
            distinct = {(question.item.id, question.ask): question for question in questions}
            calls = [(question.item, question.ask) for question in distinct.values()]
    return by_fold, calls


def _score_stratum(
    by_fold: Sequence[Method],
    stratum: Stratum,
    *,
    without_probs: bool,
    prefix: int | None,
) -> tuple[Outcomes, FloatArray]:
    size, n, views, table = len(stratum.items), stratum.n, stratum.views, stratum.table
    choices = np.full((size, len(views)), MISSING, dtype=np.int16)
    tied = np.zeros((size, len(views), n), dtype=bool)
    probs = np.full((size, len(views), n), np.nan)
    scores = np.full((size, len(views), n), np.nan) if SCORE in table.ratings else None
    score = np.full((size, len(views)), np.nan) if table.values is not None else None
    n_calls = np.zeros((size, len(views)))
    method = by_fold[0]
    # a single answer is not filled in from samples that the method does not pay for
    given = replace(table, probs=None) if without_probs else table
    for column, outer in enumerate(views):
        back = invert(outer.order)
        selected: dict[tuple[Ask, ...], DecisionTable] = {}  # what a method asks may be learned
        for fitted, rows in _parts(by_fold, stratum):
            asks = fitted.asks(n)[:prefix]
            if asks not in selected:
                selected[asks] = given.select(asks, through=outer)
            answers = selected[asks]
            verdicts = fitted.decide_table(answers if len(rows) == size else answers.rows(rows))
            own = verdicts.renumbered(back)
            choices[rows, column], tied[rows, column] = own.choices, own.tied
            n_calls[rows, column] = own.n_calls
            if score is not None and own.score is not None:
                score[rows, column] = own.score
            if own.scores is not None and Evidence.PROBS in method.reads:
                probs[rows, column] = own.scores
            if own.scores is not None and scores is not None:
                scores[rows, column] = own.scores
            if len(asks) == 1 and (scores is not None or Evidence.PROBS not in method.reads):
                single = table.select(asks, through=outer)
                if single.probs is not None and Evidence.PROBS not in method.reads:
                    probs[rows, column] = single.probs[rows, 0][:, list(back)]
                if scores is not None:
                    scores[rows, column] = single.ratings[SCORE][rows, 0][:, list(back)]
    _keep_own_order_only(method, stratum, given, choices, tied, score, n_calls)
    outcomes = replace(
        stratum.unanswered,
        shown=views,
        label_set=table.label_set,
        abstains=method.abstains,
        choices=choices,
        probs=_as_probabilities(probs),
        tied=tied if (choices == TIE).any() else None,
        score=score,
        scores=scores,
    )
    read = np.where(choices[:, 0] == MISSING, np.nan, n_calls[:, 0])
    # where nothing was answered it costs what it costs elsewhere
    usual = float(np.nanmean(read)) if (~np.isnan(read)).any() else float(len(method.asks(n)))
    return outcomes, np.where(np.isnan(read), usual, read)


def _parts(by_fold: Sequence[Method], stratum: Stratum) -> list[tuple[Method, NDArray[np.intp]]]:
    """Return the method that judges each item: the items of every fold, all where nothing was learned."""
    if all(method is by_fold[0] for method in by_fold):
        return [(by_fold[0], np.arange(len(stratum.items)))]
    rows = [np.flatnonzero(stratum.folds == fold) for fold in range(FOLDS)]
    return [(method, own) for method, own in zip(by_fold, rows, strict=True) if len(own)]


def _keep_own_order_only(
    method: Method,
    stratum: Stratum,
    table: DecisionTable,
    choices: IntArray,
    tied: BoolArray,
    score: FloatArray | None,
    n_calls: FloatArray,
) -> None:
    """Items that may not be permuted have one verdict: the method's if it needs their own order
    only, else the single call's.
    """
    fixed = ~stratum.permutable
    choices[fixed, 1:] = MISSING
    if score is not None:
        score[fixed, 1:] = np.nan
    if fixed.any() and not method.keeps_order(stratum.n):
        single = decide_by_vote(table.select([Ask(canonical(stratum.n))]))
        choices[fixed, 0], tied[fixed, 0] = single.choices[fixed], single.tied[fixed]
        if score is not None and single.score is not None:
            score[fixed, 0] = single.score[fixed]
        n_calls[fixed, 0] = 1


def _as_probabilities(scores: FloatArray) -> FloatArray | None:
    """Scores that are probability distributions, for ICC; None if the method gives others.

    Shares of votes never come here: they are counts of choices, not probabilities.
    """
    given = scores[~np.isnan(scores).any(axis=2)]
    if not len(given) or given.min() < 0 or not np.allclose(given.sum(axis=1), 1, atol=1e-3):
        return None
    return scores


def average_of_everything(stratum: Stratum) -> IntArray:
    """Return the full-pool average's verdict for each item: the reference of items without gold.

    Mean probability over the coupled presentations where all are known, else the plurality of
    three choices or more (TIE where that is one). Two choices without probabilities have a winner
    only where they agree, which every single call would then agree with: UNPARSED, as for one order.
    """
    seen = stratum.table.select(stratum.protocol_asks("coupled"))
    alike = np.ones(len(stratum.views))
    votes = count_votes(seen.choices, seen.allowed, stratum.n, alike)[:, :-1]
    mean = mean_probs(seen, seen.allowed, alike)
    whole = ~np.isnan(mean).any(axis=1) & stratum.permutable & (len(stratum.views) > 1)
    score = np.where(whole[:, None], mean, votes)
    telling = whole | (votes.sum(axis=1) >= FEWEST_VOTES)
    return choices_of(leaders_of(score, TOLERANCE) & telling[:, None])


def beside_average(
    strata: Sequence[Stratum], scored: Mapping[str, Scored]
) -> dict[str, tuple[Outcomes, ...]] | None:
    """Return the verdicts with that average in the place of gold; None where it decides nothing."""
    reference = [average_of_everything(stratum) for stratum in strata]
    if not any((part >= 0).any() for part in reference):
        return None
    named = [part >= 0 for part in reference]
    gold = [part[:, None] == np.arange(own.n) for part, own in zip(reference, strata, strict=True)]
    return {
        name: tuple(
            replace(part, gold=right, gold_kind=kind.astype(np.int8), yardstick=True)
            for part, right, kind in zip(own.outcomes, gold, named, strict=True)
        )
        for name, own in scored.items()
    }
