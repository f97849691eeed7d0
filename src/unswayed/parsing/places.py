"""The inside of one place that may hold a verdict: a tag, a box, a JSON value, the end of a line.

All are read by one rule, `place`: listed words, the label, and an end that leaves it a verdict. The
words are data (`words`); whatever is not listed leaves the place unclear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from unswayed.parsing.symbols import NO_LABEL, Symbols
from unswayed.parsing.words import (
    BECAUSE,
    DENIED,
    LEVEL,
    PLAIN,
    POINTING,
    TIE,
    TIE_BESIDE,
    VERBS,
)

__all__ = [
    "DECLARED_TIE",
    "EDGES",
    "UNCLEAR",
    "WITHDRAWS",
    "Asked",
    "Behind",
    "listed",
    "named",
    "pieces_of",
    "place",
    "words_of",
]

DECLARED_TIE: Final = -2
"""Code of an explicit tie (`NO_LABEL`, -1, is the code of no verdict)."""
UNCLEAR: Final = -3
"""Code of a place that is filled and names no single label."""

EDGES: Final = " \t\r\n*_`#\"“”'‘’«»「」$~\\|👉✅☑️✔️🏆—–•·-"
_FRONT: Final = EDGES + ".。,:"
_BACK: Final = EDGES.replace("-", "").replace("#", "") + ".。,、!।"
_PAIRS: Final = frozenset(("()", "[]", "{}", "<>", "（）", "【】", "『』"))
_BRACKETS: Final = "([{（【)]}）】"
_CJK: Final = "\u2e80-\u2fff\u3040-\u9fff\uac00-\ud7af"
_VOWELS: Final = "\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e"
_WORD: Final = re.compile(
    rf"[{_CJK}]+|[^\W\d_{_CJK}]+(?:[{_VOWELS}]+[^\W\d_{_CJK}]*)*(?:['’][^\W\d_]+)?"
)
_LATEX: Final = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm|mathsf)\s?\{([^{}]{0,100})\}")
# What may stand before a label: words, markup, opening brackets; no sign directly before it.
_LEAD: Final = re.compile(
    rf"[\w\s{_VOWELS}*_`#>\"“”'‘’«»「」$\\|👉✅☑️✔️—–•·(\[<{{（【『.,:：=।、。-]*+(?<![./-])"
)
_SIGN: Final = re.compile(r"[+#'’^&/%|<>=\\±]|[-–](?!\s)")
_OVER: Final = re.compile(
    r"\s{0,2}(?:/|⁄|out of|of|von|sur|de|di|из|満点中)\s{0,2}(\d{1,4})(?![\d.,]\d|\w|\s?%)", re.I
)
_UNIT: Final = re.compile(r"\s{0,2}(?:stars?|points?|pts|punkte|puntos|分|点|점|★|⭐)+", re.I)
_ZERO: Final = re.compile(r"(?<=\d)\.0+(?![\d.])")
_NUMBER: Final = re.compile(r"([^\d.,+-]*)(\d+(?:\.\d+)?)(.*)", re.S)
_BECAUSE: Final = re.compile(rf"\b(?:{'|'.join(sorted(BECAUSE))})\b", re.I)
_SHORT_WORDS: Final = frozenset("aieouy")
# The first of three patterns that know English: words that take a verdict back, or refuse one.
WITHDRAWS: Final = re.compile(
    r"\b(?:no\b[,.!]? (?:wait|sorry|i )|wait\b|hmm|scratch|correction|actually\b|on (?:reflection|second)"
    r"|sorry|just kidding|i (?:was wrong|mean|am unable)|(?:cannot|can['’]t) (?:decide|help|assist|judge|say)"
    r"|or perhaps|were it)",
    re.I,
)


class Asked(NamedTuple):
    """What a judge was asked for.

    Attributes:
        symbols: The labels.
        texts: The text that each label stood for, where it is known.
        scale: The labels are levels: "4/5", "4 stars" and the names of levels count.
        values: The score of each level, where there are any.
    """

    symbols: Symbols
    texts: Sequence[str] = ()
    scale: bool = False
    values: Sequence[float] = ()

    def level(self, number: str) -> int:
        """The level of a number as it is written, or `NO_LABEL`."""
        value = float(number)
        code = self.symbols.index(f"{value:g}")
        if code == NO_LABEL and value in self.values:
            code = self.values.index(value)
        return code

    def highest(self) -> float:
        """The highest value of the scale."""
        numbers = [float(label) for label in self.symbols.labels if label.isdecimal()]
        return max(self.values or numbers or [0.0])


class Behind:
    """What may stand behind a label: nothing, listed words ("is better", "because"), any reason."""

    NOTHING: Final = 0
    LISTED: Final = 1
    REASON: Final = 2


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=4096)
def listed(text: str) -> bool | None:
    """None if a word of the text is not listed, else whether one of them points to a verdict."""
    pieces = pieces_of(text)
    if any(piece not in POINTING and piece not in PLAIN for piece in pieces):
        return None
    return not POINTING.isdisjoint(pieces)


def pieces_of(text: str) -> list[str]:
    """The words of a text, those of writing without spaces too."""
    return [
        piece
        for word in words_of(text.replace("’", "'"))
        for piece in (_pieces(word) if word >= "\u2e80" else (word,))
    ]


def _pieces(run: str) -> list[str]:
    """Split writing without spaces into listed words, the longest first."""
    pieces, at = [], 0
    while at < len(run):
        sizes = range(min(8, len(run) - at), 0, -1)
        ends = (at + size for size in sizes)
        end = next((e for e in ends if run[at:e] in POINTING or run[at:e] in PLAIN), None)
        if end is None:
            return [run]
        pieces.append(run[at:end])
        at = end
    return pieces


def named(text: str, symbols: Symbols) -> list[re.Match[str]]:
    """Find labels in a text, without short words of it ("a better one", "I think")."""
    return [match for match in symbols.word.finditer(text) if not _is_word(text, match, symbols)]


def _is_word(text: str, match: re.Match[str], symbols: Symbols) -> bool:
    """True if a label such as `A` or `I` is only a word of the sentence."""
    label = match[0]
    if label.casefold() not in _SHORT_WORDS:
        return False
    alone = len(text.strip(_FRONT + _BRACKETS)) <= 2
    if label != symbols.labels[symbols.index(label)] and not alone:
        return True
    if not text.startswith(" ", match.end()) or text.startswith("(", match.start() - 1):
        return False
    before = text[: match.start()].rstrip(_FRONT)
    if label != "I" and before and not before.endswith((".", ":", "!", "\n")):
        return False  # an article has a small letter there
    following = _WORD.match(text, match.end() + 1)
    if following is None or not following[0].islower() or not following[0].isascii():
        return False
    return following[0] not in VERBS and following[0] not in BECAUSE


def place(text: str, asked: Asked, *, behind: int = Behind.REASON) -> int:
    """Read the inside of a place.

    Args:
        text: The inside.
        asked: The labels and what they stood for.
        behind: What may stand behind the label (`Behind`).

    Returns:
        The label's index, `DECLARED_TIE`, `UNCLEAR`, or `NO_LABEL` where the place is empty.
    """
    if "\\" in text:
        text = _LATEX.sub(r"\1", text)
    core = _core(text, asked.symbols)
    if asked.scale:
        core = _ZERO.sub("", core)
    if not core:
        return NO_LABEL
    lead = text[: text.find(core[:9])]
    code = asked.symbols.index(core)
    if code >= 0:
        return UNCLEAR if _is_marked(text, lead) else code
    if len(core) > 400 or _is_starred(text) or text.rstrip(" \t*_").endswith((":", "：")):
        return UNCLEAR
    match = next(iter(named(core, asked.symbols)), None)
    if match is None:
        return _wordless(core, asked)
    before, after = core[: match.start()], core[match.end() :]
    other = asked.symbols.compared.match(after)
    if other is not None and other[2] != match[0]:
        after = other[1] + after[other.end() :]
    passed = asked.symbols.word.match(core)
    if passed is not None and passed.start() < match.start() and not listed(before):
        return UNCLEAR  # "A to B", unlike "A better answer is B"
    bare = before.strip(EDGES + _BRACKETS + " :：=")
    if bare and (listed(bare) is None or any(map(str.isdigit, bare))):
        return UNCLEAR
    if not _LEAD.fullmatch(lead + before) or (not asked.scale and LEVEL & set(words_of(bare))):
        return UNCLEAR
    code = asked.symbols.index(match[0])
    tail = text.rstrip()[-1:]
    after += "?" if tail == "?" and not after.endswith("?") else ""
    return code if _ends(after, code, asked, behind, led=bool(listed(bare))) else UNCLEAR


def _core(text: str, symbols: Symbols) -> str:
    """The text without markup, quotation marks and pairs of brackets around all of it."""
    core = text.lstrip(_FRONT).rstrip(_BACK)
    while core and core[0] + core[-1] in _PAIRS and symbols.index(core) < 0:
        core = core[1:-1].lstrip(_FRONT).rstrip(_BACK)
    return core


def _is_marked(text: str, lead: str) -> bool:
    """True if a sign stands at a label that is alone: `-A`, `A*`, `A'`, `$2`."""
    return not text.isalnum() and (
        _LEAD.fullmatch(lead) is None
        or _is_starred(text)
        or text.count("$") % 2 == 1
        or text.count("'") % 2 == 1
    )


def _is_starred(text: str) -> bool:
    """True if a star is left that closes no emphasis: `A*`."""
    return text.count("*") % 2 == 1 and not text.lstrip().startswith("* ")


def _wordless(core: str, asked: Asked) -> int:
    """A tie, a value or a level's name, in a place that names no label."""
    words = set(words_of(core))
    if words & TIE and words <= TIE | TIE_BESIDE:
        return DECLARED_TIE
    if not asked.scale:
        return UNCLEAR
    number = _NUMBER.fullmatch(core)
    if number is not None and listed(number[1]) is not None:
        code = asked.level(number[2])
        if code >= 0 and _ends(number[3], code, asked, Behind.NOTHING):
            return code
    names = [text.partition(":")[0].strip().casefold() for text in asked.texts]
    return names.index(core.casefold()) if names.count(core.casefold()) == 1 else UNCLEAR


