"""Text -> label: the strongest place of a reply that holds a verdict decides.

Places, strongest first, after reasoning and quotations are out (`quoting`):

1. a tag: `<answer>B</answer>`;
2. a mark: `[[B]]`, `[[A>B]]`, `\\boxed{B}`, `[RESULT] 3`;
3. a JSON object that ends the reply, under a key of which a word is a verdict word;
4. a line `words: LABEL`, or LABEL alone as the last line; the last sentence, or one that begins
   with a concluding word, where all of its words are listed and one of them points;
5. the first line: a label alone, or with a reason behind it.

What a place holds is read by `places.place`. A filled place closes the weaker ones, an empty tag
too: what names no single label leaves the reply unread, and so do two labels in places of one rank
and another label after the deciding place. A tag or mark that is only mentioned ("it ends with
[[B]]") is none. Of a reply that was cut off only complete tags and marks count, or a label alone;
of one longer than 20 000 characters the tags and marks of the last 20 000. Time is linear.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from unswayed.parsing.places import (
    DECLARED_TIE,
    EDGES,
    UNCLEAR,
    WITHDRAWS,
    Asked,
    Behind,
    listed,
    named,
    pieces_of,
    place,
    words_of,
)
from unswayed.parsing.quoting import spoken, unfenced, without_thinking
from unswayed.parsing.symbols import NO_LABEL, Symbols, straighten, symbols_of
from unswayed.parsing.words import CONCLUDING, DENIED, FINAL, LEVEL, POINTING

__all__ = ["DECLARED_TIE", "LONGEST", "parse_label", "read_label"]

LONGEST: Final = 20_000
"""Characters of a reply, without its reasoning, that are read by all rules."""
_NAMES: Final = (
    "answer|verdict|final_answer|final_verdict|final|label|winner|choice|decision|score|rating|level"
    "|grade|result|output"
)
_TAG: Final = re.compile(
    rf"<({_NAMES})\s{{0,4}}>([^<]{{0,400}})(?:</\1\s{{0,4}}>|(?=<\1\s{{0,4}}>)|\Z)", re.I
)
_MARK: Final = re.compile(
    r"\[\[([^\[\]\n]{0,80})\]\]|\\boxed\s?\{((?:[^{}\n]|\{[^{}\n]{0,80}\}){0,200})\}"
    r"|\[RESULT\]\s{0,3}\(?([^\n]{0,80})",
    re.I,
)
_OPENED: Final = re.compile(rf"<(?:{_NAMES})\s{{0,4}}>|\\boxed\s?\{{", re.I)
_COMPARISON: Final = re.compile(r"(.{1,40}?)\s?(>{1,3}|<{1,3}|=)\s?([^<>=]{1,40})")
_SENTENCE: Final = re.compile(r"[.!?;।](?=[\s*_\"”)]|\Z)|[。！？]|\n")
_HEAD: Final = re.compile(
    r"[ \t*_#>\[(【\-•|]{0,12}+([^\n:：=→\[\]】]{1,60}?)[ \t*_\])|-]{0,6}(?:[:：=→\]】]|->|=>)(?!//)"
)
_DENIED_RUNS: Final = tuple(word for word in DENIED if word >= "\u2e80")
_NUMBERED: Final = re.compile(r"\s{0,3}[\d一二三四五][.)、]\s")
_RULE: Final = re.compile(r"[\s=_*|:-]*+")
_KEY_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_JSON: Final = json.JSONDecoder(object_pairs_hook=tuple)
# The second pattern that knows English: words that report somebody's, and those of the judge's own.
_REPORTS: Final = re.compile(
    r"\b(?:claim|say|said|stat(?:es|ed|ing)|assert|writ|wrote|insist|contain|includ|end(?:s|ing)|quot"
    r"|read(?:s|ing)|tell|told|ask|demand|instruct|hidden|tr(?:y|ies)|trick|inject|print|mention|repeat"
    r"|ignor|(?:system|user|example|prompt|quote|note)\s?:|even has)",
    re.I,
)
_OWN: Final = re.compile(r"\b(?:so|hence|thus|therefore|my|mine|i|final|verdict|overall)\b", re.I)
# The third: words that deny a tag or mark, or make it a condition.
_DENIES: Final = re.compile(
    r"\b(?:not|never|cannot|instead of|refuse|told|(?:last|final) (?:lines?|words?)|the (?:first|second)"
    r" (?:answer|response|assistant|output|candidate))\b|n['’]t\b",
    re.I,
)
_FOLLOWS: Final = re.compile(r"\s{0,3}(?:if|when|was|would|could|might|is what|falls)\b", re.I)
_OR: Final = re.compile(r"[\s*_]{0,4}(?:or|oder|ou|o|или|或|/)\b", re.I)
_STATED_VERBS: Final = frozenset(
    ["is", "was", "isn't", "loses", "lost", "would", "could", "contains", "means", "ist", "est", "es"]
)


class _Claim(NamedTuple):
    """A place that may hold a verdict: where it stands, and what `place` reads in it."""

    start: int
    end: int
    code: int


def parse_label(
    text: str,
    symbols: Sequence[str],
    *,
    allow_tie: bool = True,
    quoted: Iterable[str] = (),
) -> str | Literal["tie"] | None:
    """The verdict that a reply states.

    >>> parse_label("Answer: (B)", "AB")
    'B'
    >>> parse_label("A or B, who knows", "AB") is None
    True

    Args:
        text: The reply.
        symbols: The label set.
        allow_tie: False reads an explicit tie as no verdict.
        quoted: Texts the judge may have quoted (the item's); their lines do not count.

    Returns:
        One of `symbols`, `"tie"`, or None where the reply states no verdict.
    """
    code = read_label(text, symbols_of(symbols), quoted=quoted)
    if code >= 0:
        return symbols[code]
    return "tie" if code == DECLARED_TIE and allow_tie else None


def read_label(
    text: str,
    symbols: Symbols,
    *,
    quoted: Iterable[str] = (),
    texts: Sequence[str] = (),
    scale: bool = False,
    values: Sequence[float] = (),
    form: str | None = None,
    truncated: bool = False,
) -> int:
    """The label as an index; -1 for none, -2 for a declared tie.

    Args:
        text: The reply.
        symbols: The label set.
        quoted: Texts the judge may have quoted.
        texts: The candidate's text by label, where known.
        scale: The labels are levels of a scale.
        values: The score of each level, where it has one.
        form: What the prompt asked for (`tag`, `mark`, `json`): the last of several such counts.
        truncated: The reply was cut off.
    """
    code = symbols.index(text.lstrip(" \t\r\n*_`\"'“(") if truncated else text.strip())
    if code >= 0:
        return NO_LABEL if truncated and symbols.goes_on(code) else code
    text = without_thinking(straighten(text)).strip()
    inside = unfenced(text)
    text = text if inside is None else inside.strip()
    if len(text) > LONGEST:
        text, truncated = text[-LONGEST:].partition("\n")[2] or text[-LONGEST:], True
    asked = Asked(symbols, texts, scale, values)
    if text.startswith("{"):
        code = NO_LABEL if truncated else _json(text, asked, form)[0]
    else:
        own = text if _TAG.fullmatch(text.strip("`*")) else spoken(text, symbols, quoted).strip()
        code = _strongest(own, text, asked, form, truncated)
    return code if code >= 0 or code == DECLARED_TIE else NO_LABEL


def _strongest(own: str, text: str, asked: Asked, form: str | None, truncated: bool) -> int:
    """What the strongest place says; `own` is the text without its quotations."""
    for name, pattern in (("tag", _TAG), ("mark", _MARK)):
        claims = _marked(own, pattern, asked, truncated)
        if claims is None:
            return UNCLEAR
        if not claims:
            continue
        last = claims[-1]
        codes = {claim.code for claim in claims} - {UNCLEAR}
        if len(codes) > 1 and form != name:
            return UNCLEAR
        behind = own[last.end :].strip(" \t\r\n*_`.$")
        if behind and not truncated and _is_changed(behind, last.code, asked):
            return UNCLEAR
        return last.code
    if truncated:
        return NO_LABEL
    code, start = _json(text, asked, form)
    if start >= 0:
        return UNCLEAR if _REPORTS.search(text[max(0, start - 120) : start]) else code
    if _OPENED.search(own) or own.count("[[") != own.count("]]"):
        return UNCLEAR
    return _plain(own, asked)


def _is_changed(behind: str, code: int, asked: Asked) -> bool:
    """True if the words behind a tag or mark state another label, or take it back."""
    if WITHDRAWS.match(behind.lstrip(" !.,*_)")):
        return True
    codes = {place(behind, asked, behind=Behind.NOTHING), _sentence(behind, asked)}
    codes |= {claim.code for claim in _lines(behind, asked, set())}
    codes |= {claim.code for claim in _marked(behind, _MARK, asked, False) or ()}
    codes.add(_json(behind, asked, None)[0])
    return not codes <= {code, NO_LABEL, UNCLEAR}


# --- tags, marks, JSON ---------------------------------------------------------------------------


def _marked(
    text: str, pattern: re.Pattern[str], asked: Asked, truncated: bool
) -> list[_Claim] | None:
    """The last tags or marks that are used; None if all are only mentioned, or one is an "or"."""
    claims: list[_Claim] = []
    matches = deque(pattern.finditer(text), maxlen=50)
    for match in matches:
        if _OR.match(text, match.end()):
            return None
        if _is_mentioned(text, match.start(), match.end(), asked):
            continue
        inside = match[2] if pattern is _TAG else next(g for g in match.groups() if g is not None)
        code = _compared(inside, asked) if pattern is _MARK else NO_LABEL
        code = place(inside, asked) if code == NO_LABEL else code
        if truncated and match.end() == len(text) and text[-1:] not in ">]}":
            code = UNCLEAR
        claims.append(_Claim(match.start(), match.end(), UNCLEAR if code == NO_LABEL else code))
    return claims if claims or not matches else None


def _is_mentioned(text: str, start: int, end: int, asked: Asked) -> bool:
    """True if a tag or mark is spoken of: reported, denied, conditional, amid a sentence."""
    if _FOLLOWS.match(text, end):
        return True
    line = text.rfind("\n", 0, start) + 1
    before = _SENTENCE.split(text[max(line, start - 200) : start])[-1]
    if (_REPORTS.search(before) and not _OWN.search(before)) or _DENIES.search(before):
        return True
    if _hands_over(text[max(0, line - 160) : line]):
        return True
    behind = text[end : end + 80].partition("\n")[0].strip(" .*_`$)!。\"”'")
    if not behind or listed(asked.symbols.word.sub(" ", behind)):
        return False
    return (
        behind.split()[0].casefold() in _STATED_VERBS
        or listed(asked.symbols.word.sub(" ", before)) is None
    )


def _hands_over(before: str) -> bool:
    """True if a text ends in an unfinished sentence that reports words: "It ends with"."""
    said = _SENTENCE.split(before.rstrip(" \t\n*_"))[-1]
    return 2 < len(said.split()) < 13 and bool(_REPORTS.search(said)) and not _OWN.search(said)


def _compared(inside: str, asked: Asked) -> int:
    """`A>B`, `A=B`, `C` as a tie: the marks of two-answer judging; `NO_LABEL` if it is none."""
    core = inside.strip(" *_\"'")
    if len(asked.symbols.labels) != 2:
        return NO_LABEL
    if core.casefold() == "c" and asked.symbols.index(core) < 0:
        return DECLARED_TIE
    match = _COMPARISON.fullmatch(core)
    if match is None:
        return NO_LABEL
    left, right = (place(side, asked, behind=Behind.NOTHING) for side in match.group(1, 3))
    if min(left, right) < 0 or left == right:
        return UNCLEAR
    return {"=": DECLARED_TIE, ">": left, "<": right}[match[2][0]]


def _json(text: str, asked: Asked, form: str | None) -> tuple[int, int]:
    """The verdict of the JSON object that ends a reply, and where it starts (-1: there is none)."""
    body = text.rstrip().removesuffix("```").rstrip()
    if not body.endswith("}"):
        return (UNCLEAR, 0) if body.startswith("{") else (NO_LABEL, -1)
    codes, at, end = [], body.find("{"), 0
    for _ in range(50):
        if at < 0:
            break
        try:
            pairs, end = _JSON.raw_decode(body, at)
        except (ValueError, RecursionError):
            at = body.find("{", at + 1)
            continue
        codes.append(_of_pairs(pairs, asked))
        start, at = at, body.find("{", end)
    if end != len(body):
        return (UNCLEAR, 0) if body.startswith("{") else (NO_LABEL, -1)
    differ = len(set(codes) - {UNCLEAR}) > 1 and form != "json"
    return (UNCLEAR if differ else codes[-1]), start


def _of_pairs(pairs: object, asked: Asked) -> int:
    """What the verdict keys of an object say; the one that is marked as final counts alone."""
    codes, final = set(), set()
    for key, value in pairs if isinstance(pairs, tuple) else ():
        words = {word.casefold() for word in _KEY_WORD.findall(key)}
        if not words & (POINTING | FINAL) or words & DENIED:
            continue
        if not asked.scale and words & LEVEL:
            continue
        if isinstance(value, tuple) and value:
            code = _of_pairs(value, asked)
        elif type(value) in {str, int, float}:
            code = place(str(value).replace("_", " "), asked)
        else:
            code = UNCLEAR
        codes.add(UNCLEAR if code == NO_LABEL else code)
        if words & FINAL and words & POINTING - FINAL:
            final.add(code)
    codes = final or codes
    return codes.pop() if len(codes) == 1 else UNCLEAR


# --- lines and sentences -------------------------------------------------------------------------


def _plain(text: str, asked: Asked) -> int:
    """What lines and sentences say, in a reply without tag, mark or JSON."""
    alone, heads = _headings(text, asked)
    claims = _lines(text, asked, heads)
    codes = {claim.code for claim in claims}
    headed = bool(claims) and _HEAD.match(text[claims[-1].start : claims[-1].end]) is not None
    if headed and FINAL & set(words_of(text[claims[-1].start : claims[-1].end])):
        codes = {claims[-1].code}
    if (code := _sentence(text, asked)) != NO_LABEL:
        codes.add(code)
    if codes and codes != {DECLARED_TIE} and len(alone | codes) > 1 and not headed:
        return UNCLEAR
    code = _first(text, asked) if not claims or claims[0].start > 0 else NO_LABEL
    if code >= 0 and (alone | heads) - {code}:
        code = NO_LABEL
    if code != NO_LABEL:
        codes.add(code)
    return codes.pop() if len(codes) == 1 else UNCLEAR


def _lines(text: str, asked: Asked, heads: set[int]) -> list[_Claim]:
    """Lines "words: LABEL" whose words are listed, and LABEL alone as the last line below others."""
    claims: list[_Claim] = []
    rows = list(_rows(text))
    for number, (start, row) in enumerate(rows):
        is_last = number == len(rows) - 1
        head = _HEAD.match(row)
        code = NO_LABEL
        if head is not None:
            code = _headed(row, head, asked, is_last, len(rows))
        elif is_last and number:
            code = _last(row, asked, heads)
        if code != NO_LABEL:
            if number and _hands_over(rows[number - 1][1]):
                code = UNCLEAR
            claims.append(_Claim(start, start + len(row), code))
    return claims


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with where they start."""
    at = 0
    for row in text.split("\n"):
        bare = row.strip()
        if bare and not _RULE.fullmatch(bare):
            yield at, bare.strip("* ") if bare[0] == bare[-1] == "*" else row
        at += len(row) + 1


def _headed(row: str, head: re.Match[str], asked: Asked, is_last: bool, rows: int) -> int:
    """What a line says behind its head: `NO_LABEL` if the head or the line is none of a verdict."""
    name = _NUMBERED.sub("", head[1]).strip(EDGES)
    words = words_of(name)
    if (
        asked.symbols.index(name) >= 0
        or not DENIED.isdisjoint(words)
        or any(map(str.isdigit, name))
    ):
        return NO_LABEL
    if not asked.scale and not LEVEL.isdisjoint(words):
        return NO_LABEL
    inside = row[head.end() :]
    if named(name, asked.symbols) or any(word in name for word in _DENIED_RUNS):
        return NO_LABEL
    if listed(name):
        code = place(inside, asked)
        is_heading = code == NO_LABEL and not is_last
        is_prose = code < 0 and code != DECLARED_TIE and len(inside) > 40
        return NO_LABEL if is_heading or is_prose else UNCLEAR if code == NO_LABEL else code
    code = place(inside, asked, behind=Behind.NOTHING)
    counts = is_last and rows <= 2 and 0 < len(words) <= 5 and not name.isascii()
    return code if counts and code >= 0 and not asked.symbols.labels[code].isdecimal() else NO_LABEL


def _last(row: str, asked: Asked, heads: set[int]) -> int:
    """What the last line says if it is a label, or begins with one: "**B.** It is exact."."""
    if row.rstrip(" *_").endswith("?"):
        return NO_LABEL
    code = place(row, asked, behind=Behind.NOTHING)
    if code < 0 and len(heads) < 2 and asked.symbols.word.match(row.lstrip("*_ (")):
        code = place(row, asked)
        return NO_LABEL if code >= 0 and _is_item(row, code, asked) else max(code, NO_LABEL)
    return max(code, NO_LABEL)


def _headings(text: str, asked: Asked) -> tuple[set[int], set[int]]:
    """The labels that are a line of their own, and those that head a line."""
    alone: set[int] = set()
    heads: set[int] = set()
    for _, row in _rows(text):
        core = _NUMBERED.sub("", row[: 80 + asked.symbols.longest]).strip(EDGES + "[(（【<>/=")
        match = next(iter(named(core, asked.symbols)), None)
        if match is None or listed(core[: match.start()]) is None:
            continue
        behind = core[match.end() :].lstrip(")]}）】*_")
        if not behind.strip(EDGES + ".,[]()<>="):
            alone.add(asked.symbols.index(match[0]))
        elif (
            behind[0] in ".:：" or core[match.end()] in ")]" or behind[:3] in {" - ", " – ", " — "}
        ):
            heads.add(asked.symbols.index(match[0]))
    return alone, heads


def _sentence(text: str, asked: Asked) -> int:
    """What the last sentence says, or one that concludes; `UNCLEAR` if an earlier one differs."""
    tail = text[-2000:]
    if tail.rstrip(" *_\"”').").endswith("?"):
        return NO_LABEL
    sentences = [part for part in _SENTENCE.split(tail) if part.strip(EDGES + ")")]
    if not sentences or (len(text) > 2000 and len(sentences) == 1):
        return NO_LABEL
    codes = [_of_sentence(part, asked) for part in sentences[-8:]]
    if codes[-1] == NO_LABEL:
        if WITHDRAWS.search(text[-200:]):
            return NO_LABEL
        concluded = {
            code
            for code, part in zip(codes, sentences[-8:], strict=True)
            if not CONCLUDING.isdisjoint(words_of(part[:40]))
        } - {NO_LABEL}
        return concluded.pop() if len(concluded) == 1 else NO_LABEL
    if FINAL.isdisjoint(words_of(sentences[-1])) and set(codes) - {NO_LABEL, codes[-1]}:
        return UNCLEAR
    return codes[-1]


def _of_sentence(sentence: str, asked: Asked) -> int:
    """What a sentence says if all of its words are listed and one of them points."""
    if "?" in sentence or "¿" in sentence:
        return NO_LABEL
    head, colon, _ = sentence.partition(":")
    if colon and not DENIED.isdisjoint(words_of(head)):
        return NO_LABEL
    code = place(sentence, asked, behind=Behind.LISTED)
    if code == DECLARED_TIE:
        return code
    is_verdict = code >= 0 and not POINTING.isdisjoint(pieces_of(sentence))
    return code if is_verdict else NO_LABEL


def _first(text: str, asked: Asked) -> int:
    """What the first line says: a label alone, or with a reason behind it."""
    rows = [row for _, row in _rows(text)]
    row, rest = rows[0] if rows else "", "\n".join(rows[1:3])
    head = _HEAD.match(row)
    if (head is not None and not named(head[1], asked.symbols)) or "?" in row[-3:]:
        return NO_LABEL
    if rest and row.rstrip(" *_").endswith((":", "：", ",")):
        return NO_LABEL
    code = place(row, asked)
    if code == UNCLEAR or (code >= 0 and _is_item(row, code, asked)):
        return NO_LABEL
    return UNCLEAR if code >= 0 and WITHDRAWS.search(rest[:200]) else code


def _is_item(row: str, code: int, asked: Asked) -> bool:
    """True if a line may discuss a label or count lines: "Answer A: clear", "1. Both are correct."."""
    match = next(iter(named(row, asked.symbols)), None)
    behind = row[match.end() :].lstrip("*_)]") if match is not None else ""
    text = asked.texts[code].strip().casefold() if code < len(asked.texts) else ""
    if (
        match is None
        or asked.scale
        or not behind[1:].strip()
        or (text and text in behind.casefold())
    ):
        return False
    counts = match[0].isdecimal()
    return behind[0] in ":：" or (counts and (behind[0] == "." or row[match.end()] == ")"))
