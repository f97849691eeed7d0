"""Outcomes of two methods, or of two runs, side by side: the items that both have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unswayed.metrics.outcomes import Outcomes

__all__ = ["paired_by_item"]


def paired_by_item(a: Sequence[Outcomes], b: Sequence[Outcomes]) -> list[tuple[Outcomes, Outcomes]]:
    """The items that both sides have, in the order of `a`, per number of candidates."""
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
