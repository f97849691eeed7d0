"""The inside of one place that may hold a verdict: a tag, a box, a JSON value, the end of a line.

All are read by one rule, `place`: listed words, the label, and an end that leaves it a verdict.
Whatever is not listed (`words`) leaves the place unclear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from unswayed.model.parsing.symbols import NO_LABEL, Symbols
from unswayed.model.parsing.words import (
    BECAUSE,
    DENIED,
    LEVEL,
    PLAIN,
    POINTING,
    SHOWING,
    TIE,
    TIE_BESIDE,
    VERBS,
    WITHDRAWN,
)

DECLARED_TIE: Final = -2
"""Code of an explicit tie (`NO_LABEL`, -1, is the code of no verdict, and of an empty place)."""
UNCLEAR: Final = -3
"""Code of a place that is filled and names no single label."""
NOTHING, LISTED, LINE, INSIDE = range(4)
"""What may stand behind a label: nothing; listed words; a reason, in a line that the label heads
("A: clear" is none: it discusses A); a reason, in a place that is marked as the verdict's."""

EDGES: Final = " \t\r\n\v\f\x00\xa0\u2028\u3000*_`#\"“”'‘’«»「」$~\\|👉✅☑️✔️🏆—–•·-"
_FRONT: Final = EDGES + ".。,:"
_BACK: Final = EDGES.replace("-", "").replace("#", "") + ".。,、;!।"
_PAIRS: Final = frozenset(("()", "[]", "{}", "<>", "（）", "【】", "『』"))
_BRACKETS: Final = "([{（【)]}）】"
_CJK: Final = "\u2e80-\u2fff\u3040-\u9fff\uac00-\ud7af"
_LETTERS: Final = "A-Za-z\u00c0-\u05ff\u0620-\u0963\u0966-\u1fff"
_WORD: Final = re.compile(rf"[{_CJK}]+|[{_LETTERS}]+(?:['’][{_LETTERS}]+)?")
_KNOWN: Final = POINTING | PLAIN | DENIED | TIE
_LATEX: Final = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm|mathsf)\s?\{([^{}]{0,100})\}")
# What may stand before a label: words, markup, opening brackets; no sign directly before it.
_LEAD: Final = re.compile(
    rf"[\w\s{_LETTERS}*_`#>\"“”'‘’«»「」$\\|👉✅☑️✔️—–•·(\[<{{（【『.,،:：=।、。-]*+(?<![./-])"
)
_SIGN: Final = re.compile(r"[+#'’^&/%|<>=\\±]|[-–](?!\s)")
_OVER: Final = re.compile(
    r"\s{0,2}(?:/|⁄|out of|of|von|sur|de|di|su|z|av|van|trên|dari|із|из|من|में से|満点中)\s{0,2}(\d{1,4})(?![\d.,]\d|\w|\s?%)",
    re.I,
)
_UNIT: Final = re.compile(r"\s{0,2}(?:stars?|points?|pts|punkte|puntos|分|点|점|★|⭐)+", re.I)
_SUFFIX: Final = re.compile(r"['’](?:s\b|[dt][iıuü]r\b)", re.I)
_ZEROS: Final = re.compile(r"(?<=\d)\.0+(?![\d.])")
_NUMBER: Final = re.compile(r"([^\d.,+-]*)(\d+(?:\.\d+)?)(.*)", re.S)
# What leads up to a reason; writing without spaces has no edges of words.
_BECAUSE: Final = re.compile(
    rf"(?<![{_LETTERS}])(?:{'|'.join(sorted(BECAUSE))})(?![{_LETTERS}])", re.I
)
_TURN: Final = re.compile(r"[:：]\s|\s[-–—]\s")
# The first of three patterns that know English: words that take a verdict back, or refuse one.
_WITHDRAWS: Final = re.compile(
    r"\b(?:no\b[,.!]? (?:wait|sorry|i )|wait\b|hmm|scratch|correction|actually,|sorry|just kidding|were it|withdraw|no longer"
    r"|on (?:reflection|second)|i (?:was wrong|mean|am unable)|(?:cannot|can['’]t) (?:decide|help|assist|judge|say)"
    r"|or perhaps)",
    re.I,
)


def takes_back(text: str) -> bool:
    """Return True if the first words behind a verdict take it back."""
    return _WITHDRAWS.search(text[:200]) is not None or not WITHDRAWN.isdisjoint(
        words_of(text[:200])
    )


class Sought(NamedTuple):
    """Labels and words to look for in a reply."""

    symbols: Symbols  # the labels
    texts: Sequence[str] = ()  # the text that each label stood for, where it is known
    scale: bool = False  # the labels are levels: "4/5", "4 stars" and the names of levels count
    values: Sequence[float] = ()  # the score of each level, where it has one


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters; writing without spaces as the listed words in it."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return tuple(
        [part for word in words for part in (_split(word) if word >= "\u2e80" else (word,))]
    )


