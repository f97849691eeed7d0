"""The forms in which judges state a verdict in prose, as regular expressions.

All are bounded: every pattern begins with a fixed word, a label or a line break and looks at most
about two hundred characters ahead, without repetition inside repetition, so that reading is linear
in the length of the reply whatever it contains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from unswayed.parsing.symbols import Symbols

__all__ = ["explicit_verdicts", "is_hedged", "is_reported", "leading_labels", "prose_verdicts"]

# Between a cue and its label: white space, Markdown, quotation marks, opening brackets.
_GAP: Final = r"[\s*_\"“'`(\[{$#>]"
_INSIDE: Final = r"[\s\"'“”`*_(]{0,4}"
_LINK: Final = r"(?:is|was|would be|should be|must be|will be|goes to|remains|:|=|->|→|–|—|-)"
_FILLER: Final = (
    r"(?:therefore|thus|clearly|definitely|definitively|probably|likely|obviously|simply|still|"
    r"also|indeed|actually|that|the|my|assistant|answer|option|response|candidate|output|model|"
    r"choice|letter|label|labell?ed|number|reply|summary|story|version|text|one|solution|"
    r"completion|statement)"
)
_AFTER_WORDS: Final = (
    r"(?:because|since|as|due|given|based|over|rather|although|though|while|despite|by|with|wins|"
    r"for)"
)
_TAIL_BETTER: Final = (
    r"(?:(?:is|was|seems|appears|would be|comes out|remains)\s{1,3}"
    r"(?:(?!not\b|never\b|neither\b|no\b|less\b)[\w-]{1,20}\s{1,3}){0,4}?"
    r"(?:better|best|superior|stronger|strongest|preferable|preferred|winner|winning)\b"
    # "Better in style", "better than A at rhyming" is praise, not a verdict.
    r"(?!\s(?:than\s(?:\S{1,20}\s){1,3})?"
    r"(?:in(?!\s(?:all|every|most)\b)|at|on|for|with|when|if|but|suited)\b)"
    r"|is\s(?:my|the)\s(?:final\s)?(?:answer|choice|pick|verdict)\b"
    r"|wins\b|is\s(?:(?:the|clearly|therefore)\s){0,2}(?:correct|right)\b(?!\s(?:in|about|that|to)\b))"
)
_TIE: Final = (
    r"(?:an?\s)?(?:tie|draw|tied)\b"
    r"|(?:both|they)\s(?:(?:answers|responses|assistants|options|are)\s){0,2}"
    r"(?:tied|equal|equally\s(?:good|bad|strong|weak))\b"
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Pieces that the patterns of one label set share."""

    label: str
    follow: str
    filler: str


def _parts(symbols: Symbols) -> _Parts:
    label = symbols.pattern
    # What may follow a label in a sentence that names it as the verdict: the sentence ends, a
    # reason begins, or it is said to be better; never another label ("A or B").
    follow = (
        rf"(?:['’]s)?(?=[*_\"”’'`)\]}}>.,:;!$]{{1,8}}+(?!\w)|[ \t]{{0,16}}(?:\n|\Z)"
        rf"|\s{{1,3}}{_AFTER_WORDS}\b|\s{{1,3}}{_TAIL_BETTER}|\s{{0,3}}[–—(]|\s{{1,3}}-\s|</)"
        rf"(?!\s{{0,3}}(?:[/&|]|or\b|and\b)\s{{0,3}}[(\"'*]{{0,2}}{label})"
    )
    filler = rf"(?:{_FILLER}{_GAP}{{1,6}}+){{0,5}}+{_GAP}{{0,6}}+"
    return _Parts(label, follow, filler)


@lru_cache(maxsize=256)
def explicit_verdicts(symbols: Symbols) -> re.Pattern[str]:
    """Statements that are verdicts by their form.

    `[[B]]`, `[[A>B]]`, `\\boxed{B}`, "the verdict is B", a line "Answer: B", an `<answer>B` that
    ends the reply. Groups: "label", "bracketed", "boxed", "opened" or "named" hold the label,
    "tie" and "tied" a tie, "left", "order", "right" a comparison.
    """
    parts = _parts(symbols)
    label, follow, filler = parts.label, parts.follow, parts.filler
    verdict = (
        r"\b(?:verdict|decision|judge?ment|winner|conclusion|preference"
        r"|final\s(?:answer|choice|selection|decision|verdict))"
    )
    strong = (
        rf"{verdict}{_GAP}{{0,8}}+(?:{_LINK}{_GAP}{{0,8}}+{filler}(?P<tie>{_TIE})"
        rf"|(?:{_LINK}{_GAP}{{0,8}}+){{0,2}}+{filler}(?P<label>{label}){follow})"
    )
    line = (
        r"(?:\A|\n)[ \t*_#>-]{0,8}(?:answer|choice|option|selection|label|preferred|better|best"
        r"|(?:the\s)?(?:correct|better|best)\s(?:answer|option|response|choice|one))"
        rf"[*_]{{0,3}}[ \t]{{0,2}}:{filler}(?P<named>{label})"
        r"[*_\"”’'`)\]}.!]{0,4}[ \t]{0,16}(?=\n|\Z)"
    )
    bracketed = (
        rf"\[\[{_INSIDE}(?:(?P<bracketed>{label})|(?P<tied>tie|draw|C)|(?P<left>{label})\s?"
        rf"(?P<order>>{{1,3}}|<{{1,3}}|=)\s?(?P<right>{label})){_INSIDE.replace('(', ')')}\]\]"
        rf"|\\boxed\{{(?:\\(?:text|textbf|mathrm|mathbf)\{{)?{_INSIDE}(?P<boxed>{label})"
        r"[\s\"'”`*_.)]{0,4}\}"
    )
    tagged = rf"<answer>\s{{0,8}}(?P<opened>{label})\s{{0,8}}\Z"
    return re.compile("|".join((bracketed, tagged, strong, line)), re.IGNORECASE)


