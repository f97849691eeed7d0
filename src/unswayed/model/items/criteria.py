"""Items with several criteria, taken apart: one item for each, which share everything but the gold.

They are asked in one prompt: what is sent is the same for all of them, so that it is sent once. In
files of decisions they have the id of the item and the name of the criterion; in memory the id of a
criterion is made of both, so that whoever tells items apart by their id tells criteria apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from unswayed.base.errors import ItemError
from unswayed.model.items.item import Item, Task, suffix
from unswayed.model.items.sets import ItemSet


def by_criterion(items: Iterable[Item]) -> Iterator[Item]:
    """Items, those with criteria once for each of them; taken apart again they stay as they are.

    An item without a group of its own is in the group of its criterion. Its gold is the number of
    the criterion, None where that is not given.
    """
    for item in items:
        if not item.criteria or item.criterion is not None:
            yield item
            continue
        given = item.gold if isinstance(item.gold, dict) else {}
        for criterion in item.criteria:
            yield msgspec.structs.replace(
                item,
                id=item.id + suffix(criterion),
                task=Task.CRITERIA,
                criterion=criterion,
                gold=given.get(criterion),
                group=criterion if item.group is None else item.group,
            )


def expanded(items: ItemSet) -> ItemSet:
    """Return the set with its criteria taken apart, under the same name; itself where there are none."""
    if not any(item.criteria and item.criterion is None for item in items.items):
        return items
    with_criteria = sum(bool(item.criteria) for item in items.items)
    if with_criteria < len(items):
        raise ItemError(
            f"{items.name}: {with_criteria} of {len(items)} items have criteria. Give every item "
            "at least one criterion, or move the others to a separate file."
        )
    return ItemSet.of(
        by_criterion(items), name=items.name, bad_lines=items.bad_lines, origin=items.origin
    )
