"""One label set as something to recognise: bare labels, labels inside sentences, label tokens.

Case rule: a label is read in any case as long as the labels stay distinct when case is ignored
(A and B: yes; m and M: no, they are read exactly). Full-width forms count as their ASCII letters,
look-alikes of other scripts (Cyrillic A) do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

NO_LABEL: Final = -1
"""Code of a token or text other than a label."""
AMBIGUOUS: Final = -2
"""Code of a token that begins more than one label."""

_TOKEN_FRONT: Final = " \t\r\n\v\f\xa0▁ĠĊ*_`'\"“‘«([{<#"
_TOKEN_BACK: Final = " \t\r\n\v\f\xa0▁ĠĊ*_`'\"”’»)]}>.,:;!?"

# Full-width ASCII becomes ASCII; characters that print nothing become nothing.
_STRAIGHT: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | dict.fromkeys(
    # zero width, directional marks, embeddings and isolates, soft hyphen
    (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0x061C, 0xFEFF, 0xAD)
)
_CROOKED: Final = re.compile(f"[{re.escape(''.join(map(chr, _STRAIGHT)))}]")


def straighten(text: str) -> str:
    """Full-width forms as ASCII, invisible characters removed."""
    return text.translate(_STRAIGHT) if _CROOKED.search(text) else text


class Symbols:
    """A label set, ready to be recognised.

    Attributes:
        labels: The symbols in canonical order.
        longest: Characters of the longest label.
        folds: Whether case is ignored.
        codes: What `token` has found so far, by token.
        word: Regular expression of any label as a word of its own.
    """

    __slots__ = ("_exact", "_folded", "codes", "folds", "labels", "longest", "word")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.longest = max(len(label) for label in labels)
        self._exact = {label: k for k, label in enumerate(labels)}
        for k, label in enumerate(labels):
            self._exact.setdefault(straighten(label), k)
        self._folded = {label.casefold(): k for label, k in self._exact.items()}
        self.folds = len({straighten(label).casefold() for label in labels}) == len(labels)
        if not self.folds:
            self._folded = {}
        self.word = re.compile(_whole_word(self._exact), re.IGNORECASE if self.folds else 0)
        self.codes: dict[str, int] = {}

    def index(self, text: str) -> int:
        """Return the label that `text` is, letter for letter (case by the case rule), or `NO_LABEL`."""
        label = self._exact.get(text)
        if label is None:
            label = self._folded.get(text.casefold(), NO_LABEL)
        return label

    def goes_on(self, label: int) -> bool:
        """Return True if a longer label begins with this one, as 12 does with 1."""
        text = self.labels[label]
        return any(other != text and other.startswith(text) for other in self.labels)

    def token(self, token: str) -> int:
        """Return the label that a generated token is or begins; remembered, for tokens come again.

        `NO_LABEL` for none, `AMBIGUOUS` where several labels begin that way; a token that is the
        beginning of a label, not all of it, is coded `-3 - label`.
        """
        code = self.codes.get(token)
        if code is None:
            code = self._read_token(token)
            if len(self.codes) < _TOKEN_MEMORY:
                self.codes[token] = code
        return code

    def _read_token(self, token: str) -> int:
        text = straighten(token)
        for core in (text.strip(" ▁ĠĊ\n\t\r"), text.lstrip(_TOKEN_FRONT).rstrip(_TOKEN_BACK)):
            label = self.index(core)
            if label != NO_LABEL:
                longer = [
                    other
                    for other in self.labels
                    if len(other) > len(core) and other.startswith(core)
                ]
                return AMBIGUOUS if longer else label
            # One letter begins far too many other words to be taken for the start of a name.
            if len(core) >= 2:
                begun = [k for k, label in enumerate(self.labels) if label.startswith(core)]
                if begun:
                    return -3 - begun[0] if len(begun) == 1 else AMBIGUOUS
        return NO_LABEL


_TOKEN_MEMORY: Final = 20_000


def _whole_word(labels: Iterable[str]) -> str:
    """Any of the labels, not as part of a longer word.

    Chinese, Japanese and Korean are written without spaces and have no such edges. The two
    classes heed case because compiling them without would take a second.
    """
    edge = r"(?-i:[^\W\u2e80-\u9fff\uac00-\ud7af])"
    by_edges: dict[tuple[bool, bool], list[str]] = {}
    for label in sorted(labels, key=len, reverse=True):
        edges = (_is_letter(label[0]), _is_letter(label[-1]))
        by_edges.setdefault(edges, []).append(re.escape(label))
    return "|".join(
        (f"(?<!{edge})" if front else "")
        + f"(?:{'|'.join(forms)})"
        + (f"(?!{edge})" if back else "")
        for (front, back), forms in by_edges.items()
    )


def _is_letter(character: str) -> bool:
    return character.isalnum() and not "\u2e80" <= character <= "\ud7af"


@lru_cache(maxsize=256)
def _symbols_of(labels: tuple[str, ...]) -> Symbols:
    if not labels or "" in labels:
        raise ValueError("a label set needs labels, none of them empty")
    return Symbols(labels)


def symbols_of(labels: Sequence[str]) -> Symbols:
    """Return the recogniser of a label set, made once per set; a `ValueError` without labels or with an empty one."""
    return _symbols_of(labels if isinstance(labels, tuple) else tuple(labels))
