"""Reading decision tables: by label, what is missing, and putting verdicts together.

The candidates of a table are those of the view it is seen through; the labels and positions that
bias acts on are those really shown (`table.shown`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions import (
    ABSTAINED,
    MISSING,
    TIE,
    UNPARSED,
    BoolArray,
    DecisionTable,
    FloatArray,
    IntArray,
    VerdictTable,
    sd_of_rows,
    value_of_choices,
)
from unswayed.model.permutations import Order, invert

EPSILON: Final = 1e-10
"""Added to probabilities before a logarithm (PriDe's released code uses the same)."""

TOLERANCE: Final = 1e-9
"""Corrected scores closer than this are tied: far above rounding, far below any effect."""


def labels_by_candidate(table: DecisionTable, column: int) -> Order:
    """Label that each candidate of the table carried in a column, shape (n,)."""
    real = table.shown[column].labels_by_candidate()
    return real if table.outer is None else tuple(real[c] for c in table.outer)


def positions_by_candidate(table: DecisionTable, column: int) -> Order:
    """Position at which each candidate of the table stood in a column, shape (n,)."""
    real = invert(table.shown[column].order)
    return real if table.outer is None else tuple(real[c] for c in table.outer)


def probs_of(table: DecisionTable, column: int) -> FloatArray:
    """Probabilities by candidate of one column, shape (I, n); NaN where unknown or partial."""
    if table.probs is None:
        return np.full((len(table), table.n), np.nan)
    probs: FloatArray = table.probs[:, column]
    partial: BoolArray = np.asarray(np.isnan(probs).any(axis=1), dtype=np.bool_)
    return np.where(partial[:, None], np.nan, probs) if partial.any() else probs


def probs_by_label(table: DecisionTable, column: int) -> FloatArray:
    """Probabilities by label of one column, shape (I, n); NaN where unknown or partial."""
    return probs_of(table, column)[:, list(invert(labels_by_candidate(table, column)))]


def log_probs_by_label(table: DecisionTable, column: int) -> FloatArray:
    """log(p + 1e-10) by label of one column, shape (I, n); NaN where unknown."""
    return np.log(probs_by_label(table, column) + EPSILON)


def softmax(scores: FloatArray) -> FloatArray:
    """exp(scores) normalised over the last axis; NaN rows stay NaN."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: FloatArray = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def margin(values: FloatArray) -> FloatArray:
    """Difference of the largest and the second largest value, over the last axis."""
    ordered = np.sort(values, axis=-1)
    return ordered[..., -1] - ordered[..., -2]


def agreement(choices: IntArray, cells: BoolArray) -> NDArray[np.int8]:
    """1 where all decisions read agree, 0 where not, -1 for fewer than two; shape (I,).

    Tie agrees with tie; an unparsed answer agrees with nothing.
    """
    if choices.shape[1] < 2:
        return np.full(len(choices), -1, dtype=np.int8)
    read = cells & (choices != MISSING)
    first = np.take_along_axis(choices, read.argmax(axis=1)[:, None], axis=1)
    same = ((choices == first) | ~read).all(axis=1) & (first[:, 0] != UNPARSED)
    return np.where(read.sum(axis=1) < 2, -1, same).astype(np.int8)


def plurality(counts: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the most voted candidate; equal counts are a tie, and so is a plurality of declared ties.

    Args:
        counts: Votes, shape (I, n + 1): n candidates, then declared ties.

    Returns:
        Choices (candidate, TIE, or UNPARSED without any vote), shape (I,), and the tied
        candidates, shape (I, n).
    """
    votes, ties = counts[:, :-1], counts[:, -1:]
    top = votes.max(axis=1, keepdims=True)
    leaders: BoolArray = ((votes == top) | (ties >= top)) & (top + ties > 0)
    choices = choices_of(leaders)
    return choices, leaders & (choices == TIE)[:, None]


def choices_of(leaders: BoolArray) -> IntArray:
    """Return the leader of each row: TIE where there are several, UNPARSED without any; (I, n) -> (I,)."""
    choices: IntArray = leaders.argmax(axis=1).astype(np.int16)
    count = leaders.sum(axis=1)
    choices[count > 1] = TIE
    choices[count == 0] = UNPARSED
    return choices


def verdict_table(
    table: DecisionTable,
    choices: IntArray,
    *,
    cells: BoolArray | None = None,
    scores: FloatArray | None = None,
    tied: BoolArray | None = None,
    confidence: FloatArray | None = None,
    consistent: NDArray[np.int8] | None = None,
    score: FloatArray | None = None,
    parts: Mapping[str, FloatArray] | None = None,
) -> VerdictTable:
    """Put a method's results together; rows with a missing call become MISSING.

    Args:
        table: The table decided on.
        choices: Candidate, TIE, UNPARSED or ABSTAINED, shape (I,).
        cells: Cells read, shape (I, T); default: all that may be asked.
        scores: By candidate, shape (I, n).
        tied: Tied candidates, shape (I, n).
        confidence: Of the choice, shape (I,), or by candidate, (I, n); default: scores.
        consistent: Shape (I,); default: agreement of the answers in `cells`.
        score: Score of the response, shape (I,); default, where levels have values: the value of
            the chosen level, of tied ones the mean; NaN for a declared tie, which names none.
        parts: What `scores` are made of, by name, shape (I, n) each.
    """
    rows = len(table)
    cells = table.allowed if cells is None else cells
    read = (cells & (table.choices != MISSING)).sum(axis=1, dtype=np.int32)
    missing = read < np.maximum(cells.sum(axis=1), 1)
    choices = choices.astype(np.int16)
    choices[missing] = MISSING
    named, declared = choices >= 0, choices == TIE
    silent = ~(named | declared | (choices == ABSTAINED))
    if scores is not None and silent.any():
        scores = np.where(silent[:, None], np.nan, scores)
    if confidence is None:
        confidence = np.full(rows, np.nan) if scores is None else scores
    if confidence.ndim == 2:
        confidence = confidence[np.arange(rows), np.maximum(choices, 0)]
    if tied is None:
        tied = np.zeros((rows, table.n), dtype=np.bool_)
    if consistent is None:
        consistent = agreement(table.choices, cells)
    tied = tied & declared[:, None]
    if table.values is not None and score is None:
        score = value_of_choices(choices[:, None], table.values, tied[:, None])[:, 0]
        nameless = ((table.choices == TIE) & cells).any(axis=1) & tied.all(axis=1)
        score = np.where(nameless, np.nan, score)
    return VerdictTable(
        choices=choices,
        tied=tied,
        scores=scores,
        confidence=np.where(named, confidence, np.nan),
        consistent=consistent,
        n_calls=read,
        score=score if score is None else np.where(missing, np.nan, score),
        sd=None
        if table.values is None
        else sd_of_rows(value_of_choices(np.where(cells, table.choices, UNPARSED), table.values)),
        parts={
            name: np.where(silent[:, None], np.nan, values)
            for name, values in (parts or {}).items()
        },
    )
