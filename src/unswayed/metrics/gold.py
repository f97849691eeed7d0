"""What people said of items: the right candidates and scores, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.decisions import BoolArray, FloatArray
from unswayed.items import Item, by_kind, of_kinds
from unswayed.tasks import task_of

__all__ = ["GOLD_NONE", "GOLD_ONE", "GOLD_SEVERAL", "GOLD_TIE", "gold_of", "human_of"]

GOLD_NONE: Final = 0
GOLD_ONE: Final = 1
GOLD_SEVERAL: Final = 2
GOLD_TIE: Final = 3


def gold_of(items: Sequence[Item], n: int) -> tuple[BoolArray, NDArray[np.int8]]:
    """The right candidates, shape (I, n), and the kind of gold of each item, shape (I,)."""
    right = of_kinds(items, Item.gold_candidates)
    gold = np.zeros((len(items), n), dtype=np.bool_)
    gold[
        [row for row, named in enumerate(right) for _ in named],
        [candidate for named in right for candidate in named],
    ] = True
    return gold, np.array(of_kinds(items, _kind)).astype(np.int8)


def _kind(item: Item) -> int:
    right = item.gold_candidates()
    if right:
        return GOLD_ONE if len(right) == 1 else GOLD_SEVERAL
    return GOLD_TIE if item.gold == "tie" else GOLD_NONE


def human_of(items: Sequence[Item]) -> FloatArray | None:
    """The scores that people gave, NaN where unknown, shape (I,); None if there are none."""
    if all(task_of(name).human is None for name in {item.task for item in by_kind(items)}):
        return None
    said = of_kinds(items, Item.human_score)
    human = np.array([np.nan if own is None else own for own in said])
    return None if np.isnan(human).all() else human
