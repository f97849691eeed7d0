"""Asking a judge about nothing: content-free questions and the label prior they reveal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unswayed.decisions import DecisionTable, FloatArray
from unswayed.methods.priors import LabelPrior
from unswayed.methods.protocol import Layouts
from unswayed.methods.sets import label_layouts
from unswayed.methods.tables import EPSILON, labels_by_candidate, probs_of
from unswayed.permutations import invert
from unswayed.presentation import Ask, Presentation, Substitution

__all__ = ["content_free_asks", "content_free_priors", "mean_by_label"]


def content_free_asks(
    n: int, substitutions: Sequence[Substitution], layouts: Layouts
) -> tuple[Ask, ...]:
    """Each substitution under each label sequence, candidates in their own order."""
    own = tuple(range(n))
    return tuple(
        Ask(Presentation(own, layout), substitute=substitution)
        for layout in label_layouts(n, layouts)
        for substitution in substitutions
    )


def mean_by_label(table: DecisionTable, columns: Sequence[int]) -> FloatArray:
    """Mean probability by label over some columns, renormalised, shape (I, n).

    Columns without probabilities are left out; NaN where none has any. Floor 1e-10.
    """
    total = np.zeros((len(table), table.n))
    known = np.zeros(len(table))
    for column in columns:
        by_label = probs_of(table, column)[:, list(invert(labels_by_candidate(table, column)))]
        read = ~np.isnan(by_label).any(axis=1)
        total[read] += by_label[read]
        known += read
    total[known == 0] = np.nan
    mean: FloatArray = np.maximum(total / np.maximum(known, 1)[:, None], EPSILON)
    result: FloatArray = mean / mean.sum(axis=1, keepdims=True)
    return result


def content_free_priors(table: DecisionTable) -> tuple[LabelPrior, ...]:
    """The prior of every label sequence asked about, from one row of content-free answers."""
    priors = []
    for layout in dict.fromkeys(shown.labels for shown in table.shown):
        columns = [c for c, shown in enumerate(table.shown) if shown.labels == layout]
        values = mean_by_label(table, columns)[0]
        if not np.isnan(values).any():
            known = [c for c in columns if not np.isnan(probs_of(table, c)[0]).any()]
            priors.append(LabelPrior(table.n, layout, tuple(map(float, values)), len(known)))
    return tuple(priors)
