"""Outcomes of two methods, or of two runs, side by side: the items that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.patterns import unique_rows

_CELLS = 1 << 40
"""Largest number of joint patterns; above it, patterns are numbered again."""


def paired_by_item(a: Sequence[Outcomes], b: Sequence[Outcomes]) -> list[tuple[Outcomes, Outcomes]]:
    """Return the items that both sides have, in the order of `a`, per number of candidates."""
    of_b = {outcomes.n: outcomes for outcomes in b}
    pairs = []
    for left in a:
        right = of_b.get(left.n)
        if right is None:
            continue
        if left.item_ids == right.item_ids:
            pairs.append((left, right))
            continue
        row_of_id = {item: row for row, item in enumerate(right.item_ids)}
        common = [(i, row_of_id[x]) for i, x in enumerate(left.item_ids) if x in row_of_id]
        if common:
            index = np.array(common, dtype=np.intp)
            pairs.append((left.rows(index[:, 0]), right.rows(index[:, 1])))
    return pairs


def jointly(sides: Sequence[Outcomes]) -> tuple[Outcomes, ...]:
    """Outcomes of several methods about the same items, with one row per joint answer pattern.

    Whatever the answers say, of each method and of differences between them, is the same as of the
    items; continuous quantities and clusters are left out.
    """
    joint = np.zeros(len(sides[0]), dtype=np.int64)
    size = 1
    for side in sides:  # numbers of joint patterns, kept dense so that they never overflow
        own, kinds = side.patterns[1], len(side.patterns[0])
        if size * kinds > _CELLS:
            joint = np.unique(joint, return_inverse=True)[1].reshape(-1)
            size = int(joint.max(initial=0)) + 1
        joint, size = joint * kinds + own, size * kinds
    _, first, joint = np.unique(joint, return_index=True, return_inverse=True)
    codes = np.column_stack([side.patterns[1][first] for side in sides])
    order, kind = unique_rows(codes.astype(np.int64))
    weights = np.bincount(kind[joint.reshape(-1)], weights=sides[0].weights, minlength=len(order))
    rows = first[order]
    ids = tuple(map(str, range(len(rows))))
    return tuple(
        replace(side.categorical().rows(rows), item_ids=ids, weights=weights.astype(np.int64))
        for side in sides
    )
