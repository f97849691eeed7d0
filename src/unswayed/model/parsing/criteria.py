"""Reply about several criteria -> the label of each: `{"coherence": "B", "fluency": "A"}`.

Also read are: the object inside another one (`{"labels": {…}}`), an object per criterion
(`{"coherence": {"label": "B", "reason": "…"}}`), a list of such with a "criterion", numbers for
labels that are numbers, and names in another case or with other signs. Which objects count, and
that they must agree, is as for listwise replies (`listwise`). A criterion that is not named, or of
which two different things are said, is missing; the others are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from unswayed.model.parsing.listwise import closed, own_replies
from unswayed.model.parsing.listwise_json import Json, JsonList, JsonObject
from unswayed.model.parsing.listwise_objects import ListObject, plain
from unswayed.model.parsing.places import alone
from unswayed.model.parsing.symbols import NO_LABEL, Symbols, straighten, symbols_of

_LABEL: Final = "label"
_LABELS: Final = frozenset(("label", "level", "grade", "rating", "score", "answer"))
_NAMES: Final = frozenset(("criterion", "name"))
_WRAPPERS: Final = frozenset(
    (*(f"{name}s" for name in _LABELS), "criteria", "evaluation", "result", "results")
)


def criterion_key(name: str) -> str:
    """Return the name of a criterion without case, spaces and signs."""
    return plain(name) or name


def read_criteria(
    text: str,
    labels: Sequence[str],
    criteria: Sequence[str],
    *,
    quoted: Iterable[str] = (),
) -> tuple[int | None, ...]:
    """Return the label of each criterion, as its index in the set; None where it is missing.

    >>> read_criteria('{"Fluency": "b", "coherence": "maybe"}', "AB", ["coherence", "fluency"])
    (None, 1)
    """
    symbols = symbols_of(labels)
    places = {criterion_key(name): place for place, name in enumerate(criteria)}

    def read(root: JsonObject | JsonList) -> ListObject:
        labels = [(place, _label_of(value, symbols)) for place, value in _named(root, places)]
        marks = [(place, _LABEL, None if label == NO_LABEL else label) for place, label in labels]
        return ListObject([*marks], [])

    said: dict[int, set[float | bool | None]] = {}
    for reply in own_replies(text, symbols, read, tuple(quoted)):
        for place, _, label in reply.marks:
            said.setdefault(place, set()).add(label)
    labels_by_place = [said.get(place, set()) for place in range(len(criteria))]
    only = [next(iter(own)) if len(own) == 1 else None for own in labels_by_place]
    return tuple(None if label is None else int(label) for label in only)


def _named(node: Json, places: dict[str, int]) -> Iterator[tuple[int, Json]]:
    """Yield the value behind each criterion's name, with its place."""
    if isinstance(node, JsonList):
        for entry in node.values:
            if isinstance(entry, JsonObject):
                names = [value for key, value in entry.pairs if plain(key) in _NAMES]
                if len(names) == 1 and isinstance(names[0], str):
                    if (place := places.get(criterion_key(names[0]))) is not None:
                        yield place, entry
                else:
                    yield from _named(entry, places)
    elif isinstance(node, JsonObject):
        for key, value in node.pairs:
            place = places.get(criterion_key(key))
            if place is not None:
                yield place, value
            elif plain(key) in _WRAPPERS:
                yield from _named(value, places)


def _label_of(value: Json, symbols: Symbols) -> int:
    if isinstance(value, JsonObject):
        values = [own for key, own in value.pairs if plain(key) in _LABELS]
        value = values[0] if len(values) == 1 and value.is_whole else None
    if isinstance(value, str):
        return alone(straighten(value), symbols)
    return symbols.index(str(value)) if type(value) is int else NO_LABEL


def criteria_schema(labels: Sequence[str], criteria: Sequence[str]) -> str:
    """Return the JSON schema of the object, as text, with the criteria in displayed order."""
    label = {"type": "string", "enum": list(labels)}
    return json.dumps(closed(dict.fromkeys(criteria, label)))
