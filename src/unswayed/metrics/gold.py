"""Gold of items as arrays: right candidates and human scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions import BoolArray, FloatArray
from unswayed.model.items import Item
from unswayed.model.tasks import task_of

GOLD_NONE: Final = 0
GOLD_ONE: Final = 1
GOLD_SEVERAL: Final = 2
GOLD_TIE: Final = 3


def gold_of(items: Sequence[Item], n: int) -> tuple[BoolArray, NDArray[np.int8]]:
    """Return the right candidates, shape (I, n), and the kind of gold of each item, shape (I,)."""
    readers = {task: task_of(task).gold for task in {item.task for item in items}}
    right = [readers[item.task](item) for item in items]
    counts = np.fromiter(map(len, right), dtype=np.intp, count=len(right))
    gold = np.zeros((len(items), n), dtype=np.bool_)
    rows = np.arange(len(items)).repeat(counts)
    gold[rows, np.fromiter(chain.from_iterable(right), dtype=np.intp, count=len(rows))] = True
    kind = np.minimum(counts, GOLD_SEVERAL).astype(np.int8)  # none, one, several
    if not counts.all():
        ties = [item.gold == "tie" for item in items]
        kind[(counts == 0) & np.array(ties, dtype=np.bool_)] = GOLD_TIE
    return gold, kind


def human_of(items: Sequence[Item]) -> FloatArray | None:
    """Return the scores that people gave, NaN where unknown, shape (I,); None if there are none."""
    if all(task_of(name).human is None for name in {item.task for item in items}):
        return None
    said = [item.human_score() for item in items]
    human = np.array([np.nan if own is None else own for own in said])
    return None if np.isnan(human).all() else human
