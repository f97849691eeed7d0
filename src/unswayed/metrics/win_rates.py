"""Win rates of models on pairs of their answers, as means over questions of what each question adds.

Against a baseline, a score is `(mu_1 + mu_2) / 2` over the two sides of the display, each `mu_s` a mean over
questions; its variance is `(s_1^2 / n_1 + s_2^2 / n_2) / 4` if each question shows one side. Between all pairs
it is the mean, over the other models and both sides, of the win rate that Bradley-Terry predicts: `logit
P(first wins) = theta_first - theta_second + delta`, ridge .01. If all pairs are shown in both orders, the
equations of the fit make it the observed win rate.

Source: Bradley and Terry (1952), Biometrika 39, 324; the order as in Davidson and Beaver (1977), Biometrics
33, 693.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ItemError
from unswayed.model.decisions import BoolArray, FloatArray

RIDGE: Final = 0.01
"""Factor of the squares of theta and delta that are subtracted from the log-likelihood."""

REMEDY: Final = "Ask in both orders, or show each model first in half of the questions."
_SEPARATE: Final = "the position cannot be separated from the models"


@dataclass(frozen=True, eq=False, slots=True)
class Comparisons:
    """Verdicts on pairs of models, N rows.

    Attributes:
        models: Names, in any order.
        question: Number of the question of each row, shape (N,).
        first, second: Number of the model shown first, and second; shape (N,).
        wins: 1 if the first is called better, 0 if the second, .5 for a tie, NaN if unread; shape (N,).
    """

    models: tuple[str, ...]
    question: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    wins: FloatArray

    def rows(self, chosen: BoolArray) -> Comparisons:
        """Return some of the rows, with the models and questions that occur in them."""
        shown = np.stack([self.first[chosen], self.second[chosen]])
        kept, places = np.unique(shown, return_inverse=True)
        first, second = places.reshape(shown.shape)
        question = np.unique(self.question[chosen], return_inverse=True)[1]
        models = tuple(self.models[model] for model in kept)
        return Comparisons(models, question, first, second, self.wins[chosen])

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.question.max(initial=-1)) + 1

    def counts(self, chosen: BoolArray | None = None) -> NDArray[np.intp]:
        """Count rows, or some of them, that a model is shown in, first and second; shape (2, M)."""
        m, rows = len(self.models), slice(None) if chosen is None else chosen
        return np.stack(
            [np.bincount(side[rows], minlength=m) for side in (self.first, self.second)]
        )

    def questions_of(self, chosen: BoolArray) -> NDArray[np.intp]:
        """Count the questions that some of the rows ask of each model, shape (M,)."""
        both = np.stack([self.first, self.second])[:, chosen]
        asked = np.zeros((len(self.models), self.questions), dtype=np.bool_)
        asked[both, self.question[chosen]] = True
        return np.asarray(asked.sum(axis=1), dtype=np.intp)


@dataclass(frozen=True, eq=False, slots=True)
class WinRates:
    """Scores of M models over Q questions, with what each question adds."""

    compared: Comparisons  # the rows behind them
    entries: FloatArray  # mean over questions is the score; shape (Q, M)
    effect: FloatArray  # the same of the position effect, shape (Q,)
    sides: FloatArray  # win rates shown first and second, shape (2, M)
    warnings: tuple[str, ...] = ()
    own: BoolArray | None = None  # the questions of each model, (Q, M), if they are not the same

    def of(self, place: int) -> FloatArray:
        """Return what each of its questions adds to the score of a model."""
        entries = self.entries[:, place]
        if self.own is None:
            return entries
        kept, centre = self.own[:, place], entries.mean()
        return np.asarray(centre + (entries[kept] - centre) * kept.mean())


def against(compared: Comparisons, baseline: str) -> WinRates:
    """Score models against one, on the questions that all answered; each on its own if these are few (under half)."""
    base = compared.models.index(baseline)
    whole = len(compared.models)
    compared = compared.rows((compared.first == base) | (compared.second == base))
    told = []
    if missing := whole - len(compared.models):
        told.append(f"{plural(missing, 'model')} never compared with {baseline} left out.")
    base = compared.models.index(baseline)
    model = np.where(compared.first == base, compared.second, compared.first)
    asked = np.zeros((len(compared.models), compared.questions), dtype=np.bool_)
    asked[model, compared.question] = True
    asked[base] = True
    common: BoolArray = np.array(asked.all(axis=0), dtype=np.bool_)
    left = int((~common).sum())
    least, word = 2, "two"  # times that a model is shown on each side
    usual = float(np.median(np.delete(asked.sum(axis=1), base)))
    apart = bool(left) and compared.questions - left < max(2.0, usual / 2)
    if apart:
        least, word = 5, "five"
        told.append(
            f"The models share {plural(compared.questions - left, 'question')}, so each is scored on its "
            "own: scores also depend on the questions, unless these were drawn at random."
        )
    elif left:
        told.append(
            f"{plural(left, 'question')} {agrees(left, 'is', 'are')} left out, because not all models "
            f"answered {agrees(left, 'it', 'them')}."
        )
        chosen = common[compared.question]
        compared, model = compared.rows(chosen), model[chosen]
    shape = (2, len(compared.models), compared.questions)
    side = (compared.first == base).astype(np.intp)
    cell = np.ravel_multi_index((side, model, compared.question), shape)
    won = np.where(compared.first == base, 1.0 - compared.wins, compared.wins)
    read = ~np.isnan(won)
    size = int(np.prod(shape))
    count = np.bincount(cell[read], minlength=size).reshape(shape)
    total = np.bincount(cell[read], won[read], minlength=size).reshape(shape)
    held = count > 0
    number = held.sum(axis=2)
    number[:, base] = least
    lone = np.flatnonzero((number < least).any(axis=0))
    if len(lone) + 1 == len(compared.models):
        raise ItemError(
            f"{_SEPARATE}: each was shown fewer than {word} times on one side. {REMEDY}"
        )
    if len(lone):
        names = ", ".join(compared.models[place] for place in lone)
        told.append(f"{names}: shown fewer than {word} times on one side and left out. {REMEDY}")
        rest = against(compared.rows(~np.isin(model, lone)), baseline)
        return replace(rest, warnings=(*told, *rest.warnings))
    rates = np.where(held, total / np.maximum(count, 1), 0.0)
    means = rates.sum(axis=2) / number
    means[:, base] = 0.5
    added = np.where(held, rates - means[..., None], 0.0) * (shape[2] / number[..., None])
    others = np.arange(shape[1]) != base
    effect = (means[0] - means[1] + (added[0] - added[1]).T)[:, others].mean(axis=1)
    own = np.asarray(held.any(axis=0).T) if apart else None
    entries = means.mean(axis=0) + added.mean(axis=0).T
    return WinRates(compared, entries, effect, means, tuple(told), own)


def _check_determined(models: tuple[str, ...], design: FloatArray) -> None:
    """Check that all models were compared, and on both sides; a row of the design is a pair, (P, M + 1)."""
    from scipy.sparse.csgraph import connected_components

    met = np.abs(design[:, :-1])
    parts, part_of = connected_components(met.T @ met, directed=False)
    if parts > 1:
        apart = [models[int((part_of == part).argmax())] for part in (0, 1)]
        raise ItemError(
            f"{apart[0]} and {apart[1]} were never compared, not even through other models. Judge pairs that "
            "link them, or rank some of the models with --baseline."
        )
    if np.linalg.matrix_rank(design) < len(models):
        raise ItemError(f"{_SEPARATE}: no model was shown on both sides. {REMEDY}")


def between(compared: Comparisons) -> WinRates:
    """Score models against each other by Bradley-Terry with the order as a covariate."""
    from scipy.special import expit

    m, read = len(compared.models), ~np.isnan(compared.wins)
    first, second, wins = compared.first[read], compared.second[read], compared.wins[read]
    pairs, pair = np.unique(first * m + second, return_inverse=True)
    design = np.zeros((len(pairs), m + 1))
    for places, sign in ((pairs // m, 1.0), (pairs % m, -1.0), (m, 1.0)):
        design[np.arange(len(pairs)), places] = sign
    _check_determined(compared.models, design)
    played, won = np.bincount(pair).astype(float), np.bincount(pair, wins)
    strengths, ridge = np.zeros(m + 1), np.full(m + 1, 2 * RIDGE)
    for _ in range(200):
        odds = expit(design @ strengths)
        gradient = design.T @ (won - played * odds) - ridge * strengths
        weights = played * odds * (1.0 - odds)
        curvature = (design * weights[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        strengths += step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-10:
            break
    residual = wins - expit(design @ strengths)[pair]
    question = np.unique(compared.question[read], return_inverse=True)[
        1
    ]  # without a reply: no entry
    scores = np.zeros((int(question.max()) + 1, m + 1))
    for places, sign in ((first, 1.0), (second, -1.0), (np.full_like(first, m), 1.0)):
        np.add.at(scores, (question, places), sign * residual)
    influence = (scores - scores.mean(axis=0)) @ np.linalg.inv(curvature) * len(scores)
    gaps, own = strengths[:m, None] - strengths[:m], ~np.eye(m, dtype=bool)
    sides = np.stack([expit(gaps + strengths[m]), expit(gaps - strengths[m])]) * own
    slopes = sides * (1.0 - sides)
    both, apart = slopes.sum(axis=0) / 2, slopes[0] - slopes[1]
    to_scores = np.column_stack([np.diag(both.sum(axis=1)) - both, apart.sum(axis=1) / 2]) / (m - 1)
    to_effect = np.append(apart.sum(axis=1) - apart.sum(axis=0), 2 * both.sum()) / (m * (m - 1))
    rates = sides.sum(axis=2) / (m - 1)
    entries = rates.mean(axis=0) + influence @ to_scores.T
    effect = float((rates[0] - rates[1]).mean()) + influence @ to_effect
    return WinRates(compared, entries, effect, rates)
