"""Counting answers, averaging probabilities and averaging levels over the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.methods.estimation import warn_of
from unswayed.methods.tables import (
    EPSILON,
    TOLERANCE,
    choices_of,
    labels_by_candidate,
    plurality,
    positions_by_candidate,
    softmax,
    verdict_table,
)
from unswayed.model.decisions import (
    MISSING,
    SCORE,
    TIE,
    BoolArray,
    DecisionTable,
    Evidence,
    FloatArray,
    IntArray,
    VerdictTable,
    argmax_by_tie_rule,
    leaders_of,
    value_of_choices,
)
from unswayed.model.tasks import task_of

SCORE_TOLERANCE: Final = 1e-6
"""Scores, of 0 to 100, that are tied: far above rounding, far below any step a judge takes."""

FEWEST: Final = 1e-12
"""Weight below which a place was shown in no answer that was read: sums of weights are larger."""


def count_votes(choices: IntArray, cells: BoolArray, n: int, weights: FloatArray) -> FloatArray:
    """Votes for the n candidates and for "tie", shape (I, n + 1); unparsed answers do not vote."""
    codes = np.array([*range(n), TIE], dtype=np.int16)[:, None, None]
    # a matrix product would hold all masks as numbers
    votes: FloatArray = np.einsum("kit,t->ik", (choices == codes) & cells, weights)
    return votes


def mean_probs(table: DecisionTable, cells: BoolArray, weights: FloatArray) -> FloatArray:
    """Weighted mean probability by candidate over the cells read, shape (I, n).

    NaN where one of the cells has no or partial probabilities: a mean over what is left would no
    longer be balanced.
    """
    if table.probs is None:
        return np.full((len(table), table.n), np.nan)
    return mean_by_candidate(table.probs, cells, weights)


def mean_by_candidate(values: FloatArray, cells: BoolArray, weights: FloatArray) -> FloatArray:
    """Weighted mean by candidate of values (I, T, n) over the cells read, shape (I, n).

    NaN for all candidates where a value of a cell is unknown.
    """
    total = np.zeros((len(values), values.shape[2]))
    for column, weight in enumerate(weights):
        read = cells[:, column]
        part = weight * values[:, column]
        total += part if read.all() else np.where(read[:, None], part, 0.0)
    share = cells @ weights
    mean: FloatArray = total / np.where(share, share, np.nan)[:, None]
    mean[np.isnan(mean).any(axis=1)] = np.nan
    return mean


def log_mean_by_candidate(probs: FloatArray, cells: BoolArray, weights: FloatArray) -> FloatArray:
    """Softmax of the weighted mean of log(p + 1e-10) over the cells read, (I, T, n) -> (I, n).

    A probability of 0 in one order therefore counts as 1e-10 and does not decide alone.
    """
    logs = np.log(probs + EPSILON)
    total = np.where(cells[:, :, None], logs * weights[None, :, None], 0.0).sum(axis=1)
    return softmax(total / np.maximum(cells @ weights, 1.0)[:, None])


def decide_by_answer(table: DecisionTable) -> VerdictTable:
    """Decide by the answer in the only column; a declared tie is one of all candidates.

    Scores are the call's own numbers, which say more than its choice: what it rated every candidate
    with, or else its probabilities, or else 1 for the candidate named. Of a declared tie those are
    tied that were rated highest, where several were. Confidence is the probability of the
    candidate named, or else 1.
    """
    choices = table.choices[:, 0]
    probable = (choices[:, None] == np.arange(table.n)).astype(np.float64)
    if table.probs is not None:
        probs = table.probs[:, 0]
        probable = np.where(np.isnan(probs).any(axis=1, keepdims=True), probable, probs)
    scores, tied = probable, np.ones(probable.shape, dtype=np.bool_)
    if SCORE in table.ratings:
        rated = table.ratings[SCORE][:, 0]
        partial: BoolArray = np.asarray(np.isnan(rated).any(axis=1), dtype=np.bool_)
        scores = np.where(partial[:, None], scores, rated)
        best = leaders_of(rated, SCORE_TOLERANCE)
        tied = best | (best.sum(axis=1, keepdims=True) < 2)
    return verdict_table(table, choices, scores=scores, tied=tied, confidence=probable)


def decide_by_vote(table: DecisionTable, weights: Sequence[float] | None = None) -> VerdictTable:
    """Return the plurality of the answers in all columns; one answer is taken as it is.

    Equal counts are a TIE with the set of tied candidates. Confidence is the mean probability of
    the chosen candidate where all calls have probabilities, else its share of the calls read.
    """
    if len(table.asks) == 1:
        return decide_by_answer(table)
    weight = np.ones(len(table.asks)) if weights is None else np.asarray(weights, dtype=float)
    counts = count_votes(table.choices, table.allowed, table.n, weight)
    verdict, tied = plurality(counts)
    shares, probable = shares_of(table, counts, weight)
    return verdict_table(table, verdict, scores=shares, tied=tied, confidence=probable)


def shares_of(
    table: DecisionTable, counts: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shares of the calls read by candidate, and mean probabilities where all calls have them, else
    those shares; (I, n) each.
    """
    read = (table.allowed & (table.choices != MISSING)) @ weights
    shares = counts[:, :-1] / np.maximum(read, 1.0)[:, None]
    probs = mean_probs(table, table.allowed, weights)
    return shares, np.where(np.isnan(probs), shares, probs)


