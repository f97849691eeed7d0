"""What a statement is about and who says it, by the words that lead up to its label."""

from __future__ import annotations

import re
from typing import Final

from unswayed.parsing.statements import NOUNS

__all__ = ["is_about_the_better", "is_opened_plainly"]

_GOOD: Final = (
    r"(?:the|my|our|final|overall|best|better|correct|right|preferred|superior|stronger|strongest|"
    r"chosen|winning|true|ideal|a|so|hence|thus|therefore|is|clear|clearly|only\scorrect|"
    r"more\s\w{1,20}|most\s\w{1,20})"
)
_BAD: Final = re.compile(
    r"\b(?:worse|worst|wrong|incorrect|false|bad|poor\w{0,4}|weak\w{0,4}|inferior|los(?:ing|er|es)|reject\w{0,3}"
    r"|avoid\w{0,3}|second|other|runner|less|least|last|misleading|errors?|flaw\w{0,3}|mistaken|unhelpful"
    r"|irrelevant|harmful|lazy|un\w{3,20}|shorter|longer|first|not|prelim\w{0,9}|tentative|provisional|draft"
    r"|part|thing|problem|aspect|start|end|opposite|about|its|their|your|his|her|this"
    r"|previous|earlier|expected|example|possible|style|non)\b",
    re.IGNORECASE,
)
_MODIFIER: Final = re.compile(rf"(?:\A|[^\w'’-])(?:{_GOOD}[\s*_\"“'`(]{{1,6}})\Z", re.IGNORECASE)
_WORD_BEFORE: Final = re.compile(r"\w[\s*_\"“'`(]{0,6}\Z")
_FEW_WORDS: Final = re.compile(r"(?:[\w'’-]{1,30}\s{1,3}){0,5}[\s*_\"“'`(]{0,6}\Z")
_OPENER: Final = re.compile(
    rf"(?:{NOUNS}|"
    r"and|but|so|then|yet|still|however|therefore|thus|hence|overall|consequently|"
    r"accordingly|ultimately|clearly|definitely|obviously|simply|also|indeed|actually|here|"
    r"finally|now|certain|certainly|sure|i|we|i'd|i'm|think|believe|find|feel|conclude|"
    r"concluded|say|would|will|must|consider|judge|can|prefer|choose|decided|determined|"
    r"agree|found|see|that|the|a|my|our|own|me|view|opinion|judgement|judgment|verdict|"
    r"conclusion|decision|reason|reasons|winner|final|better|best|in|it|it's|is|this|these|"
    r"means|makes|making|clear|evident|seem|seems|appears|given|based|on|comparing|both|"
    r"between|two|of|to|for|all|answers|responses|outputs|since|because|as)"
)
_WORDS: Final = re.compile(r"[\w'’]+")
_SEGMENT: Final = re.compile(r"[.,;:!?\n—–(]")


def is_opened_plainly(text: str, start: int) -> bool:
    """Whether only words of the judge's own lead up to a label: "So I think answer B is better".

    "Critics hold that A is better", "the style of A is better" have others.
    """
    before = text[max(0, start - 120) : start]
    cut = 0
    for match in _SEGMENT.finditer(before):
        cut = match.end()
    words = _WORDS.findall(before[cut:].replace("’", "'").casefold())
    return all(_OPENER.fullmatch(word) for word in words)


def is_about_the_better(text: str, start: int, end: int, *, strictly: bool = True) -> bool:
    """Whether "... answer is" in text[start:end] speaks of the better one, by the words before it.

    "The worse answer is", "my second choice is", "the answer to avoid is" do not, nor does any
    qualification that is not known to be praise ("the shorter answer is") where `strictly`.
    """
    before = text[max(0, start - 120) : start]
    words = _FEW_WORDS.search(before)
    near = (before if words is None else words[0]) + text[start:end]
    if _BAD.search(near):
        return False
    return (
        not strictly or _WORD_BEFORE.search(before) is None or _MODIFIER.search(before) is not None
    )
