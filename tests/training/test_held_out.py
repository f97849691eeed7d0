"""What is followed on held-out items is what an audit would say of them."""

import pytest

from unswayed.decisions import Decision
from unswayed.items import Item, Task
from unswayed.training.held_out import figures


def test_figures_of_held_out_items_are_those_of_an_audit() -> None:
    items = [
        Item(id=name, task=Task.PAIRWISE, prompt="?", candidates=("x", "y"), gold=0)
        for name in ("kept", "flipped", "unread")
    ]
    decisions = [
        Decision(
            item_id=item.id, order=order, labels=("A", "B"), label_set=("A", "B"), choice=choice
        )
        for item, choices in zip(items, ((0, 0), (0, 1), (None, None)), strict=True)
        for order, choice in zip(((0, 1), (1, 0)), choices, strict=True)
    ]
    found = {key: value for key, value in figures(items, decisions).items() if "/" not in key}
    # right in 2, 1 and 0 of 2; an answer that could not be read agrees with nothing
    assert found == {
        "items": 3,
        "accuracy": pytest.approx(0.5),
        "consistency": pytest.approx(1 / 3),
        "unparsed": pytest.approx(1 / 3),
    }
