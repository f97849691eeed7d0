"""Places of an item's criterion among criteria that are asked together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unswayed.model.decisions.codes import IntArray
from unswayed.model.items import Item
from unswayed.model.presentation import Ask


def criterion_places(items: Sequence[Item], asks: Sequence[Ask]) -> IntArray | None:
    """Return the place of each item's criterion in each question, -1 where it is alone; shape (I, T).

    None if no item has a criterion.
    """
    if all(item.criterion is None for item in items):
        return None
    places = np.full((len(items), len(asks)), -1, dtype=np.int16)
    for row, item in enumerate(items):
        criteria = item.criteria or ()
        if item.criterion in criteria:
            own = criteria.index(item.criterion)
            orders = [ask.criteria_order(len(criteria)) for ask in asks]
            places[row] = [order.index(own) if own in order else own for order in orders]
    return places
