"""Statements that are no verdicts: denied, doubted, reported, about the worse one, taken back.

Three stretches of text around a statement are looked at, none longer than 200 characters:

* its clause, up to the punctuation before it ("I cannot say that B is better");
* its sentence, where words reach over a comma or a colon ("According to the first, B is better",
  "it ends with: B"); a line that ends with a colon belongs to the line after it;
* what follows in the sentence ("B is better, or is it?").
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["corrects", "is_hedged", "is_reported", "retracts"]

_REACH: Final = 200
_CLAUSE: Final = re.compile(r"[.,;:!?\n](?=\s)|\n|—")
_SENTENCE: Final = re.compile(r"[.!?;](?=\s|\Z)|(?<![:\n])\n")
_REPORTS: Final = (
    r"claim(?:s|ed|ing)?|says?|said|saying|state[sd]?|stating|argue[sd]?|assert(?:s|ed)?|writ(?:es?|ing)"
    r"|wrote|written|insist(?:s|ed)?|concludes|contain(?:s|ed|ing)?|include[sd]?|including|ends?|ending"
    r"|closes|quote[sd]?|reads|reading|tells?|told|asks?|asking|demands?|orders?|instructs?"
    r"|hidden|tr(?:y|ies)|tricks?|inject(?:s|ed)?|puts\sit|(?:last|final)\s(?:lines?|words?)|in\sthe\swords\sof"
    r"|prints?|outputs?\s['\"`]|mentions?|repeats?|ignor(?:e|es|ed|ing)"
)
_REPORT: Final = re.compile(rf"\b(?:{_REPORTS})\b", re.IGNORECASE)
# A speaker before a colon: "System: the verdict is B".
_SPEAKER: Final = re.compile(
    r"\b(?:(?:system|user|quote|note|analysis|example|question|prompt|text|string|retract|previously)\s{0,2}"
    r"|instructions?\b[^:]{0,60}):",
    re.IGNORECASE,
)
_OWN: Final = re.compile(
    r"\b(?:so|hence|thus|therefore|my|mine|i|final\s(?:verdict|answer)|verdict|conclu\w{1,6}|overall)\b",
    re.IGNORECASE,
)
_FIRST_PERSON: Final = re.compile(
    r"\b(?:i|we)(?:['’]d|['’]ll|\s(?:would|will|must|can|have\sto))?\s(?:only\s|then\s)?"
    r"(?:say|conclude|state|argue)\b",
    re.IGNORECASE,
)
_HEDGE: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|whether|if|unless|hard|hardly|difficult|impossible|unclear|while|"
    r"although|though|might|could|may|perhaps|maybe|possibly|between|which|initially|either|doubt\w{0,4}"
    r"|unlikely|(?:un)?true\sthat|false|falsely|wrong\s(?:that|to)|mistake|disagree|denies|deny|refuse\w{0,2}"
    r"|tempted|previously|opposite|retract|almost|nearly|far\sfrom|according\sto|assum\w{1,4}|suppos\w{1,5}|hypothe\w{1,8}|theory"
    r"|no\s(?:way|reason|sense|case)|nobody|no\sone|(?:any|every)(?:thing|one|body)\sbut|at\sfirst|rarely|seldom"
    r"|would\sbe\s(?:wrong|odd)|once\sthought|used\sto|fail\w{0,3}|pretend\w{0,3})\b|n['’]t\b"
    rf"|\b(?:{_REPORTS})\b"
    r"|\A\s*for\b"
    # "A's final" answer is somebody's, "here's my" answer is the judge's.
    r"|\b(?!(?:it|here|that|there|what|let|who)['’])\w{1,40}['’]s\s(?:\w{1,20}\s){0,2}\Z",
    re.IGNORECASE,
)
_FAR_HEDGE: Final = re.compile(
    r"\b(?:according\sto|if(?!\si\s(?:had|have|must|were|am|was))|unless|assuming|supposing|suppose|in\stheory|"
    r"maybe|perhaps|either|doubt|puts\sit|in\sthe\swords\sof|hypothetically|"
    r"would\shave|tempted)\b|\baside\s*,",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"\?|\A[\s,]*not\s*\Z|\A\s{0,3}is\s(?:false|wrong|untrue|what)\b|\b(?:if|unless|were\sit|had\sit|or\s(?:is|not|maybe|perhaps)|too\b|as\swell|"
    r"would\s(?:be|have)|(?:as|equally)\slikely|supposedly|not\ssure|unsure|says?|said|claims?|does\snot|"
    r"doesn['’]t|in\stheory|at\sfirst)\b",
    re.IGNORECASE,
)
# The end of a line that somebody's words follow: "it ends with the line".
_ANNOUNCES: Final = re.compile(
    rf"\b(?:{_REPORTS}|with|this|following|that|by|verdict|lines?|words?|outputs?|tags?|strings?|text|message|notes?)\Z",
    re.IGNORECASE,
)
_FIRST: Final = re.compile(r"\b(?:so|hence|thus|therefore|my|mine|i)\b", re.IGNORECASE)
# "Verdict: A (worse)", "A - no".
_WORSE_AFTER: Final = re.compile(
    r"[\s*_]{0,4}[(–—-][\s*_(]{0,4}(?:worse|weak\w{0,3}|wrong|incorrect|inferior|bad|poor|los\w{1,4}|reject\w{0,3}"
    r"|disqualif\w{1,4}|no|not|edit|schlechter|falsch|pire|peor)\b",
    re.IGNORECASE,
)
# A mark that is spoken of: "[[A]] would be unfair".
_SPOKEN_OF: Final = re.compile(
    r"[ \t*_`]{0,4}(?:(?:was|were|would|could|might|may|loses|contains|comes|tries|seems|looks|means|which|whenever)\b"
    r"|(?:is|isn['’]t)\b(?!\s(?:my|the\s(?:better|best|final|winner|correct|right|preferred|stronger|superior)"
    r"|better|best|preferred|superior|stronger|correct|right|clearly)\b))",
    re.IGNORECASE,
)
_ALTERNATIVE: Final = re.compile(r"[^\w\n]{0,8}\bor\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!\n](?=\s|\Z)|\n|<")
# What may come before the comma: "In terms of style, A is better" says something else.
_ASIDE: Final = re.compile(
    r"\A\s*(?:[*_]{0,3})(?:without|except|ignoring|apart|aside|once|when|were|had|should|on|in|under|after|per"
    r"|following|excluding|leaving|setting|disregarding|from|by|for|looking|as\s(?:for|to|regards)|regarding"
    r"|concerning|with|purely|previously|earlier|last\stime|initially|at\sfirst|[a-z]{2,20}ly)\b",
    re.IGNORECASE,
)
_WEIGHED: Final = re.compile(
    r"\A\s*(?:[*_]{0,3})(?:in\s(?:conclusion|summary|short|sum|total|comparison|all|fact|my|the\send|light|general|this|terms)"
    r"|on\s(?:balance|the\swhole)|from\smy|by\s(?:far|comparison|contrast)|(?:clear|ultimate|final|consequent|"
    r"accordin\w|obvious|evident|definite|certain|sure|undoubted|plain|honest|frank|simp|decided|unequivocal|"
    r"personal|general|objective|actual|real)ly"
    r"|after\s(?:care|weigh|consider|compar|review|analy|evaluat|examin|read|assess|all|a\scareful|think)"
    r"|with\s(?:this|that|all|these)|for\s(?:these|this|that|those|all|me|the\s(?:above|reasons?|following)))",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(r"\s{0,3}(?:if|when)\b", re.IGNORECASE)
_RETRACTS: Final = re.compile(
    r"\b(?:(?:cannot|can['’]t|could\snot|couldn['’]t)\s(?:really\s)?(?:decide|tell|say|choose|judge)|undecided|"
    r"on\s(?:second\sthought|reflection)|wait\b|scratch\sthat|take\s(?:that|it)\sback|correction|"
    r"change\smy\s(?:mind|verdict|answer)|h+mm*\b|\A(?:oh\s)?no\b|i\smeant|i\swas\swrong|just\skidding|joking|\Anot\W*\Z|hard\sto\s(?:say|tell))",
    re.IGNORECASE,
)
_CORRECTS: Final = re.compile(
    r"\b(?:no|wait|actually|correction|instead|rather|reconsider\w{0,3}|on\s(?:second|reflection)|"
    r"revis\w{1,4}|final\w{0,2}|sorry|mistake|i\smeant?)\b",
    re.IGNORECASE,
)


def is_hedged(text: str, start: int, end: int, named: int) -> bool:
    """Whether a statement is denied, doubted, conditional or somebody's.

    Args:
        text: The reply.
        start: Where the statement begins.
        end: Where it ends.
        named: Where its label begins.
    """
    clause = _FIRST_PERSON.sub(" ", _since(_CLAUSE, text, start))
    own = _FIRST_PERSON.sub(" ", text[start:named])
    if _HEDGE.search(clause) or _HEDGE.search(own):
        return True
    sentence = _FIRST_PERSON.sub(" ", _since(_SENTENCE, text, start))
    if _FAR_HEDGE.search(sentence) or _introduced(sentence):
        return True
    if _ASIDE.match(sentence) and not _WEIGHED.match(sentence):
        return True
    if _ALTERNATIVE.match(text, end) or _WORSE_AFTER.match(text, end) or _is_announced(text, start):
        return True
    rest = text[end : end + _REACH]
    stop = _SENTENCE_END.search(rest)
    return _AFTER.search(rest if stop is None else rest[: stop.start()]) is not None


def is_reported(text: str, start: int, end: int) -> bool:
    """Whether a tag or bracket at [start, end) is someone's ("it ends with ...") or conditional."""
    sentence = _since(_SENTENCE, text, start)
    if _CONDITION.match(text, end) or _SPOKEN_OF.match(text, end):
        return True
    if _is_announced(text, start):
        return True
    reports = [match.end() for match in _REPORT.finditer(sentence)]
    if reports and _OWN.search(sentence, reports[-1]) is None:
        return True
    return _SPEAKER.search(sentence) is not None


