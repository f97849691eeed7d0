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

__all__ = ["Statements", "is_hedged", "statements_of"]

# Between a cue and its label: white space, Markdown, quotation marks, opening brackets.
_GAP: Final = r"[\s*_\"“'`(\[{$#>]"
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
    r"(?!\s(?:than|in|at|on|for|with|when|if|but|suited|(?:answer|response|option|one|choice)\sif)\b)"
    r"|wins\b|is\s(?:(?:the|clearly|therefore)\s){0,2}(?:correct|right)\b(?!\s(?:in|about|that|to)\b))"
)
_TIE: Final = (
    r"(?:an?\s)?(?:tie|draw|tied)\b"
    r"|(?:both|they)\s(?:(?:answers|responses|assistants|options|are)\s){0,2}"
    r"(?:tied|equal|equally\s(?:good|bad|strong|weak))\b"
)


@dataclass(frozen=True, slots=True)
class Statements:
    """The patterns of one label set. In each, a label is group "label" or "bracketed", a tie "tie".

    Attributes:
        explicit: Statements that are verdicts by their form: `[[B]]`, `\\boxed{B}`, "the verdict
            is B", a line "Answer: B".
        prose: Sentences that favour a candidate: "B is better", "I choose B", "the answer is B".
        leading: A label and a full stop, bracket or colon before other text on its line.
    """

    explicit: re.Pattern[str]
    prose: re.Pattern[str]
    leading: re.Pattern[str]


@lru_cache(maxsize=256)
def statements_of(symbols: Symbols) -> Statements:
    """The patterns of a label set."""
    label = symbols.pattern
    named = f"(?P<label>{label})"
    follow = (
        rf"(?:['’]s)?(?=[*_\"”’'`)\]}}>.,:;!$]{{1,8}}+(?!\w)|[ \t]{{0,16}}(?:\n|\Z)"
        rf"|\s{{1,3}}{_AFTER_WORDS}\b|\s{{1,3}}{_TAIL_BETTER}|\s{{0,3}}[–—(]|\s{{1,3}}-\s|</)"
        rf"(?!\s{{0,3}}(?:[/&|]|or\b|and\b)\s{{0,3}}[(\"'*]{{0,2}}{label})"
    )
    filler = rf"(?:{_FILLER}{_GAP}{{1,6}}+){{0,5}}+{_GAP}{{0,6}}+"
    verdict = (
        r"\b(?:verdict|decision|judge?ment|winner|conclusion|preference"
        r"|final\s(?:answer|choice|selection|decision|verdict))"
    )
    strong = (
        rf"{verdict}{_GAP}{{0,8}}+(?:{_LINK}{_GAP}{{0,8}}+{filler}(?P<tie>{_TIE})"
        rf"|(?:{_LINK}{_GAP}{{0,8}}+){{0,2}}+{filler}{named}{follow})"
    )
    line = (
        rf"(?:\A|\n)[ \t*_#>-]{{0,8}}(?:answer|choice|option|selection|label|preferred|better|best"
        rf"|(?:the\s)?(?:correct|better|best)\s(?:answer|option|response|choice|one))"
        rf"[*_]{{0,3}}[ \t]{{0,2}}:{filler}(?P<named>{label})[*_\"”’'`)\]}}.!]{{0,4}}[ \t]{{0,16}}(?=\n|\Z)"
    )
    inside = r"[\s\"'“”`*_(]{0,4}"
    bracketed = (
        rf"\[\[{inside}(?:(?P<bracketed>{label})|(?P<tied>tie|draw|C)|(?P<left>{label})\s?"
        rf"(?P<order>>{{1,3}}|<{{1,3}}|=)\s?(?P<right>{label})){inside.replace('(', ')')}\]\]"
        rf"|\\boxed\{{(?:\\(?:text|textbf|mathrm|mathbf)\{{)?{inside}(?P<boxed>{label})"
        rf"[\s\"'”`*_.)]{{0,4}}\}}"
    )
    tagged = rf"<answer>\s{{0,8}}(?P<opened>{label})\s{{0,8}}\Z"
    aside = r"(?:\s(?:to|for|of|in|here|given)\b[^.\n:;!?\"]{0,80}?)?"
    cue = (
        r"\b(?:answer|choice|option|selection|pick|vote|label|(?:better|best|preferred|superior|"
        r"stronger|correct|right)(?:\s(?:one|response|assistant|output|candidate|model|reply|"
        r"summary|solution|story|completion|text|statement))?)"
    )
    generic = rf"{cue}{aside}{_GAP}{{0,8}}+{_LINK}{_GAP}{{0,8}}+{filler}{named}{follow}"
    favour = (
        r"\b(?:choose|chose|pick|select|prefer|favou?r|go(?:ing)?\swith|vote\sfor|opt\sfor|side\swith"
        r"|in\sfavou?r\sof|lean(?:ing)?\stowards?|award(?:ed)?\sto|goes\sto)"
    )
    chosen = (
        rf"{favour}\s{{1,3}}{filler}(?P<chosen>{label})(?:{follow}|(?=\s(?:as|over|to|here|is)\b))"
    )
    better = rf"(?P<favoured>{label})[*_\"”’'`)\]}}]{{0,4}}\s{{1,3}}{_TAIL_BETTER}"
    tie_prose = (
        r"\b(?:it(?:['’]s|\sis)|this\sis|call\s(?:it|this)|declare(?:\sit|\sthis)?|results?\s(?:is|in)"
        r"|ends?\sin|end\sup\sin)\s(?P<even>an?\s(?:tie|draw))\b"
    )
    flags = re.IGNORECASE
    return Statements(
        explicit=re.compile("|".join((bracketed, tagged, strong, line)), flags),
        prose=re.compile("|".join((generic, chosen, better, tie_prose)), flags),
        leading=re.compile(
            rf"(?:\A|\n)[ \t*_#>(\[-]{{0,8}}(?P<label>{label})[*_]{{0,3}}[.):\]][*_]{{0,3}}[ \t]+\S",
            flags,
        ),
    )


_HEDGE: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|whether|if|unless|hard|difficult|impossible|unclear|"
    r"claim(?:s|ed|ing)?|says?|said|saying|state[sd]?|argue[sd]?|assert(?:s|ed)?|writes?|wrote|"
    r"insist(?:s|ed)?|concludes|while|although|though|might|could|may|perhaps|between|which|initially)\b|n['’]t\b"
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
    before = text[max(0, start - 160) : start]
    cut = 0
    for match in _CLAUSE.finditer(before):
        cut = match.end()
    return _HEDGE.search(before, cut) is not None
