"""Read one object of a listwise reply: its labels and their order.

The contract is `{"candidates": {"A": {"score": 73, "rationale": "…", "major_error": false,
"hallucinated_specificity": false, "calibrated_uncertainty": true}, …}, "ranking": ["B", "A", …]}`.
Also read are: candidates as a list of objects with a "label" (or "candidate"), as objects without the
key around them, as bare scores; keys like "Answer A"; scores like "73/100"; flags as "yes"; a ranking
like "B > A" or of objects. A candidate that was not closed says nothing, nor does such a ranking.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from unswayed.model.parsing.listwise_json import Json, JsonList, JsonObject
from unswayed.model.parsing.places import alone
from unswayed.model.parsing.symbols import NO_LABEL, Symbols, straighten

SCORE: Final = "score"
FLAGS: Final = ("major_error", "hallucinated_specificity", "calibrated_uncertainty")
"""What is said of a candidate beside its score."""

_NAMES: Final = ("label", "candidate")
_FIELDS: Final = {name.replace("_", ""): name for name in (SCORE, *FLAGS)}
_TRUTH: Final = {"true": True, "yes": True, "false": False, "no": False}
_SCORE_TEXT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,20})?)(?:\s{0,3}/\s{0,3}100)?")
_NO_LETTER: Final = re.compile(r"[\W_]+")
_NOUN: Final = re.compile(
    r"\A\s*(?:answer|assistant|candidate|model|option|output|response)\s+", re.IGNORECASE
)
_BETTER: Final = re.compile(r">+|≻|,")
_LONGEST: Final = 4_000


class ListObject(NamedTuple):
    """Content of one object in order; anything may occur twice."""

    # label, name (`SCORE` or one of `FLAGS`) and value; None for one that cannot be read
    marks: list[tuple[int, str, float | bool | None]]
    # each ranking that was closed; None for one that does not order all labels
    rankings: list[tuple[int, ...] | None]
    is_part: bool = False  # the object has keys of a candidate itself

    @property
    def answers(self) -> bool:
        """True if it is about these labels."""
        return bool(self.marks or any(self.rankings))

    def saying(self) -> tuple[frozenset[object], frozenset[object]]:
        """All that it says, whatever the order."""
        return frozenset(self.marks), frozenset(self.rankings)


def reply_of(root: JsonObject | JsonList, symbols: Symbols) -> ListObject:
    """Read an object, or a list of candidates."""
    if isinstance(root, JsonList):
        reply = ListObject([], [])
        _read_candidates(root, symbols, reply)
        return reply
    reply = ListObject([], [], is_part=any(plain(key) in _FIELDS for key, _ in root.pairs))
    is_wrapped = False
    for key, value in root.pairs:
        if plain(key) == "candidates":
            is_wrapped = True
            _read_candidates(value, symbols, reply)
        elif plain(key) == "ranking":
            _read_ranking(value, symbols, reply)
    if not is_wrapped:
        for key, value in root.pairs:
            if isinstance(value, JsonObject) and _fields(value, SCORE):
                _read_candidate(_label(key, symbols), value, reply)
    return reply


def _read_candidates(candidates: Json, symbols: Symbols, reply: ListObject) -> None:
    if isinstance(candidates, JsonObject):
        for key, value in candidates.pairs:
            label = _label(key, symbols)
            if _named(value, symbols)[0] in (NO_LABEL, label):
                _read_candidate(label, value, reply)
    elif isinstance(candidates, JsonList):
        for value in candidates.values:
            label, names = _named(value, symbols)
            if isinstance(value, JsonObject) and len(value.pairs) == 1 and not any(names):
                name, value = value.pairs[0]  # [{"A": {…}}, {"B": {…}}]
                label = _label(name, symbols)
            _read_candidate(label, value, reply)


def _read_candidate(label: int, value: Json, reply: ListObject) -> None:
    if not isinstance(value, JsonObject):
        value = JsonObject([(SCORE, value)], is_whole=True)
    if label == NO_LABEL or not value.is_whole:
        return
    for key, said in value.pairs:
        mark = _FIELDS.get(plain(key))
        if mark is not None and said is not None:
            reading = _score_of(said) if mark == SCORE else _flag_of(said)
            reply.marks.append((label, mark, reading))


def _score_of(said: Json) -> float | None:
    """Return a score from 0 to 100."""
    if isinstance(said, str):
        match = _SCORE_TEXT.fullmatch(straighten(said.strip())) if len(said) < 80 else None
        said = None if match is None else float(match[1])
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 100:
        return None
    return float(said) + 0.0  # not -0.0


def _flag_of(said: Json) -> bool | None:
    if isinstance(said, str):
        return _TRUTH.get(said.strip().casefold()) if len(said) < 80 else None
    return said if isinstance(said, bool) else None


def _read_ranking(value: Json, symbols: Symbols, reply: ListObject) -> None:
    if isinstance(value, JsonObject | JsonList) and not value.is_whole:
        return
    n = len(symbols.labels)
    ranking: tuple[int, ...] = ()
    if isinstance(value, JsonList) and len(value.values) == n:
        ranking = tuple(
            _place(entry, place, symbols) for place, entry in enumerate(value.values, 1)
        )
    elif isinstance(value, str) and len(value) <= _LONGEST:
        ranking = tuple(_label(part, symbols) for part in _BETTER.split(straighten(value)))
    reply.rankings.append(ranking if sorted(ranking) == list(range(n)) else None)


def _place(entry: Json, place: int, symbols: Symbols) -> int:
    """Return the label at one place of a ranking, counted from 1."""
    if isinstance(entry, JsonObject):
        if any(rank not in (place, str(place)) for rank in _fields(entry, "rank")):
            return NO_LABEL  # in an order of its own
        return _named(entry, symbols)[0]
    if isinstance(entry, str):
        return _label(entry, symbols)
    return symbols.index(str(entry)) if type(entry) is int else NO_LABEL


def _named(entry: Json, symbols: Symbols) -> tuple[int, list[str]]:
    """Return the label that an object says it is about, and the names by which it says so."""
    if not isinstance(entry, JsonObject):
        return NO_LABEL, []
    names = [
        str(name)
        for key in _NAMES
        for name in _fields(entry, key)
        if isinstance(name, str | int) and not isinstance(name, bool)
    ]
    labels = {_label(name, symbols) for name in names}
    return labels.pop() if len(labels) == 1 else NO_LABEL, names


def _fields(entry: JsonObject, name: str) -> list[Json]:
    return [value for key, value in entry.pairs if plain(key) == name]


def _label(name: str, symbols: Symbols) -> int:
    """Return the label that a name of a candidate is, or `NO_LABEL`."""
    name = straighten(name)
    label = alone(name, symbols)
    if label != NO_LABEL or len(name) > symbols.longest + 80:
        return label
    return alone(_NOUN.sub("", name, count=1), symbols)  # Candidate (ii)


def plain(key: str) -> str:
    """Return a key without case, spaces and signs: `Major Error` is `majorerror`."""
    return _NO_LETTER.sub("", key).casefold() if len(key) < 80 else ""
