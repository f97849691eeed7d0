"""Records with rows of `metrics.json` in them, as JSON and back."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from unswayed.metrics.rows import decode_row, encode_row

T = TypeVar("T")


def as_json(record: object) -> Any:
    """Return a record as `json` writes it and reads it again; not-a-number never appears in it."""
    plain = msgspec.to_builtins(record, str_keys=True, enc_hook=encode_row)
    return json.loads(json.dumps(plain, allow_nan=False))


def converted(record: object, kind: type[T]) -> T:
    """Return a record from plain values; keys that it does not have are left out."""
    return msgspec.convert(record, kind, str_keys=True, dec_hook=decode_row)