def _is_announced(text: str, start: int) -> bool:
    """Whether the line before one with a verdict says that somebody's words follow."""
    line_start = text.rfind("\n", max(0, start - _REACH), start) + 1
    before = text[max(0, line_start - _REACH) : line_start].rstrip(" \t\n*_#>`")
    said = _SENTENCE.split(before)[-1].strip()
    return (
        " " in said  # who says it, and that it is said
        and _REPORT.search(said) is not None
        and _ANNOUNCES.search(said) is not None
        and _FIRST.search(said) is None
    )


def retracts(text: str) -> bool:
    """Whether words after a verdict take it back: "On reflection I cannot decide."."""
    return _RETRACTS.search(text.lstrip(" !.,*_)")) is not None


def corrects(text: str) -> bool:
    """Whether words between two verdicts correct the first one: "No, wait:"."""
    return _CORRECTS.search(text) is not None


def _introduced(sentence: str) -> bool:
    """Whether a colon in a sentence hands over to somebody else's words."""
    before, colon, _ = sentence.rpartition(":")
    if not colon:
        return False
    return _SPEAKER.search(sentence) is not None or (
        _REPORT.search(before) is not None and _OWN.search(before) is None
    )


def _since(boundary: re.Pattern[str], text: str, start: int) -> str:
    """The text from the last boundary before `start`, at most 200 characters of it."""
    before = text[max(0, start - _REACH) : start]
    cut = 0
    for match in boundary.finditer(before):
        cut = match.end()
    return before[cut:]
