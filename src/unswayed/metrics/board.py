"""Rankings of models by a judge's verdicts on pairs of their answers.

Scores and their differences are means over questions, so they have the intervals of means. An order of two models
is certain if their joint interval excludes 0: in 95% of rankings no certain order is wrong. A rank
lies between the models certainly above and those certainly below.

Source: Klein, Wright and Wieczorek (2020), JRSS A 183, 1061, for the ranks; scores are those of `win_rates`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.counts import plural
from unswayed.base.errors import ItemError, UnknownNameError
from unswayed.base.quantiles import NORMAL, TAIL, student
from unswayed.base.registry import did_you_mean
from unswayed.metrics.simultaneous import Contrasts
from unswayed.metrics.uncertainty import FEW, alike_interval, exact_interval, paired_difference
from unswayed.metrics.win_rates import REMEDY, Comparisons, WinRates, against, between
from unswayed.model.decisions import BoolArray, Estimate, FloatArray

UNEVEN: Final = 0.3
"""Difference between models in how often they are shown first from which a warning says so."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Place of a model in a ranking.

    Attributes:
        score: Win rate, mean of both sides, in [0, 1]; that of a baseline is .5.
        rank, best_rank, worst_rank: Rank of the score, and its interval; 1 is the best.
        certainly_above: Models that are certainly below it.
        first, second: Win rate where the model is shown first, and second.
        shown_first: Share of its comparisons in which it is shown first.
        comparisons: Replies about it, of which `unread` name neither answer and no tie.
    """

    model: str
    score: Estimate
    rank: int
    best_rank: int
    worst_rank: int
    certainly_above: tuple[str, ...]
    first: float
    second: float
    shown_first: float
    comparisons: int
    unread: int


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Ranking of models.

    Attributes:
        models: Best first.
        baseline: Model that the others are compared with; None if all pairs are.
        position_effect: Win rate shown first minus win rate shown second, mean over models.
        certain: Share of pairs of models whose order is certain.
        changed_if_first, changed_if_second: Models on the other side of 50% if always shown so.
        questions, comparisons, unread: Counts.
        warnings: What limits the scores, in sentences.
    """

    models: tuple[Standing, ...]
    baseline: str | None
    position_effect: Estimate
    certain: float
    changed_if_first: int
    changed_if_second: int
    questions: int
    comparisons: int
    unread: int
    warnings: tuple[str, ...] = ()


def rank_models(compared: Comparisons, *, baseline: str | None = None, seed: int = 0) -> Ranking:
    """Rank models by their win rates, mean of both sides.

    Args:
        compared: Verdicts; at least two questions and two models.
        baseline: Use only comparisons with this model; None for the one that is in all of them, if any.
        seed: Of the draws behind joint intervals.

    Raises:
        ItemError: If scores are not determined: too few models or questions, models that share no question or
            were never compared, or that each stood on one side.
        UnknownNameError: If there is no such baseline.
    """
    if np.isnan(compared.wins).all():
        raise ItemError("no verdict could be read. Check the prompt, or how the replies are read.")
    shown = compared.counts().sum(axis=0)
    if baseline is None and len(compared.models) > 2 and shown.max() == len(compared.wins):
        baseline = compared.models[int(shown.argmax())]
    if baseline is not None and baseline not in compared.models:
        raise UnknownNameError(
            f"no comparison with {baseline!r}. {did_you_mean(baseline, compared.models)}"
        )
    if len(compared.models) < 2:
        raise ItemError(
            f"{plural(len(compared.models), 'model')} to rank. Give comparisons of at least 2 models."
        )
    if compared.rows(~np.isnan(compared.wins)).questions < 2:
        raise ItemError(
            "all comparisons that could be read are about 1 question. Give items of several questions their own prompt or unit."
        )
    fit = between(compared) if baseline is None else against(compared, baseline)
    return _ranking(fit, baseline, seed)


def _ranking(fit: WinRates, baseline: str | None, seed: int) -> Ranking:
    fit = replace(fit, entries=np.round(fit.entries, 12))
    compared, entries = fit.compared, fit.entries
    m, names = len(compared.models), compared.models
    over = _over(fit, seed) if fit.own is None else _over_apart(fit, baseline)
    value = np.round(entries.mean(axis=0), 9)  # rounding makes no ranks
    counts, unread = compared.counts(), compared.counts(np.isnan(compared.wins)).sum(axis=0)
    read = compared.counts(~np.isnan(compared.wins))
    shown_first = counts[0] / counts.sum(axis=0)
    asked = compared.questions_of(~np.isnan(compared.wins))
    standings = [
        Standing(
            model=name,
            score=Estimate(value=0.5, n=len(entries), by_construction=True)
            if name == baseline
            else score_estimate(fit.of(place), int(asked[place]))
            if baseline is not None
            else rare_estimate(fit.sides[:, place], read[:, place], len(entries))
            or score_estimate(entries[:, place], int(asked[place])),
            rank=1 + int((value > value[place]).sum()),
            best_rank=1 + int(over[:, place].sum()),
            worst_rank=m - int(over[place].sum()),
            certainly_above=tuple(itertools.compress(names, over[place])),
            first=float(fit.sides[0, place]),
            second=float(fit.sides[1, place]),
            shown_first=float(shown_first[place]),
            comparisons=int(counts[:, place].sum()),
            unread=int(unread[place]),
        )
        for place, name in enumerate(names)
    ]
    changed = ((fit.sides > 0.5) != (value > 0.5)).sum(axis=1)
    return Ranking(
        models=tuple(sorted(standings, key=lambda own: (own.rank, own.model))),
        baseline=baseline,
        position_effect=paired_difference(np.round(fit.effect, 12), span=1.0),
        certain=float(over.sum() / (m * (m - 1) / 2)),
        changed_if_first=int(changed[0]),
        changed_if_second=int(changed[1]),
        questions=len(entries),
        comparisons=len(compared.wins),
        unread=int(np.isnan(compared.wins).sum()),
        warnings=(*fit.warnings, *_uneven(standings, baseline)),
    )


