"""JSON as judges write it: every object of a text, and the complete part of a broken one.

The reader also accepts a comma before a closing bracket, single quotes, `//` and `/* */`
comments, line breaks inside strings, Python's `True`, `False` and `None`, and a word without quotes as a
value. Nothing is repaired: a text that goes on in any other way, or ends, breaks the object off there.
Libraries that repair were measured and left out: one reads a number that was cut off as the whole
number and the last of two equal keys as the only one, the other takes 8 ms for a reply.

A pair counts as soon as its value is complete: an object or a list at its closing bracket, anything
else at the comma or bracket behind it. Equal keys are all kept. The characters looked at are at most
`EFFORT` times those of the text, so that reading takes time linear in its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

EFFORT: Final = 6
"""How often a character is looked at, on average; text after that is not searched."""
_DEEPEST: Final = 32
"""Brackets inside each other; the contract needs three."""
_LONGEST_NUMBER: Final = 40
_ROOT: Final = re.compile(r"\{(?=[\s\ufeff\u200b-\u200f]{0,80}[\"'/}])|\[(?=\s{0,40}\{)")
_TOKEN: Final = re.compile(
    r"(?:[\s\ufeff\u200b-\u200f]++|//[^\n]*+|/\*(?s:.{0,200}?)\*/)*+"
    r"(?:(?P<mark>[{}\[\],:])"
    r"|(?P<string>\"[^\"\\]*+(?:\\(?s:.)[^\"\\]*+)*+\"|'[^'\\]*+(?:\\(?s:.)[^'\\]*+)*+')"
    r"|(?P<open>[\"'])"
    r"|(?P<word>[^\s{}\[\],:\"']++)"
    r"|(?P<end>\Z))"
)
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: Final[dict[str, bool | None]] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}


@dataclass(slots=True)
class JsonObject:
    """An object: its complete pairs in order, equal keys kept."""

    pairs: list[tuple[str, Json]] = field(default_factory=list)
    # start, end: where it stands in the text; of a broken one up to where it counts
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    is_whole: bool = False  # it was closed

    @property
    def is_empty(self) -> bool:
        """True if nothing in it counts."""
        return not self.pairs


@dataclass(slots=True)
class JsonList:
    """A list: its complete values; the rest as for an object."""

    values: list[Json] = field(default_factory=list)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    is_whole: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing in it counts."""
        return not self.values


_Nest: TypeAlias = JsonObject | JsonList
Json: TypeAlias = "_Nest | str | float | bool | None"

_FIRST: Final = {"{": "key", "[": "value or close"}
_CLOSING: Final = {JsonObject: "}", JsonList: "]"}


def json_texts(text: str) -> Iterator[_Nest]:
    """Yield the objects of a text, and the lists that begin with one, in order, none inside another.

    After a broken one the search goes on behind its opening bracket, with what stands in its
    strings; the objects that it holds itself are not given again.
    """
    effort = EFFORT * len(text) + 1_000
    inside: set[int] = set()
    at = 0
    while effort > 0 and (opening := _ROOT.search(text, at)) is not None:
        start = opening.start()
        at = start + 1
        if start in inside:
            continue
        root, nests, looked_at = _parsed(text, start)
        effort -= looked_at - start
        if root.is_whole:
            at = root.end
        else:
            inside.update(nest.start for nest in nests)
        yield root


def _parsed(text: str, start: int) -> tuple[_Nest, list[_Nest], int]:
    """Parse the value that begins at a bracket; return it, its nested values and the end of parsing."""
    root = _opened(text[start], start)
    nests, stack = [root], [root]  # all, and those that are open
    keys: list[str] = [""]  # of the pair that is read, per open bracket
    value: Json = None
    is_waiting = False  # for the comma or bracket behind the value
    expects = _FIRST[text[start]]
    at = start + 1
    while stack:
        token = _TOKEN.match(text, at)
        if token is None or token["end"] is not None or token["open"] is not None:
            at = len(text)  # an open string was searched to the end
            break
        nest, at, mark = stack[-1], token.end(), token["mark"]
        if is_waiting and mark in (",", _CLOSING[type(nest)]):
            _add(nest, keys[-1], value)
            is_waiting, root.end = False, at - 1
        if mark == _CLOSING[type(nest)] and expects in ("key", "value or close", ","):
            nest.is_whole, nest.end, root.end = True, at, at
            stack.pop()
            keys.pop()
            if stack:
                _add(stack[-1], keys[-1], nest)
            expects = ","
        elif mark == expects == ",":
            expects = "key" if isinstance(nest, JsonObject) else "value or close"
        elif mark == expects == ":":
            expects = "value"
        elif expects == "key" and token["string"] is not None:
            keys[-1], expects = _string(token["string"]), ":"
        elif expects.startswith("value") and mark in (None, "{", "["):
            if mark is None:
                value, is_waiting, expects = _scalar(token), True, ","
            elif len(stack) == _DEEPEST:
                break
            else:
                nests.append(nest := _opened(mark, at - 1))
                stack.append(nest)
                keys.append("")
                expects = _FIRST[mark]
        else:
            break
    for depth in range(len(stack) - 1, 0, -1):  # broken off: what was open is in what it was in
        _add(stack[depth - 1], keys[depth - 1], stack[depth])
    return root, nests, at


def _opened(bracket: str, start: int) -> _Nest:
    kind = JsonObject if bracket == "{" else JsonList
    return kind(start=start, end=start + 1)


def _add(nest: _Nest, key: str, value: Json) -> None:
    if isinstance(nest, JsonObject):
        nest.pairs.append((key, value))
    else:
        nest.values.append(value)


def _scalar(token: re.Match[str]) -> str | float | bool | None:
    """Return a string, a number or a literal; any other word is its text."""
    if token["string"] is not None:
        return _string(token["string"])
    word = token["word"]
    if word in _WORDS:
        return _WORDS[word]
    if len(word) > _LONGEST_NUMBER or not (number := _NUMBER.fullmatch(word)):
        return word
    return float(word) if number[1] or number[2] else int(word)


def _string(quoted: str) -> str:
    """Decode a string; one with escapes that JSON does not have stays as it is."""
    inside = quoted[1:-1]
    if "\\" not in inside:
        return inside
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:
        return inside
