"""The mean value of the levels that answers name, every level shown at every position alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.methods.estimation import warn_of
from unswayed.methods.tables import (
    TOLERANCE,
    choices_of,
    labels_by_candidate,
    positions_by_candidate,
    verdict_table,
)
from unswayed.methods.voting import count_votes, shares_of
from unswayed.model.decisions import (
    MISSING,
    BoolArray,
    DecisionTable,
    FloatArray,
    VerdictTable,
    leaders_of,
    value_of_choices,
)

FEWEST: Final = 1e-12
"""Weight below which a place was shown in no answer that was read: sums of weights are larger."""


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
                "these scores are means over the others, and not balanced."
            )
    total = shares.sum(axis=1)
    given = np.where(read, value_of_choices(choices, values), 0.0)
    mean = np.where(total > 0, (shares * given).sum(axis=1) / np.maximum(total, FEWEST), np.nan)
    distance = np.abs(values - mean[:, None])
    span = values.max(axis=1) - values.min(axis=1)
    nearest = leaders_of(-distance, TOLERANCE * span[:, None])
    verdict = choices_of(nearest)
    _, probable = shares_of(table, count_votes(choices, cells, table.n, weight), weight)
    return verdict_table(
        table,
        verdict,
        scores=-distance,
        tied=nearest,
        confidence=probable[np.arange(len(table)), np.maximum(verdict, 0)],
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
