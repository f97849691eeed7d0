"""Choices by level and position."""

from __future__ import annotations

import numpy as np
import pytest

from unswayed.base.errors import ShapeError
from unswayed.metrics import level_choices
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.recorded import outcomes_of
from unswayed.model.decisions import MISSING, TIE, UNPARSED, DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask, presentations


def outcomes(*rows: tuple[tuple[float, ...], list[int], bool]) -> tuple[Outcomes, np.ndarray]:
    """Items of three levels under the three rotations: values, choices, permutable."""
    items = tuple(
        Item(
            id=f"q{row}",
            task=Task.RUBRIC,
            prompt="?",
            response="r",
            candidates=("x", "y", "z"),
            values=values,
            permutable=permutable,
        )
        for row, (values, _, permutable) in enumerate(rows)
    )
    shown = presentations("cyclic", 3)
    table = DecisionTable(
        items=items,
        asks=tuple(Ask(presentation) for presentation in shown),
        shown=shown,
        label_set=("A", "B", "C"),
        choices=np.array([choices for _, choices, _ in rows], dtype=np.int16),
    )
    assert table.values is not None
    return outcomes_of(items, table), table.values


def test_levels_are_ordered_by_value_and_positions_by_display() -> None:
    # rotations xyz, yzx, zxy; the second item lists its levels from the highest
    own, values = outcomes(
        ((1.0, 2.0, 3.0), [0, 1, 2], True),  # always the first position
        ((30.0, 20.0, 10.0), [2, 2, 2], True),  # always the lowest level
    )
    chosen, shown = level_choices(own, values)
    # item 0: levels 0, 1, 2 at position 0; item 1: level 0 at positions 2, 1, 0
    assert chosen.tolist() == [[2, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert shown.tolist() == [[2, 2, 2]] * 3


def test_what_names_no_level_is_in_no_cell_and_takes_no_exposure() -> None:
    own, values = outcomes(
        ((1.0, 2.0, 3.0), [0, UNPARSED, TIE], True),
        ((1.0, 2.0, 3.0), [0, MISSING, MISSING], False),  # its order never changes
    )
    chosen, shown = level_choices(own, values)
    assert chosen.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert shown.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_the_choices_add_up_to_those_of_the_positions() -> None:
    own, values = outcomes(((3.0, 1.0, 2.0), [1, 1, 0], True), ((1.0, 2.0, 3.0), [2, 0, 2], True))
    chosen, _ = level_choices(own, values)
    by_position = own.counts_by(own.positions_by_candidate).sum(axis=0)
    assert chosen.sum(axis=0).tolist() == by_position.tolist()


def test_values_of_other_items_are_refused() -> None:
    own, values = outcomes(((1.0, 2.0, 3.0), [0, 1, 2], True))
    with pytest.raises(ShapeError, match=r"values has shape \(2, 3\), expected \(1, 3\)"):
        level_choices(own, np.vstack([values, values]))
    with pytest.raises(ShapeError, match="without values"):
        level_choices(own, np.full((1, 3), np.nan))