def _split(run: str) -> Sequence[str]:
    """Split a run of characters into listed words, the longest first; return the run if none fit."""
    words, at = [], 0
    while at < len(run):
        ends = range(min(at + 8, len(run)), at, -1)
        end = next((end for end in ends if run[at:end] in _KNOWN), 0)
        if not end:
            return (run,)
        words.append(run[at:end])
        at = end
    return words


def listed(text: str) -> bool | None:
    """None if a word of the text is not listed, else whether one of them points to a verdict."""
    words = words_of(text)
    if not all(word in POINTING or word in PLAIN for word in words):
        return None
    return not POINTING.isdisjoint(words)


def named(text: str, symbols: Symbols) -> list[re.Match[str]]:
    """Find labels in a text, without short words of it ("a better one", "I think")."""
    return [match for match in symbols.word.finditer(text) if not _is_word(text, match, symbols)]


def _is_word(text: str, match: re.Match[str], symbols: Symbols) -> bool:
    """Return True if a label such as `A` or `I` is only a word of the sentence."""
    label = match[0]
    if label.islower() and re.search(r"\w['’]\Z", text[max(0, match.start() - 2) : match.start()]):
        return True  # I'd
    if label.casefold() not in "aieouy":
        return False
    is_small = label.islower()
    if is_small and label not in symbols.labels and len(text.strip(_FRONT + _BRACKETS)) > 2:
        return True
    before = text[: match.start()].rstrip(_FRONT)
    if not is_small and label != "I" and before and before[-1] not in ".:!\n":
        return False  # an article has a small letter there
    following = _WORD.match(text, match.end() + 1)
    return (
        text.startswith(" ", match.end())
        and following is not None
        and following[0].islower()
        and following[0].isascii()
        and following[0] not in VERBS | BECAUSE
    )


def alone(text: str, symbols: Symbols) -> int:
    """Return the label that is all a text says, with nouns before it at most; `NO_LABEL` if it is not."""
    if "," in text.strip(_FRONT):
        return NO_LABEL
    code = place(text, Sought(symbols), behind=NOTHING)
    if code < 0:
        code = place(text.strip(EDGES + _BRACKETS), Sought(symbols), behind=NOTHING)
    return max(code, NO_LABEL)


def place(text: str, asked: Sought, *, behind: int = INSIDE) -> int:
    """Return the label's index in the inside of a place, `DECLARED_TIE`, `UNCLEAR`, or `NO_LABEL` if it is empty.

    `behind` says what may stand behind the label: `NOTHING`, `LISTED`, `LINE` or `INSIDE`.
    """
    if "\\" in text:
        text = _LATEX.sub(r"\1", text)
    core = text.lstrip(_FRONT).rstrip(_BACK)
    while core and core[0] + core[-1] in _PAIRS and asked.symbols.index(core) < 0:
        core = core[1:-1].lstrip(_FRONT).rstrip(_BACK)
    core = _ZEROS.sub("", core) if asked.scale else core
    if not core:
        return NO_LABEL
    lead = text[: text.find(core[:9])]
    code = asked.symbols.index(core)
    if code >= 0:
        is_signed = not text.isalnum() and (not _LEAD.fullmatch(lead) or _is_odd(text, "*$'"))
        return UNCLEAR if is_signed else code
    if len(core) > 400 or _is_odd(text, "*") or text.rstrip(" \t*_").endswith((":", "：")):
        return UNCLEAR
    match = next(iter(named(core, asked.symbols)), None)
    if match is None:
        return _wordless(core, asked)
    code = asked.symbols.index(match[0])
    before, after = core[: match.start()], core[match.end() :]
    after += "?" if text.rstrip().endswith("?") else ""
    points = listed(before)
    if points is None or any(map(str.isdigit, before)) or not _LEAD.fullmatch(lead + before):
        return UNCLEAR
    if not SHOWING.isdisjoint(words_of(before)[:1]):
        return UNCLEAR  # "This answer is A"
    if not asked.scale and not LEVEL.isdisjoint(words_of(before)):
        return UNCLEAR
    if asked.symbols.word.match(before) and not points:
        return UNCLEAR  # "A to B", unlike "A better answer is B"
    told = bool(points) and not VERBS.isdisjoint(words_of(before)[-2:])  # "The answer is"
    return code if _ends(after, code, asked, behind, points=points, told=told) else UNCLEAR


def _is_odd(text: str, signs: str) -> bool:
    """Return True if a sign closes nothing: `A*`, `$2`, `A'`."""
    text = text.lstrip().removeprefix("* ")
    return any(text.count(sign) % 2 for sign in signs)


def _wordless(core: str, asked: Sought) -> int:
    """Return a tie, a value or a level's name, in a place that names no label."""
    words = set(words_of(core))
    if words & TIE and words <= TIE | TIE_BESIDE | PLAIN | POINTING:
        return DECLARED_TIE
    number = _NUMBER.fullmatch(core) if asked.scale else None
    if number is not None and float(number[2]) in asked.values and listed(number[1]) is not None:
        code = asked.values.index(float(number[2]))
        return code if _ends(number[3], code, asked, NOTHING) else UNCLEAR
    names = [text.partition(":")[0].strip().casefold() for text in asked.texts if asked.scale]
    return names.index(core.casefold()) if names.count(core.casefold()) == 1 else UNCLEAR