def _ends(after: str, code: int, asked: Asked, behind: int, *, led: bool = False) -> bool:
    """True if what stands behind a label leaves it a verdict."""
    rest = after.lstrip("*_\"”’'`)]}）】>")
    closed = not {")", "]", "）", "】"}.isdisjoint(after[: len(after) - len(rest)])
    if after[:1] in {"'", "’"} and after[1:2].isalpha():
        return False  # A's grammar
    if not rest.strip(" .。!*_`$|✅✔️👍🏆🎉"):
        return True
    numeric = asked.scale or asked.symbols.labels[code].isdecimal()
    if numeric and (counted := _counted(rest, asked)) is not None:
        return counted
    if _SIGN.match(rest):
        return False
    said = rest.lstrip(" .):：,-–—*_(").rstrip(" .*_)").casefold()
    if said and (shown := _shown(said, code, asked.texts)) is not None:
        return shown
    if rest[0].isspace() or rest[0].isalpha():
        gap = rest.lstrip()
        because = _BECAUSE.search(rest[:80])
        if because is not None and listed(rest[: because.start()]) is not None:
            return behind >= Behind.LISTED and _is_reason(rest[because.end() :], code, asked)
        points = listed(rest) or (listed(rest) is not None and (led or gap[0] >= "\u2e80"))
        if points and not re.search(r"[\d?:,]", rest) and _names_only(code, rest, asked):
            return behind >= Behind.LISTED
        if gap[0] not in "-–—(（" and not closed:
            return False
        return behind == Behind.REASON and _is_reason(gap.lstrip("-–—(（"), code, asked, closed)
    if rest[0] == "." and (not rest[1:2].isspace() or rest[1:].lstrip(" *_")[:1].islower()):
        return False  # E. coli
    if rest[0] not in ".,:：;、，。(（—–" and not closed:
        return False
    return behind == Behind.REASON and _is_reason(rest[1:], code, asked)


