"""The forms in which a reply states a verdict, as patterns made once per label set.

No pattern backtracks over more than a bounded stretch, so each takes time linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from unswayed.parsing.symbols import Symbols

__all__ = [
    "contrasts",
    "headings",
    "leading_labels",
    "marked_verdicts",
    "named_numbers",
    "praise",
    "prose_verdicts",
    "stated_verdicts",
]

_INSIDE: Final = r"[\s\"'“”`*_(]{0,4}"
_LINK: Final = r"(?:is|was|would be|should be|must be|will be|goes to|remains|:|=|->|→|–|—|-)"
NOUNS: Final = (
    "assistant|answer|option|response|candidate|output|model|choice|letter|label|number|reply|"
    "summary|story|version|text|one|solution|completion|statement"
)
"""What a candidate or its label may be called."""
_FILLERS: Final = (
    "therefore|thus|clearly|definitely|definitively|probably|likely|obviously|simply|still|also|"
    f"indeed|actually|that|the|my|labelled|labeled|{NOUNS}"
)
_AFTER_WORDS: Final = (
    r"(?:because|since|as|due|given|based|over|rather|although|though|while|despite|by|with|wins|"
    r"and\sthe\s(?:worse|wrong)|for\s(?:its|the|being|having|their|several|these))"
)
_BETTER: Final = (
    r"(?:better|best|superior|stronger|strongest|preferable|preferred|winner|winning)\b"
)
_SURE: Final = (
    r"(?:clear|significant|slight|definite|marginal|considerab|substantial|notab|certain|obvious|general|"
    r"ultimate|undoubted|overal|objective|simp|probab|on|evident|decided|vast|real|noticeab|like|markedl?)ly\b"
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
    gap: str
    follow: str
    filler: str
    better: str


@lru_cache(maxsize=256)
def _parts(symbols: Symbols) -> _Parts:
    label = symbols.pattern
    begins = {text[0] for text in symbols.labels}
    # Between a cue and its label: white space, Markdown, quotation marks, opening brackets.
    gap = "[\\s" + "".join(re.escape(c) for c in "*_\"“'`([{$#>" if c not in begins) + "]"
    first_words = {text.split()[0].casefold() for text in symbols.labels}
    nouns = _without(NOUNS, first_words)
    fillers = _without(_FILLERS, first_words)
    rival = rf"than\s(?:(?:the|{nouns})\s){{0,3}}[\"'(*_]{{0,2}}(?:{label}|(?:other|first|second|rest)\b)"
    # "Better in style", "better than A at rhyming", "the best example of" are no verdicts.
    ends = (
        rf"(?!\s(?:{rival}\S{{0,4}}\s)?(?:in(?!\s(?:all|every|most)\b)|at|on|for|with|when|if|suited)\b)"
        rf"(?=[*_\"”’'`)\]]{{0,6}}\s{{0,3}}(?:\Z|[.,;:!–—()<\[\\-]|(?:{rival})"
        rf"|(?:{nouns}|of\sthe\stwo|overall|because|since|as|due|here|and|in\s(?:all|every|most)|given|while|"
        r"although|though|but|so|between|among|compared)\b))"
    )
    better = (
        r"(?:(?:is|was|seems|appears|comes out|remains)\s{1,3}"
        r"(?:(?!(?:not|never|neither|no|less|hardly|barely|far|supposedly|arguably|allegedly|thought|said"
        rf"|believed|claimed|supposed|rarely|only|merely|perhaps|maybe|possibly|nowhere|scarcely|unlikely|(?!{_SURE})\w{{1,20}}ly)\b)"
        rf"[\w-]{{1,20}}\s{{1,3}}){{0,4}}?{_BETTER}{ends}"
        rf"|is\s(?:my|the)\s(?:final\s)?(?:answer|choice|pick|verdict)\b|wins\b{ends})"
    )
    # What may follow a label in a sentence that names it as the verdict: the sentence ends, a
    # reason begins, or it is said to be better; never another label ("A or B").
    follow = (
        rf"(?:['’]s)?(?=[*_\"”’'`)\]}}>.,:;!$]{{1,8}}+(?!\w)|[ \t]{{0,16}}(?:\n|\Z)"
        rf"|\s{{1,3}}{_AFTER_WORDS}\b|\s{{1,3}}{better}|\s{{0,3}}[–—(]|\s{{1,3}}-\s|</)"
        rf"(?![*_\"”’'`)\]]{{0,4}}[ \t]{{0,3}}(?:[/&|,;+]|\b(?:or|and|then|also)\b|(?=\())"
        rf"(?:[ \t]{{0,3}}\b(?:or|and|then|also)\b)?[ \t]{{0,3}}[(\"'*]{{0,3}}(?:and\s|or\s|also\s)?{label}"
        r"[*_\"”’'`)\]]{0,4}[ \t]{0,3}(?:[.,;:!)/&|+]|\band\b|\bor\b|\n|\Z))"
    )
    filler = rf"(?:(?:{fillers}){gap}{{1,6}}+){{0,5}}+{gap}{{0,6}}+"
    return _Parts(label, gap, follow, filler, better)


def _without(words: str, labels: set[str]) -> str:
    """An alternation without the words that a label begins with ("model" of Model X)."""
    return "|".join(word for word in words.split("|") if word not in labels)


@lru_cache(maxsize=256)
def marked_verdicts(symbols: Symbols) -> re.Pattern[str]:
    r"""`[[B]]`, `[[A>B]]`, `\boxed{B}`.

    Groups: "bracketed" or "boxed" hold the label, "tied" a tie, "left", "order", "right" a
    comparison.
    """
    label = symbols.pattern
    inside = _INSIDE.replace("(", "") if any("(" in text for text in symbols.labels) else _INSIDE
    noun = rf"(?:(?:{NOUNS})\s)?"
    return re.compile(
        rf"\[\[{inside}(?:{noun}(?P<bracketed>{label})|(?P<tied>tie|draw|C)|(?P<left>{label})\s?"
        rf"(?P<order>>{{1,3}}|<{{1,3}}|=)\s?(?P<right>{label})){inside.replace('(', ')')}\]\]"
        rf"|\\boxed\{{(?:\\(?:text|textbf|mathrm|mathbf)\{{)?{inside}(?P<boxed>{label})"
        r"[\s\"'”`*_.)]{0,4}\}",
        re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def stated_verdicts(symbols: Symbols) -> re.Pattern[str]:
    """Statements that are verdicts by their words.

    "The verdict is B", a line "Answer: B", an `<answer>B` that ends the reply. Groups: "label",
    "opened" or "named" hold the label, "tie" a tie.
    """
    parts = _parts(symbols)
    label, gap, follow, filler = parts.label, parts.gap, parts.follow, parts.filler
    verdict = (
        r"(?<![\w-])(?:verdict|decision|judge?ment|winner|conclusion|preference"
        r"|final\s(?:answer|choice|selection|decision|verdict))"
    )
    strong = (
        rf"{verdict}{gap}{{0,8}}+(?:{_LINK}{gap}{{0,8}}+{filler}(?P<tie>{_TIE})"
        rf"|(?:{_LINK}{gap}{{0,8}}+){{0,2}}+{filler}(?P<label>{label}){follow})"
    )
    line = (
        r"(?:\A|\n)[ \t*_#>-]{0,8}(?:answer|choice|option|selection|label|preferred|better|best"
        r"|(?:the\s)?(?:correct|better|best)\s(?:answer|option|response|choice|one))"
        rf"[*_]{{0,3}}[ \t]{{0,2}}:{filler}(?P<named>{label})"
        r"[*_\"”’'`)\]}.!]{0,4}[ \t]{0,16}(?=\n|\Z)"
    )
    opened = rf"<answer>\s{{0,8}}(?P<opened>{label})\s{{0,8}}\Z"
    return re.compile("|".join((opened, strong, line)), re.IGNORECASE)


@lru_cache(maxsize=256)
def prose_verdicts(symbols: Symbols) -> re.Pattern[str]:
    """Sentences that favour a candidate: "B is better", "I choose B", "the answer is B".

    Groups: "label", "chosen" or "favoured" hold the label, "even" a tie; "judge" and "given" tell
    who chooses ("I would pick", "it goes to"), without them the sentence may be an order.
    """
    parts = _parts(symbols)
    label, gap, follow, filler = parts.label, parts.gap, parts.follow, parts.filler
    aside = r"(?:\s(?:to|for|of|in|here|given)\b(?:[ \t][^\s.:;!?\"]{1,24}+){0,8}?)?"
    cue = (
        r"\b(?:answer|choice|option|selection|pick|vote|label|(?:better|best|preferred|superior|"
        r"stronger|correct|right)(?:\s(?:one|response|assistant|output|candidate|model|reply|"
        rf"summary|solution|story|completion|text|statement))?){aside}"
    )
    generic = (
        rf"{cue}(?:{gap}{{0,8}}+{_LINK}){{1,2}}{gap}{{0,8}}+{filler}(?P<label>{label}){follow}"
    )
    favour = (
        r"\b(?:(?P<judge>(?:i|we)(?:['’](?:d|ll|m|ve|re)|\sam)?\s(?:\w{1,20}\s){0,3}?)?"
        r"(?:choose|chose|pick|select|prefer|favou?r|go(?:ing)?\swith|vote\sfor|opt\sfor|side\swith"
        r"|lean(?:ing)?\stowards?)"
        r"|(?P<given>i(?:['’]d|['’]ll|\swould|\swill)?\ssay|in\sfavou?r\sof|award(?:ed)?\sto|goes\sto))"
    )
    chosen = (
        rf"{favour}\s{{1,3}}{filler}(?P<chosen>{label})(?:{follow}|(?=\s(?:as|over|to|here|is)\b))"
    )
    better = (
        rf"(?P<favoured>{label})(?:['’]s\s(?:{NOUNS})\b)?[*_\"”’'`)\]}}]{{0,4}}"
        rf"\s{{1,3}}{parts.better}"
    )
    tie = (
        r"\b(?:it(?:['’]s|\sis)|this\sis|call\s(?:it|this)|declare(?:\sit|\sthis)?|results?\s(?:is|in)"
        r"|ends?\sin|end\sup\sin)\s(?P<even>an?\s(?:tie|draw))\b"
    )
    return re.compile("|".join((generic, chosen, better, tie)), re.IGNORECASE)


@lru_cache(maxsize=256)
def contrasts(symbols: Symbols) -> re.Pattern[str]:
    """What takes a sentence back after it: ", but B ...", ". However, B ..."; group "label"."""
    near = r"[^.!?\n]{0,80}?"
    return re.compile(
        rf"{near}(?:\bbut\b|[.!]\s{{1,3}}(?:But|However|Still|Yet)\b){near}(?-i:(?P<label>{symbols.pattern}))"
    )


@lru_cache(maxsize=256)
def named_numbers(symbols: Symbols) -> re.Pattern[str]:
    """Candidates that are called by a number: "response 1"."""
    return re.compile(rf"\b(?:{NOUNS})\s{symbols.pattern}", re.IGNORECASE)


@lru_cache(maxsize=256)
def praise(symbols: Symbols) -> re.Pattern[str]:
    """ "B is correct": a verdict only where nothing else is said; group "label"."""
    return re.compile(
        rf"(?P<label>{symbols.pattern})[*_\"”’'`)\]}}]{{0,4}}\s{{1,3}}is\s(?:(?:the|clearly|therefore)\s){{0,2}}"
        r"(?:correct|right)\b(?!\s(?:in|about|that|to)\b)",
        re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def leading_labels(symbols: Symbols) -> re.Pattern[str]:
    """A label with a full stop or bracket before other text on its line: group "label"."""
    return re.compile(
        rf"[ \t*_#>(\[-]{{0,8}}(?P<label>{symbols.pattern})[*_]{{0,3}}[.)\]]"
        r"[*_]{0,3}[ \t]+(?!I\s(?:can|will|won|am|do)|I['’]m|Sorry|Unable|or\b|and\b)"
        rf"(?![*_(\[\"']{{0,4}}{symbols.pattern}(?:[*_)\]\"'.,]|\s{{0,4}}\Z))\S",
        re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def headings(symbols: Symbols) -> re.Pattern[str]:
    """A label that heads a line: alone, or before punctuation (`**Answer A:** ...`, `A - ...`)."""
    return re.compile(
        rf"(?:\A|\n)[ \t*_#>(\[\]<=|/-]{{0,8}}+(?:\d{{1,2}}[.)][ \t]{{1,4}})?[*_]{{0,3}}"
        rf"(?:(?:{NOUNS})[ \t]{{1,3}})?[(\"'*_]{{0,3}}(?P<label>{symbols.pattern})"
        r"[*_)\"'>]{0,4}[ \t]{0,16}(?:[.:)\]|=,;]|[—–-][ \t]|(?=\n|\Z))",
        re.IGNORECASE,
    )
