"""Contributions of items to a weighted metric: leaving them out in turn makes it a mean, so that differences
have the intervals of means.

With G groups of items, theta(-g) the value without group g, the entries theta + (G - 1) (mean of all
theta(-g) - theta(-g)) have mean theta, and the standard error of their mean is the jackknife's. Up
to 400 items are left out one by one; of more, every 400th together, which costs the same for any
number and loses nothing but a few percent of the precision of the standard error.

Source: Tukey (1958), Annals of Mathematical Statistics 29, 614; Quenouille (1956) for the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from unswayed.base.errors import ShapeError
from unswayed.metrics.metric import Metric, OfWeights
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import FloatArray
from unswayed.model.decisions.clusters import Clusters

GROUPS: Final = 400
"""Groups of items that are left out in turn."""

_ENTRIES: Final = 1 << 18
"""Weights that are held at a time: 2 MB."""


def in_blocks(rows: int, items: int) -> list[tuple[int, int]]:
    """Blocks of rows of weights, (first, end), that fit the cache."""
    size = max(1, _ENTRIES // max(items, 1))
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def jackknife(value: OfWeights, items: int, clusters: Clusters | None = None) -> FloatArray:
    """Entries whose mean is the value of prepared outcomes, one per group of their items, shape
    (min(I, 400),), or of their clusters; all NaN where the value, or one without a group, is
    undefined.
    """
    group = (np.arange(items) if clusters is None else clusters.of_item) % GROUPS
    groups = min(items if clusters is None else clusters.count, GROUPS)
    without = np.empty(groups)
    for start, end in in_blocks(groups, items):
        weights = (group[None, :] != np.arange(start, end)[:, None]).astype(np.float64)
        without[start:end] = value(weights)
    whole = float(value(np.ones((1, items)))[0])
    entries: FloatArray = whole + (groups - 1) * (without.mean() - without)
    entries -= entries.mean() - whole  # what rounding took off the mean
    return entries


def jackknifed(metric: Metric, sides: Sequence[Outcomes]) -> tuple[FloatArray, int, int]:
    """Return the entries of several methods under a weighted metric, shape (G, M), and the numbers of
    items that count for every method and of distinct questions among them: the others are left out.
    """
    prepare = metric.weighted
    if prepare is None:
        raise ShapeError(f"{metric.title} is a function of sums")
    sides = [side.each for side in sides]
    counted = [metric.statistics(side)[:, 0] > 0 for side in sides]
    rows = np.flatnonzero(np.logical_and.reduce(counted))
    if not len(rows):
        return np.zeros((0, len(sides))), 0, 0
    kept = sides[0].rows(rows)
    clusters = None if kept.clusters is None else kept.clusters.alone()
    columns = [jackknife(prepare(side.rows(rows)), len(rows), clusters) for side in sides]
    units = len(rows) if clusters is None else clusters.count
    return np.column_stack(columns), len(rows), units
