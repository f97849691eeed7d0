"""Asking a judge about nothing: content-free questions and the label prior they reveal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unswayed.methods.priors import LabelPrior
from unswayed.methods.protocol import Layouts
from unswayed.methods.sets import label_layouts
from unswayed.methods.tables import EPSILON, labels_by_candidate, probs_of
from unswayed.model.decisions import DecisionTable, FloatArray
from unswayed.model.items import Item
from unswayed.model.permutations import invert
from unswayed.model.presentation import Ask, Presentation, Substitution


def plan_content_free(
    items: Sequence[Item],
    substitutions: Callable[[Sequence[Item]], Sequence[Substitution]],
    layouts: Layouts,
) -> list[tuple[Item, Ask]]:
    """List content-free stand-ins of the items, each asked once for all items with that number of candidates."""
    strata: dict[int, list[Item]] = {}
    for item in items:
        strata.setdefault(item.n, []).append(item)
    return [
        (same[0], ask)
        for n, same in sorted(strata.items())
        for ask in content_free_asks(n, substitutions(same), layouts)
    ]


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
    count = np.zeros(len(table))
    for column in columns:
        by_label = probs_of(table, column)[:, list(invert(labels_by_candidate(table, column)))]
        read = ~np.isnan(by_label).any(axis=1)
        total[read] += by_label[read]
        count += read
    total[count == 0] = np.nan
    mean: FloatArray = np.maximum(total / np.maximum(count, 1)[:, None], EPSILON)
    result: FloatArray = mean / mean.sum(axis=1, keepdims=True)
    return result


def content_free_priors(table: DecisionTable, columns: Sequence[int]) -> tuple[LabelPrior, ...]:
    """Return the prior of one label sequence, from one row of content-free answers; empty without any."""
    values = mean_by_label(table, columns)[0]
    if np.isnan(values).any():
        return ()
    count = sum(not np.isnan(probs_of(table, column)[0]).any() for column in columns)
    layout = table.shown[columns[0]].labels
    return (LabelPrior(table.n, layout, tuple(map(float, values)), count, units=count),)
