"""Which model and data a run directory belongs to, and its items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from unswayed.errors import ItemError, RunDirectoryError, StoreError
from unswayed.items import Item, ItemSet, decode_item, encode_item
from unswayed.store.database import NOTE, Database

AT_ONCE: Final = 2_000


def bind(database: Database, model: str, items: ItemSet) -> None:
    """Tie a run directory to a model and its data; see `CallStore.bind`."""
    bound = database.noted("model")
    if bound is not None and bound != model:
        raise RunDirectoryError(
            f"{database.directory} holds calls of model {bound!r}, not {model!r}. "
            "Give another --out."
        )
    if bound is not None and _holds(database, items):
        return
    asked = {item.id: _what_is_asked(item) for item in items}
    stored: dict[str, bytes] = dict(database.rows("SELECT id, asked FROM items"))
    _check_same_data(stored, asked, name=items.name, directory=database.directory)
    with database.transaction() as connection:
        connection.execute("UPDATE items SET place = NULL")
        connection.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET place = excluded.place, json = excluded.json",
            (
                (item.id, place, asked[item.id], encode_item(item))
                for place, item in enumerate(items)
            ),
        )
        connection.executemany(
            NOTE, [("model", model), ("data", items.name), ("fingerprint", items.fingerprint)]
        )


def bound_items(database: Database) -> ItemSet:
    """The items of the latest run; see `CallStore.items`."""
    rows = database.rows("SELECT json FROM items WHERE place IS NOT NULL ORDER BY place")
    if not rows:
        raise RunDirectoryError(f"{database.directory} holds no items: no run was made in it.")
    try:
        kept = (decode_item(row) for (row,) in rows)
        items = ItemSet.of(kept, name=database.noted("data") or "")
    except ItemError as error:
        raise StoreError(f"the items in {database.directory} are damaged ({error}).") from None
    if items.fingerprint != database.noted("fingerprint"):
        raise StoreError(
            f"the items in {database.directory} are damaged: their fingerprint has changed. Run "
            "the audit again in it: recorded calls are not made again."
        )
    return items


def _holds(database: Database, items: ItemSet) -> bool:
    """Whether the file has these very items under their name, none of them damaged."""
    if (database.noted("data"), database.noted("fingerprint")) != (items.name, items.fingerprint):
        return False
    whole, last, count = hashlib.sha256(), 0, 0
    sql = (
        "SELECT rowid, place, json FROM items WHERE rowid > ? AND place IS NOT NULL ORDER BY rowid"
    )
    while rows := database.rows(f"{sql} LIMIT {AT_ONCE}", (last,)):
        last = rows[-1][0]
        for _, place, line in rows:
            if place != count or not isinstance(line, bytes):
                return False  # an earlier run had them in another order
            whole.update(line)
            whole.update(b"\n")
            count += 1
    return f"sha256:{whole.hexdigest()}" == items.fingerprint


def _what_is_asked(item: Item) -> bytes:
    """Hash of what calls can depend on: the item without gold, group and meta, 32 bytes."""
    asked = msgspec.structs.replace(item, gold=None, group=None, meta={})
    return hashlib.sha256(encode_item(asked)).digest()


def _check_same_data(
    stored: Mapping[str, bytes], asked: Mapping[str, bytes], *, name: str, directory: str
) -> None:
    """Check that the same data have only grown or shrunk (`--limit`), by item id."""
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