@lru_cache(maxsize=256)
def prose_verdicts(symbols: Symbols) -> re.Pattern[str]:
    """Sentences that favour a candidate: "B is better", "I choose B", "the answer is B".

    Groups: "label", "chosen" or "favoured" hold the label, "even" a tie.
    """
    parts = _parts(symbols)
    label, follow, filler = parts.label, parts.follow, parts.filler
    aside = r"(?:\s(?:to|for|of|in|here|given)\b[^.\n:;!?\"]{0,80}?)?"
    cue = (
        r"\b(?:answer|choice|option|selection|pick|vote|label|(?:better|best|preferred|superior|"
        r"stronger|correct|right)(?:\s(?:one|response|assistant|output|candidate|model|reply|"
        r"summary|solution|story|completion|text|statement))?)"
    )
    generic = rf"{cue}{aside}{_GAP}{{0,8}}+{_LINK}{_GAP}{{0,8}}+{filler}(?P<label>{label}){follow}"
    favour = (
        r"\b(?:choose|chose|pick|select|prefer|favou?r|go(?:ing)?\swith|vote\sfor|opt\sfor"
        r"|side\swith|i(?:['’]d|['’]ll|\swould|\swill)?\ssay|in\sfavou?r\sof|lean(?:ing)?\stowards?|award(?:ed)?\sto|goes\sto)"
    )
    chosen = (
        rf"{favour}\s{{1,3}}{filler}(?P<chosen>{label})(?:{follow}|(?=\s(?:as|over|to|here|is)\b))"
    )
    better = rf"(?P<favoured>{label})[*_\"”’'`)\]}}]{{0,4}}\s{{1,3}}{_TAIL_BETTER}"
    tie = (
        r"\b(?:it(?:['’]s|\sis)|this\sis|call\s(?:it|this)|declare(?:\sit|\sthis)?|results?\s(?:is|in)"
        r"|ends?\sin|end\sup\sin)\s(?P<even>an?\s(?:tie|draw))\b"
    )
    return re.compile("|".join((generic, chosen, better, tie)), re.IGNORECASE)


@lru_cache(maxsize=256)
def leading_labels(symbols: Symbols) -> re.Pattern[str]:
    """A label with a full stop, bracket or colon before other text on its line: group "label"."""
    return re.compile(
        rf"(?:\A|\n)[ \t*_#>(\[-]{{0,8}}(?P<label>{symbols.pattern})[*_]{{0,3}}[.):\]]"
        r"[*_]{0,3}[ \t]+\S",
        re.IGNORECASE,
    )


_REPORTS: Final = (
    r"\b(?:claim(?:s|ed|ing)?|says?|said|saying|state[sd]?|argue[sd]?|assert(?:s|ed)?|writes?|wrote|"
    r"insist(?:s|ed)?|concludes|contain(?:s|ed|ing)?|include[sd]?|including|ends?\swith|quote[sd]?)\b"
)
_REPORT: Final = re.compile(rf"{_REPORTS}(?:\s\S{{1,20}}){{0,4}}\s*\Z", re.IGNORECASE)
_HEDGE: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|whether|if|unless|hard|difficult|impossible|unclear|while|"
    rf"although|though|might|could|may|perhaps|between|which|initially)\b|n['’]t\b|{_REPORTS}"
    # "A's final" answer is somebody's, "here's my" answer is the judge's.
    r"|\b(?!(?:it|here|that|there|what|let|who)['’])\w{1,40}['’]s\s(?:\w{1,20}\s){0,2}\Z",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"[.,;:!?\n](?=\s)|\n|—")


def is_hedged(text: str, start: int) -> bool:
    """Whether the clause before a statement denies it, doubts it or reports it as someone's.

    "I cannot say that B is better", "Assistant A's final answer is B", "if A is better". A clause
    begins at a punctuation mark, at most 160 characters back.
    """
    return _HEDGE.search(_clause_before(text, start)) is not None


def is_reported(text: str, start: int) -> bool:
    """Whether the words right before a tag or bracket give it as someone's: "it ends with ..."."""
    return _REPORT.search(_clause_before(text, start)) is not None


def _clause_before(text: str, start: int) -> str:
    before = text[max(0, start - 160) : start]
    cut = 0
    for match in _CLAUSE.finditer(before):
        cut = match.end()
    return before[cut:]
