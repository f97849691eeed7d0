"""Items: what is judged. JSON Lines, JSON arrays, tables or records in, frozen records out."""

from __future__ import annotations

from unswayed.items.criteria import by_criterion, expanded
from unswayed.items.files import READ_ERRORS, iter_lines, iter_objects, open_text, read_table
from unswayed.items.item import (
    TASKS,
    TOO_DEEP,
    BadLine,
    Gold,
    Item,
    ItemSet,
    Message,
    Task,
    Text,
    blind,
    check_item,
    decode_item,
    encode_item,
    fingerprint,
    item_of,
    question_mark,
    suffix,
    text_of,
    texts_of,
    to_json,
    turns_of,
)
from unswayed.items.loading import items_of, load_items
from unswayed.items.tables import BadFieldError, is_table

__all__ = [
    "READ_ERRORS",
    "TASKS",
    "TOO_DEEP",
    "BadFieldError",
    "BadLine",
    "Gold",
    "Item",
    "ItemSet",
    "Message",
    "Task",
    "Text",
    "blind",
    "by_criterion",
    "check_item",
    "decode_item",
    "encode_item",
    "expanded",
    "fingerprint",
    "is_table",
    "item_of",
    "items_of",
    "iter_lines",
    "iter_objects",
    "load_items",
    "open_text",
    "question_mark",
    "read_table",
    "suffix",
    "text_of",
    "texts_of",
    "to_json",
    "turns_of",
]
