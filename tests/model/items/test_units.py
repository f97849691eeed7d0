"""What counts once: a unit that is given, a question, or an item whose text asks nothing."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.base.errors import ItemError
from unswayed.model.items import (
    Item,
    ItemSet,
    Task,
    by_criterion,
    decode_item,
    question_mark,
    unit_of,
    units_of,
)
from unswayed.model.items.item import PLACEHOLDER_ITEMS, PLACEHOLDER_LENGTH

TEXTS = st.sampled_from(["", "x", "why?", "a question of more than forty characters, as real ones"])
ITEMS = st.lists(
    st.builds(
        lambda prompt, a, b, unit, copies: [(prompt, (a, b), unit)] * copies,
        TEXTS,
        TEXTS,
        TEXTS,
        st.sampled_from([None, None, None, "u1", "u2"]),
        st.integers(1, PLACEHOLDER_ITEMS + 2),
    ),
    min_size=1,
    max_size=6,
).map(
    lambda groups: [
        Item(id=f"i{at}", prompt=prompt, candidates=candidates, unit=unit)
        for at, (prompt, candidates, unit) in enumerate(one for group in groups for one in group)
    ]
)


def expected(items: list[Item], item: Item) -> str:
    """The three rules of the format, read one after the other."""
    if item.unit is not None:
        return item.unit
    if not (item.prompt and all(item.candidates)):
        return item.id
    mark = question_mark(item)
    alike = [own for own in items if own.unit is None and question_mark(own) == mark]
    is_short = sum(map(len, (item.prompt, *item.candidates))) < PLACEHOLDER_LENGTH
    return item.id if is_short and len(alike) >= PLACEHOLDER_ITEMS else mark


@settings(max_examples=40)
@given(ITEMS)
def test_units_follow_the_three_rules_whatever_the_set(items: list[Item]) -> None:
    units, warning = units_of(items)
    assert units == tuple(expected(items, item) for item in items)
    counted = sum(one != unit_of(item) for one, item in zip(units, items, strict=True))
    assert (warning is None) == (counted == 0)
    assert warning is None or warning.startswith(f"{counted} items have ")
    assert units_of(items[::-1])[0] == units[::-1]


def alike(prompt: str, **fields: object) -> list[Item]:
    item = Item(id="s", prompt=prompt, **{"candidates": ("x", "y"), **fields})  # type: ignore[arg-type]
    return [msgspec.structs.replace(item, id=f"i{at}") for at in range(300)]


SCALE = {"task": Task.RUBRIC, "candidates": ("1", "2"), "values": (1, 2)}


def test_many_items_of_one_short_text_count_by_themselves() -> None:
    own = ItemSet.of(alike("(recorded)"), name="set")
    assert own.units == tuple(item.id for item in own)
    assert own.counted[1] == (
        '300 items have the same text "(recorded) x y": taken for a placeholder, so every item '
        'counts by itself. Give items a "unit" to say otherwise.'
    )


@pytest.mark.parametrize(
    "items",
    [
        alike("Which of the two answers is the better one?"),
        alike("Rate", **SCALE, response="A story of more than forty characters, told at length."),
    ],
)
def test_many_items_of_one_long_text_are_one_unit(items: list[Item]) -> None:
    assert units_of(items) == ((unit_of(items[0]),) * 300, None)


def test_criteria_share_the_unit_of_their_item() -> None:
    names = tuple(f"c{at}" for at in range(PLACEHOLDER_ITEMS + 1))
    item = alike("Rate", **SCALE, response="A story.", criteria=names)[0]
    units, warning = units_of(by_criterion([item]))
    assert (set(units), warning) == ({unit_of(item)}, None)
    given = msgspec.structs.replace(item, unit="story")
    assert set(units_of(by_criterion([given]))[0]) == {"story"}


@pytest.mark.parametrize(
    ("unit", "said"), [("", "unit: empty; leave it out"), (3, "unit: Expected text, got `int`")]
)
def test_a_wrong_unit_is_told_alike_in_files_and_python(unit: str, said: str) -> None:
    given = {"id": "a", "prompt": "p", "candidates": ("x", "y"), "unit": unit}
    for make in (lambda: Item(**given), lambda: decode_item(json.dumps(given))):
        with pytest.raises(ItemError) as raised:
            make()
        assert str(raised.value) == said