def _over(fit: WinRates, seed: int) -> BoolArray:
    """Return which models are certainly above which, (M, M), by joint intervals of their differences."""
    names = fit.compared.models
    contrasts = Contrasts(values=fit.entries, names=names, seed=seed)
    critical = contrasts.critical()
    over: BoolArray = np.zeros((len(names), len(names)), np.bool_)
    for a, b in itertools.combinations(range(len(names)), 2):
        apart = contrasts.difference(names[a], names[b], critical)
        if apart.low is not None and apart.high is not None and apart.low * apart.high > 0:
            over[(a, b) if apart.low > 0 else (b, a)] = True
    return over


def _over_apart(fit: WinRates, baseline: str | None) -> BoolArray:
    """Return the same for models on questions of their own, which are few for some: from the score of each,
    with an interval at 5% over all pairs (Bonferroni), distances added in squares as in `rare_estimate`.
    """
    names, asked = fit.compared.models, fit.compared.questions_of(~np.isnan(fit.compared.wins))
    tail = TAIL / (len(names) * (len(names) - 1) / 2)
    ends = np.full((3, len(names)), 0.5)
    for place, name in enumerate(names):
        if name != baseline:
            own = score_estimate(fit.of(place), int(asked[place]), tail)
            ends[:, place] = own.low or 0.0, own.value or 0.0, own.high or 0.0
    low, value, high = ends
    reach = np.hypot((value - low)[:, None], high - value)
    return np.asarray(value[:, None] - value > reach + 1e-12, dtype=np.bool_)


def _uneven(standings: Sequence[Standing], baseline: str | None) -> list[str]:
    """Warn if models differ in how often they were shown first."""
    ordered = sorted((own.shown_first, own.model) for own in standings if own.model != baseline)
    (least, seldom), (most, often) = ordered[0], ordered[-1]
    if most - least <= UNEVEN:
        return []
    return [
        f"sides differ by model: {often} was shown first in {most:.0%} of its comparisons, {seldom} in "
        f"{least:.0%}. Plain win rates would mix quality with position. {REMEDY}"
    ]


def score_estimate(entries: FloatArray, n: int, tail: float = TAIL) -> Estimate:
    """Estimate a rate from its entries, one per question, shape (Q,): on the logit scale, or exactly where
    few questions differ from 0 or 1. A model was asked `n` of the questions; its interval leaves `tail` out on each side.

    Entries that vary less than a rate does count as more. Two further questions that vary as a rate does allow for the
    uncertainty of that variance.
    """
    value = float(np.clip(entries.mean(), 0.0, 1.0))
    apart = np.round(entries - entries.mean(), 12)
    room = value * (1.0 - value)
    size = len(entries)
    effective = (
        room * size * (size + 2) / (size * float(apart.var(ddof=1)) + 2 * room)
        if apart.any()
        else 0.0
    )
    if room == 0.0 or not apart.any():
        low, high = alike_interval(value, n, (0.0, 1.0), tail)
    elif min(value, 1.0 - value) * effective < FEW:
        low, high = exact_interval(value, effective, (0.0, 1.0), tail)
    else:
        critical = NORMAL * student(size, tail) / student(size)
        mean = paired_difference(apart, span=np.inf, critical=critical)
        assert mean.low is not None
        assert mean.high is not None
        centre, reach = np.log(value / (1.0 - value)), (mean.high - mean.low) / 2 / room
        low, high = (float(1.0 / (1.0 + np.exp(-centre - side))) for side in (-reach, reach))
    return Estimate(value=value, low=low, high=high, n=n)


def rare_estimate(sides: FloatArray, read: NDArray[np.intp], questions: int) -> Estimate | None:
    """Estimate a score between all pairs if few verdicts go against their side of the display; else None.

    A judge that nearly always takes the first gives entries that hardly vary, whatever the models. So each side
    has the exact interval of a verdict per question, and the distances of their ends are added in squares
    (Zou and Donner 2008, Statistics in Medicine 27, 1693).

    Args:
        sides: Win rates shown first and second, shape (2,).
        read: Verdicts on each side, shape (2,).
        questions: Their number.
    """
    if float((np.minimum(sides, 1.0 - sides) * read).sum()) >= FEW:
        return None
    limits = (0.0, 1.0)
    ends = [
        exact_interval(float(rate), float(min(count, questions)), limits)
        for rate, count in zip(sides, read, strict=True)
    ]
    low, high = (np.linalg.norm(np.array(ends).T - sides, axis=1) / 2).tolist()
    value = round(float(sides.mean()), 12)
    return Estimate(
        value=value, low=max(0.0, value - low), high=min(1.0, value + high), n=questions
    )