def _counted(rest: str, asked: Asked) -> bool | None:
    """Whether "/5", "stars" or decimals behind a number leave it a level; None if there are none."""
    part = _OVER.match(rest)
    if part is not None:
        behind = rest[part.end() :].strip(" .*_)!。")
        return asked.scale and float(part[1]) == asked.highest() and not behind
    part = _UNIT.match(rest)
    if part is not None and asked.scale:
        return not rest[part.end() :].strip(" .*_)!。")
    return False if rest[0] in ".,:" and rest[1:2].isdigit() else None


def _shown(said: str, code: int, texts: Sequence[str]) -> bool | None:
    """True if a label's own text stands behind it, False if another one's does, None if none does."""
    shown = [text.strip().rstrip(" .").casefold() for text in texts]
    if (
        code < len(shown)
        and shown[code]
        and (said.startswith(shown[code][:40]) or shown[code].startswith(said))
    ):
        return True
    return False if any(text and said.startswith(text[:40]) for text in shown) else None


def _is_reason(text: str, code: int, asked: Asked, closed: bool = False) -> bool:
    """True if a text is a reason for a label: it names no other one, denies and withdraws nothing."""
    words = words_of(text[:60])
    if not asked.scale and not DENIED.isdisjoint(words[:2]):
        return False
    if closed and text[:1].islower():
        return False  # (b) is rude
    if WITHDRAWS.search(text[:200]) or (text.rstrip(" *_").endswith("?") and len(text) < 20):
        return False
    return _names_only(code, text, asked)


def _names_only(code: int, text: str, asked: Asked) -> bool:
    """True if a text names no label but this one."""
    labels = named(text[:2000], asked.symbols)
    return all(asked.symbols.index(match[0]) == code for match in labels)
