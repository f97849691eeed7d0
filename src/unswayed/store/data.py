"""Which data a run directory belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from unswayed.errors import RunDirectoryError
from unswayed.items import Item, encode_item

__all__ = ["check_same_data", "what_is_asked"]


def what_is_asked(item: Item) -> bytes:
    """Hash of what calls can depend on: the item without gold, group and meta, 32 bytes."""
    asked = msgspec.structs.replace(item, gold=None, group=None, meta={})
    return hashlib.sha256(encode_item(asked)).digest()


def check_same_data(
    stored: Mapping[str, bytes], asked: Mapping[str, bytes], *, name: str, directory: str
) -> None:
    """Check that the same data have only grown or shrunk (`--limit`).

    Args:
        stored: `what_is_asked` of the items in the run directory, by id.
        asked: The same of the items of this run.
        name: Name of this run's data, for the message.
        directory: The run directory, for the message.

    Raises:
        RunDirectoryError: If an item has changed, or each side has items that the other lacks.
    """
    shared = stored.keys() & asked.keys()
    changed = sorted(item_id for item_id in shared if stored[item_id] != asked[item_id])
    if changed:
        raise RunDirectoryError(
            f"{directory} holds calls on other data: item {changed[0]!r} of {name} has changed "
            f"since ({len(changed)} of {len(shared)} changed). Give another --out."
        )
    if len(shared) < min(len(stored), len(asked)):
        raise RunDirectoryError(
            f"{directory} holds calls on other data: {len(shared)} of its {len(stored)} items are "
            f"among the {len(asked)} of {name}. Give another --out."
        )