def _ends(
    after: str, code: int, asked: Sought, behind: int, *, points: bool = False, told: bool = False
) -> bool:
    """Return True if the text behind a label leaves it a verdict.

    `points`: words before it point to one; `told`: and end with "is".
    """
    rest = after.lstrip("*_\"”’'`)]}）】>")
    closed = not {")", "]", "）", "】"}.isdisjoint(after[: len(after) - len(rest)])
    if after[:1] in {"'", "’"} and after[1:2].isalpha():  # "A's answer is better"; no "A's grammar"
        own = _SUFFIX.match(after)
        behind_it = after[own.end() :] if own is not None else "-"
        if behind < LISTED or ":" in behind_it or named(behind_it, asked.symbols):
            return False
        return bool(listed(behind_it)) or (
            after[1] != "s" and not behind_it.strip(_BACK)
        )  # Turkish "A'dır"
    if not rest.strip(" .。!*_`$|✅✔️👍🏆🎉"):
        return True
    counts = asked.symbols.labels[code].isdecimal()
    if (asked.scale or counts) and (end := _counted(rest, asked)) is not None:
        rest, points = rest[end:].lstrip("*_)"), True
        if end < 0 or not rest.strip(" .*_)!。"):
            return end >= 0
    if _SIGN.match(rest):
        return False
    if (shown := _shown(rest, code, asked.texts)) is not None:
        return shown and behind > NOTHING
    if rest[0] == "." and (not rest[1:2].isspace() or rest[1:].lstrip(" *_")[:1].islower()):
        return False  # E. coli
    if behind == LINE and (
        (rest[0] in ":：" and not told) or (counts and not asked.scale and rest[0] in ". ")
    ):
        return False
    because, turn = _BECAUSE.search(rest[:80]), _TURN.search(rest[:80])
    said = None if because is None else listed(rest[: because.start()])
    if because is not None and said is not None:
        reason = rest[because.end() :]
        is_own = (points or said) and not takes_back(reason)  # it may name others
        return behind >= LISTED and (is_own or is_reason(reason, code, asked))
    head = rest[: turn.start()].strip() if turn is not None else ""
    is_led = listed(head) or told or (points and head)
    if turn is not None and is_led and listed(head) is not None and "\n" not in rest:
        return behind >= LISTED and is_reason(rest[turn.end() :], code, asked, alone=False)
    if rest[0] in ".,:：;、，。(（—–":
        return behind >= LINE and is_reason(rest[1:], code, asked)
    said = listed(rest) if not re.search(r"[\d?:,]", rest) else None
    if said or (said is not None and (points or rest.lstrip()[0] >= "\u2e80")):
        return behind >= LISTED and _names_only(code, rest, asked)
    gap = rest.lstrip()
    if closed and gap[0].islower():
        return False  # (b) is rude
    is_apart = closed or gap[0] in "-–—(（"
    return is_apart and behind >= LINE and is_reason(gap.lstrip("-–—(（"), code, asked)


def _counted(rest: str, asked: Sought) -> int | None:
    """Return the end of "/5" or "stars" behind a level; -1 where it is none, None where nothing counts."""
    part = _OVER.match(rest) or (_UNIT.match(rest) if asked.scale else None)
    if part is None:
        return -1 if rest[0] in ".,:" and rest[1:2].isdigit() else None
    highest = part.re is not _OVER or float(part[1]) == max(asked.values, default=0.0)
    return part.end() if asked.scale and highest else -1


def _shown(rest: str, code: int, texts: Sequence[str]) -> bool | None:
    """Return True if a label's own text follows it, False if another one's does, None if none."""
    said = rest.lstrip(" .):：,-–—*_(").rstrip(" .*_)").casefold()
    shown = [text[:200].strip().rstrip(" .").casefold() for text in texts] if said else []
    own = shown[code] if code < len(shown) else ""
    if own and (said.startswith(own[:40]) or own.startswith(said[:100])):
        return True
    return False if any(text and said.startswith(text[:40]) for text in shown) else None


def is_reason(text: str, code: int, asked: Sought, *, alone: bool = True) -> bool:
    """Return True if a text is a reason for a label: it denies and withdraws nothing, and names no other
    label unless that is allowed.
    """
    if not asked.scale and not DENIED.isdisjoint(words_of(text[:60])[:2]):
        return False
    if takes_back(text) or (text.rstrip(" *_").endswith("?") and len(text) < 20):
        return False
    return not alone or _names_only(code, text, asked)


def _names_only(code: int, text: str, asked: Sought) -> bool:
    """Return True if a text names no label but this one."""
    return all(asked.symbols.index(match[0]) == code for match in named(text[:2000], asked.symbols))
