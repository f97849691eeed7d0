"""Values of records by path: `choices.text`, `responses[0].text`, JSON in a cell opened."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from unswayed.model.items.tables import fields_of

Record = Mapping[str, Any]

_PLACE: Final = re.compile(r"\[(\d+)\]")


def at(record: Record, path: str) -> Any:
    """Return the value at a path such as `choices.text` or `responses[0].text`, None without one.

    A name that exists as it is goes first; JSON in a cell is opened.
    """
    if path in record:
        return record[path]
    value: Any = record
    for part in parts_of(path):
        value = opened(value)
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def parts_of(path: str) -> list[str]:
    """Return the names and places of a path."""
    return _PLACE.sub(r".\1", path).split(".")


def divided(text: str, sign: str) -> list[str]:
    """Return the parts of a text between single signs; a doubled sign is the sign itself.

    >>> divided("a,b,,c", ",")
    ['a', 'b,c']
    """
    single = re.escape(sign)
    parts = re.split(rf"(?<!{single}){single}(?!{single})", text)
    return [part.replace(sign * 2, sign) for part in parts]


def opened(value: Any) -> Any:
    """Return the value of a cell of JSON, an array as a list, and anything else as it is."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def candidates_in(record: Record, paths: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return the candidates of a record and their symbols: those of the layout, else letters."""
    if not paths:
        cells = list(fields_of(record).get("candidates") or ())  # type: ignore[call-overload]
    elif len(paths) > 1:
        cells = [at(record, path) for path in paths]
    else:
        value = opened(at(record, paths[0]))
        if isinstance(value, Mapping) and "text" not in value:
            return list(value.values()), list(map(str, value))
        texts, labels = (value, None)
        if isinstance(value, Mapping):
            texts, labels = opened(value["text"]), opened(value.get("label"))
        cells, symbols = [
            list(own) if isinstance(own, Sequence) and not isinstance(own, str) else []
            for own in (texts, labels)
        ]
        if len(symbols) == len(cells):
            return cells, list(map(str, symbols))
    return cells, [chr(ord("A") + place) for place in range(len(cells))]


def is_missing(value: object) -> bool:
    """Return True for None, an empty text, NaN and what pandas has for it."""
    is_nan = isinstance(value, float) and value != value
    if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, str) and not value