def decide_by_average(
    table: DecisionTable, weights: Sequence[float] | None = None, *, logit: bool = False
) -> VerdictTable:
    """Return the highest mean probability (or mean log probability), or mean score, over all columns.

    Rows where a call read has no or partial probabilities are UNPARSED. Where levels have values
    the score is their expectation under the mean probabilities.
    """
    weight = np.ones(len(table.asks)) if weights is None else np.asarray(weights, dtype=float)
    cells = table.allowed
    gives = task_of(table.items[0].task).gives if table.items else frozenset()
    if SCORE in table.ratings and Evidence.PROBS not in gives:
        return decide_by_score(table, mean_by_candidate(table.ratings[SCORE], cells, weight))
    probs = mean_probs(table, cells, weight)
    scores = probs
    if logit and table.probs is not None:
        scores = log_mean_by_candidate(table.probs, cells, weight)
        scores[np.isnan(probs)] = np.nan
    verdict = argmax_by_tie_rule(scores, table, tolerance=TOLERANCE)
    score = None if table.values is None else (probs * table.values).sum(axis=1)
    return verdict_table(table, verdict, scores=scores, confidence=probs, score=score)


def decide_by_score(
    table: DecisionTable,
    scores: FloatArray,
    *,
    tolerance: float = SCORE_TOLERANCE,
    parts: Mapping[str, FloatArray] | None = None,
) -> VerdictTable:
    """Decide by the highest score by candidate, (I, n); candidates within the tolerance of it are a TIE, a
    row with NaN is UNPARSED.

    Confidence is the chosen candidate's share of the answers read; `parts` are what the scores are
    made of.
    """
    tied = leaders_of(scores, tolerance)
    each = np.ones(len(table.asks))
    shares, _ = shares_of(table, count_votes(table.choices, table.allowed, table.n, each), each)
    return verdict_table(
        table, choices_of(tied), scores=scores, tied=tied, confidence=shares, parts=parts
    )


def values_of(table: DecisionTable, name: str) -> FloatArray:
    """Return the values of the levels by candidate, shape (I, n)."""
    values = table.values
    if values is not None and not np.isnan(values).any():
        return values
    row = 0 if values is None else int(np.isnan(values).any(axis=1).argmax())
    raise MethodError(
        f"{table.items[row].id}: {name} needs the values of the levels. Give items of the task "
        "rubric with `values`."
    )


def decide_by_mean_value(
    table: DecisionTable, name: str, weights: Sequence[float] | None = None
) -> VerdictTable:
    """Return the mean value of the answers in all columns; the level nearest to it is chosen.

    Two levels equally near are a TIE. Answers that name no level (unread, a declared tie) are left
    out, and the others weigh so that every level counts as often at every position as in the whole
    set (`exposure_weights`). Scores are distances from the mean, negative; confidence is as in
    `vote`.
    """
    values = values_of(table, name)
    weight = np.ones(len(table.asks)) if weights is None else np.asarray(weights, dtype=float)
    cells, choices = table.allowed, table.choices
    read = cells & (choices >= 0)
    answered = cells & (choices != MISSING)
    lost = (answered & ~read).any(axis=1) & (answered == cells).all(axis=1)
    shares = np.where(read, weight, 0.0)
    if lost.any():
        shares[lost], uneven = exposure_weights(table, lost, read, weight)
        if uneven.any():
            warn_of(
                f"{name}: answers that name no level leave some levels unseen at some positions; "
                "these scores are means over the remaining positions and are not balanced."
            )
    total = shares.sum(axis=1)
    given = np.where(read, value_of_choices(choices, values), 0.0)
    mean = np.where(total > 0, (shares * given).sum(axis=1) / np.maximum(total, FEWEST), np.nan)
    distance = np.abs(values - mean[:, None])
    span = values.max(axis=1) - values.min(axis=1)
    nearest = leaders_of(-distance, TOLERANCE * span[:, None])
    _, probable = shares_of(table, count_votes(choices, cells, table.n, weight), weight)
    return verdict_table(
        table,
        choices_of(nearest),
        scores=-distance,
        tied=nearest,
        confidence=probable,
        score=mean,
    )


def exposure_weights(
    table: DecisionTable, rows: BoolArray, read: BoolArray, weight: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Weights of the answers read under which a level counts at a place as in the whole set, (R, T)
    for the R rows concerned, and whether a level was never seen at a place that the set shows it
    at, (R,).

    A place is a position with the label that stands there. An answer that names level s at a place
    weighs (answers of the set that show s there) / (answers read that do): what is left of a place
    stands for all of it, as chosen / shown does in a rate. `read` is of shape (I, T), `weight`
    (T,).
    """
    columns, n = range(len(table.asks)), table.n
    position = np.array([positions_by_candidate(table, column) for column in columns])
    label = np.array([labels_by_candidate(table, column) for column in columns])
    place = position * n + label
    same = (place[:, None, :] == place[None, :, :]).astype(float)  # (T, T, n)
    whole = np.einsum("u,tuc->tc", weight, same)
    left = np.einsum("ru,tuc->rtc", np.where(read[rows], weight, 0.0), same)
    uneven: BoolArray = (left < FEWEST).any(axis=(1, 2)) & read[rows].any(axis=1)
    named = np.maximum(table.choices[rows], 0).astype(np.intp)[:, :, None]
    seen = np.take_along_axis(left, named, axis=2)[:, :, 0]
    full = np.take_along_axis(np.broadcast_to(whole, left.shape), named, axis=2)[:, :, 0]
    return np.where(read[rows], weight * full / np.maximum(seen, FEWEST), 0.0), uneven
