"""Text -> label: the strongest place of a reply that holds a verdict decides.

Places, strongest first, after reasoning and quotations are out (`quoting`):

1. a tag: `<answer>B</answer>`;
2. a mark: `[[B]]`, `[[A>B]]`, `\\boxed{B}`, `[RESULT] 3`;
3. a JSON object that ends the reply, under keys of which a word is a verdict word;
4. a line `words: LABEL`, or LABEL alone as the last line; the last sentence, or one that concludes,
   where all words are listed and one of them points to a verdict;
5. the first line: a label alone, or with a reason behind it.

A filled place closes the weaker ones: what names no single label (`places.place`) leaves the reply
unread. So do two labels in places of one rank, and another label after the deciding place. A tag or
mark that is only mentioned ("it ends with [[B]]") decides nothing. Of a reply that was cut off,
complete tags and marks count, or a label alone; of one of over 20 000 characters, the last tags and
marks. Time is linear.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from unswayed.model.parsing import places
from unswayed.model.parsing.listwise_json import JsonObject, json_texts
from unswayed.model.parsing.places import (
    DECLARED_TIE,
    UNCLEAR,
    Sought,
    alone,
    is_reason,
    listed,
    named,
    place,
    words_of,
)
from unswayed.model.parsing.quoting import spoken, unfenced, without_thinking
from unswayed.model.parsing.symbols import NO_LABEL, Symbols, straighten, symbols_of
from unswayed.model.parsing.words import (
    CONCLUDING,
    DENIED,
    FINAL,
    LEVEL,
    OTHERS,
    POINTING,
    TIE,
    TURNING,
)

LONGEST: Final = 20_000
"""Characters of a reply, without its reasoning, that are read by all rules."""
_NAMES: Final = (
    "(?:final_)?(?:answer|verdict)|final|label|winner|choice|decision|score|rating|level|grade|result|output"
    "|antwort|urteil|r[ée]ponse|respuesta|resposta|risposta|odpowiedź|cevap|ответ|答案|回答|정답|الإجابة"
)
_TAG: Final = re.compile(
    rf"(?i)<({_NAMES})\s{{0,4}}>(?P<tag>[^<]{{0,400}})(?:</\1\s{{0,4}}>|(?=<\1\s{{0,4}}>)|\Z)"
)
_MARK: Final = re.compile(
    r"(?i)\[\[(?P<mark>[^\[\]\n]{0,80})\]\]|\\boxed\s?\{(?P<box>(?:[^{}\n]|\{[^{}\n]{0,80}\}){0,200})\}"
    r"|\[RESULT\]\s{0,3}\(?(?P<result>[^\n]{0,80})"
)
_UNCLOSED: Final = re.compile(rf"(?i)<(?:{_NAMES})\s{{0,4}}>|\\boxed\s?\{{|\[\[")
_COMPARISON: Final = re.compile(r"(.{1,40}?)\s?(>{1,3}|<{1,3}|=)\s?([^<>=]{1,40})")
_SENTENCE: Final = re.compile(r"(?<=[.!?;।])(?=[\s*_\"”)]|\Z)|(?<=[。！？])|\n")
_CLAUSE: Final = re.compile(r"[,，、;–—]\s?(?:so\b)?")
_HEAD: Final = re.compile(
    r"[ \t_#>\[(【\-•|]{0,12}+([^\n:：=→\[\]】]{1,60}?)[ \t_\])|-]{0,6}(?:[:：=→\]】]|->|=>)(?!//)"
)
_EMPHASIS: Final = re.compile(r"(\*{1,3})([^*\n]{1,400})\1")
_NUMBERED: Final = re.compile(r"\s{0,3}[\d一二三四五][.)、]\s")
_RULE: Final = re.compile(r"[\s=_*|:-]*+")
_KEY_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
# The second pattern that knows English: words that report somebody's, unless they are the judge's own.
_REPORTS: Final = re.compile(
    r"(?i)\b(?:claim|say|said|stat(?:es|ed|ing)|assert|writ|wrote|insist|contain|includ|end(?:s|ing)|quot|print"
    r"|read(?:s|ing)|tell|told|ask|demand|instruct|hidden|tr(?:y|ies)|trick|inject|mention|repeat|ignor"
    r"|(?:system|user|example|prompt|quote|note)\s?:|even has)"
)
_OWN: Final = re.compile(r"(?i)\b(?:so|hence|thus|therefore|my|mine|i|final|verdict|overall)\b")
# The third: words before a tag or mark that deny it, and words behind it that make it a condition.
_DENIES: Final = re.compile(
    r"(?i)\b(?:not|never|cannot|instead of|refuse|told|(?:last|final) (?:lines?|words?)|the (?:first|second)"
    r" (?:answer|response|assistant|output|candidate))\b|n['’]t\b"
)
_SPOKEN_OF: Final = re.compile(
    r"(?i)\s{0,3}(?:if|when|was|would|could|might|is what|falls|loses|lost)\b"
)
_IS: Final = re.compile(r"(?i)(?:is|isn't|contains|means|ist|est|es)\b")
_OR: Final = re.compile(
    r"(?i)[\s*_]{0,4}(?:(?:or|oder|ou|o|или|of|veya|lub|hoặc|atau|eller)\b|/|または|或|또는|أو)"
)


def parse_label(
    text: str,
    symbols: Sequence[str],
    *,
    allow_tie: bool = True,
    quoted: Iterable[str] = (),
) -> str | Literal["tie"] | None:
    """Return the verdict that a reply states: one of `symbols`, `"tie"` if allowed, or None.

    >>> parse_label("Answer: (B)", "AB")
    'B'
    >>> parse_label("A or B, who knows", "AB") is None
    True

    Lines of `quoted` texts, which the judge may have quoted (the item's), do not count.
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
    """Return the label as an index; -1 for none, -2 for a declared tie.

    `form` is what the prompt asked for (`tag`, `mark`, `json`): the last of several such counts.
    `values` are the scores of levels, where they differ from their labels.
    """
    code = symbols.index(text.lstrip(" \t\r\n*_`\"'“(") if truncated else text.strip())
    if code >= 0:
        return NO_LABEL if truncated and symbols.goes_on(code) else code
    text = without_thinking(straighten(text)).strip()
    inside = unfenced(text)
    text = text if inside is None else inside.strip()
    if len(text) > LONGEST:
        text, truncated = text[-LONGEST:].partition("\n")[2] or text[-LONGEST:], True
    if scale and not values and all(label.isdecimal() for label in symbols.labels):
        values = [float(label) for label in symbols.labels]
    asked = Sought(symbols, texts, scale, values)
    is_whole = text.startswith("{") or _TAG.fullmatch(text.strip("`*")) is not None
    is_whole = is_whole or (
        scale and "\n" not in text and place(text, asked) >= 0
    )  # "Good" is a line of the item too
    own = text if is_whole else spoken(text, symbols, quoted).strip()
    code = _strongest(own, text, asked, form, truncated)
    return code if code >= 0 or code == DECLARED_TIE else NO_LABEL


def _strongest(own: str, text: str, asked: Sought, form: str | None, truncated: bool) -> int:
    """Read the strongest place of a reply; `own` is the text without its quotations."""
    for name, pattern in (("tag", _TAG), ("mark", _MARK)):
        matches = deque(() if text.startswith("{") else pattern.finditer(own), maxlen=50)
        used = [match for match in matches if not _is_mentioned(own, match, asked)]
        codes = [_inside(match, asked, truncated) for match in used]
        is_either = any(_OR.match(own, match.end()) for match in matches)
        if codes and not is_either and (len(set(codes) - {UNCLEAR}) < 2 or form == name):
            behind = "" if truncated else own[used[-1].end() :].strip(" \t\r\n*_`.,!)$")
            if not behind:
                return codes[-1]
            others = {_json(text, asked, form), _strongest(behind, behind, asked, None, False)}
            is_changed = others - {codes[-1], NO_LABEL, UNCLEAR} or places.takes_back(behind)
            return UNCLEAR if is_changed else codes[-1]
        if matches:
            return UNCLEAR
    if truncated:
        return NO_LABEL
    code = _json(text, asked, form)
    if code != NO_LABEL or text.startswith("{"):
        return code
    return UNCLEAR if _UNCLOSED.search(own) else _plain(own, asked)


def _inside(match: re.Match[str], asked: Sought, truncated: bool) -> int:
    """Read the content of a tag or mark; for two labels also `A>B`, `A=B`, and `C` as a tie."""
    if truncated and match.end() == len(match.string) and match[0][-1] not in ">]}":
        return UNCLEAR  # more of it may have followed
    inside = match[match.lastgroup or 0]
    code = place(inside, asked)
    if code < 0 and match.lastgroup != "tag" and len(asked.symbols.labels) == 2:
        core = inside.strip(" *_\"'")
        compared = _COMPARISON.fullmatch(core)
        sides = compared.group(1, 3) if compared is not None else ()
        pair = [place(side, asked, behind=places.NOTHING) for side in sides]
        if core.casefold() == "c":
            code = DECLARED_TIE
        elif compared is not None and min(pair) >= 0 and pair[0] != pair[1]:
            code = {">": pair[0], "<": pair[1]}.get(compared[2][0], DECLARED_TIE)
    return UNCLEAR if code == NO_LABEL else code


def _is_mentioned(text: str, match: re.Match[str], asked: Sought) -> bool:
    """Return True if a tag or mark is only mentioned: reported, denied, conditional, amid a sentence."""
    line = text.rfind("\n", 0, match.start()) + 1
    before = _SENTENCE.split(text[max(line, match.start() - 200) : match.start()])[-1]
    if _SPOKEN_OF.match(text, match.end()) or _DENIES.search(before) or _reports(before):
        return True
    if _hands_over(text[max(0, line - 160) : line]):
        return True
    behind = text[match.end() : match.end() + 80].partition("\n")[0].strip(" .*_`$)!。\"”'")
    before, behind = (asked.symbols.word.sub(" ", part) for part in (before, behind))
    if not behind.strip() or listed(behind):
        return False
    return listed(before) is None or _IS.match(behind.lstrip()) is not None


def _reports(text: str) -> bool:
    return _REPORTS.search(text) is not None and _OWN.search(text) is None


def _hands_over(before: str) -> bool:
    """Return True if a text ends in an unfinished sentence that reports words: "It ends with"."""
    said = _SENTENCE.split(before.rstrip(" \t\n*_"))[-1]
    return 2 < len(said.split()) < 13 and _reports(said)


def _json(text: str, asked: Sought, form: str | None) -> int:
    """Read the last JSON object; `NO_LABEL` if more than a remark on lines of its own follows."""
    nests = json_texts(text) if "}" in text else ()
    roots = [root for root in nests if isinstance(root, JsonObject) and root.is_whole]
    if not roots:
        return NO_LABEL
    start, end = roots[-1].start, roots[-1].end
    codes = [_of_object(root, asked) for root in roots]
    behind = text[end:].strip(" `")
    is_remark = behind[:1] == "\n" and is_reason(behind, codes[-1], asked) and not _reports(behind)
    if behind and not (is_remark and codes[-1] >= 0):
        return NO_LABEL
    if _REPORTS.search(text[max(0, start - 120) : start]) and start:
        return UNCLEAR
    return UNCLEAR if len(set(codes) - {UNCLEAR}) > 1 and form != "json" else codes[-1]


def _of_object(root: JsonObject, asked: Sought) -> int:
    """Read the verdict keys of an object; keys marked as final win over the others."""
    codes: set[int] = set()
    final: set[int] = set()
    for key, value in root.pairs:
        words = {word.casefold() for word in _KEY_WORD.findall(key)}
        is_level = not asked.scale and not words.isdisjoint(LEVEL)
        if not words & (POINTING | FINAL) or words & DENIED or is_level:
            continue
        if isinstance(value, JsonObject):
            code = _of_object(value, asked)
        else:
            said = f"{value:g}" if type(value) in {int, float} else value
            code = place(said.replace("_", " "), asked) if isinstance(said, str) else UNCLEAR
        (final if words & FINAL and words & (POINTING - FINAL) else codes).add(code)
    codes = final or codes
    code = codes.pop() if len(codes) == 1 else UNCLEAR
    return UNCLEAR if code == NO_LABEL else code


def _plain(text: str, asked: Sought) -> int:
    """Read the lines and sentences of a reply without tag, mark or JSON."""
    text = _EMPHASIS.sub(r"\2", text)
    rows = [row.strip() for row in text.split("\n") if not _RULE.fullmatch(row)]
    if len(rows) > 1 and listed(rows[-2]) and not named(rows[-2], asked.symbols):
        rows[-2:] = [f"{rows[-2].rstrip(':： ')}: {rows[-1]}"]  # "## Verdict" and a line below it
        text = "\n".join(rows)
    alone, leading = _headings(rows, asked)
    codes = [_row(k, rows, alone | leading, asked) for k in range(len(rows))]
    claims = [k for k, code in enumerate(codes) if code != NO_LABEL]
    head = _HEAD.match(rows[claims[-1]]) if claims else None
    if head is not None and not FINAL.isdisjoint(words_of(head[1])):
        claims = claims[-1:]
    said = _sentence(text, asked)
    stated = {codes[k] for k in claims} | {said}
    stated.discard(NO_LABEL)
    if head is None and said == NO_LABEL and len(alone | stated) > 1:
        return UNCLEAR
    behind = rows[claims[-1] + 1 :] if claims else rows[-1:]
    if len(stated) != 1 or any(map(places.takes_back, behind)):
        return UNCLEAR
    return stated.pop()


def _row(k: int, rows: Sequence[str], heading: set[int], asked: Sought) -> int:
    """Read row k; `NO_LABEL` for one without the head of a verdict, except the first and the last."""
    row, is_last = rows[k], k == len(rows) - 1
    head = _HEAD.match(row)
    code = NO_LABEL
    if head is not None and (k or not named(head[1], asked.symbols)):
        code = _headed(row, head, asked, is_last, len(rows))
    elif (is_last or not k) and not row.endswith("?") and (is_last or row[-1] not in ":：,"):
        code = place(row, asked, behind=places.LINE if len(heading) < 2 else places.NOTHING)
        is_other = not k and code >= 0 and not heading <= {code}
        code = NO_LABEL if code == UNCLEAR or is_other else code
    return UNCLEAR if k and code >= 0 and _hands_over(rows[k - 1]) else code


def _headed(row: str, head: re.Match[str], asked: Sought, is_last: bool, rows: int) -> int:
    """Read a row behind its head; `NO_LABEL` if the head or the row is not part of a verdict."""
    name, inside = _NUMBERED.sub("", head[1]).strip(places.EDGES), row[head.end() :]
    words = words_of(name)
    is_level = not asked.scale and not LEVEL.isdisjoint(words)
    if (
        is_level
        or not DENIED.isdisjoint(words)
        or re.search(r"\d", name)
        or named(name, asked.symbols)
    ):
        return NO_LABEL
    if TIE.issuperset(words) and words:  # "Empate: ..."
        return UNCLEAR if named(inside, asked.symbols) else DECLARED_TIE
    if listed(name):
        code = place(inside, asked)
        if (code == NO_LABEL and not is_last) or (code == UNCLEAR and len(inside) > 40):
            return NO_LABEL  # a heading, or prose behind a colon
        return UNCLEAR if code == NO_LABEL else code
    # A head in a language that the lists do not know.
    code = place(inside, asked, behind=places.NOTHING)
    is_foreign = is_last and rows <= 2 and 0 < len(words) <= 5 and not name.isascii()
    return (
        code
        if is_foreign and code >= 0 and not asked.symbols.labels[code].isdecimal()
        else NO_LABEL
    )


def _headings(rows: Iterable[str], asked: Sought) -> tuple[set[int], set[int]]:
    """Return the labels that are a line of their own, and those that head a line."""
    alone: set[int] = set()
    leading: set[int] = set()
    for row in rows:
        core = _NUMBERED.sub("", row[: 80 + asked.symbols.longest]).strip(
            places.EDGES + "[(（【<>/="
        )
        match = next(iter(named(core, asked.symbols)), None)
        if match is None or listed(core[: match.start()]) is None:
            continue
        behind = core[match.end() :].lstrip(")]}）】*_")
        if not behind.strip(places.EDGES + ".,[]()<>="):
            alone.add(asked.symbols.index(match[0]))
        elif behind[0] in ".:：" or core[match.end()] in ")]" or re.match(" [-–—] ", behind):
            leading.add(asked.symbols.index(match[0]))
    return alone, leading


def _sentence(text: str, asked: Sought) -> int:
    """Read the last sentence, or one that concludes; `UNCLEAR` if an earlier one differs."""
    parts = [p for p in _SENTENCE.split(text[-2000:])[-16:] if p.strip(places.EDGES + ")")][-8:]
    if not parts or (len(text) > 2000 and len(parts) == 1) or text.rstrip(" _\"”').").endswith("?"):
        return NO_LABEL
    codes = [_of_sentence(part, asked) for part in parts]
    heads = [len(words_of(p)) < 3 and ":" not in p and alone(p, asked.symbols) >= 0 for p in parts]
    if not heads[-1]:
        codes = [NO_LABEL if head else code for head, code in zip(heads, codes, strict=True)]
    if codes[-1] != NO_LABEL:
        is_final = not FINAL.isdisjoint(words_of(parts[-1]))
        return codes[-1] if is_final or set(codes) <= {NO_LABEL, codes[-1]} else UNCLEAR
    pairs = list(zip(parts, codes, strict=True))
    concluded = {code for part, code in pairs if not CONCLUDING.isdisjoint(words_of(part[:40]))}
    concluded.discard(NO_LABEL)
    if concluded:
        return concluded.pop() if len(concluded) == 1 else NO_LABEL
    first = next((k for k, code in enumerate(codes) if code != NO_LABEL), len(codes))
    behind = parts[first + 1 :]
    is_last = behind and len(text) <= 2000 and not any(map(_turns, behind))
    return (
        codes[first] if is_last and is_reason(" ".join(behind), codes[first], asked) else NO_LABEL
    )


def _turns(sentence: str) -> bool:
    """Return True if a sentence changes direction: "However, ...", "... the second one"."""
    words = words_of(sentence)
    return not (TURNING.isdisjoint(words[:3]) and OTHERS.isdisjoint(words))


def _of_sentence(sentence: str, asked: Sought) -> int:
    """Read a sentence if all of its words are listed and one of them points."""
    head, colon, _ = sentence.partition(":")
    if "?" in sentence or "¿" in sentence or (colon and not DENIED.isdisjoint(words_of(head))):
        return NO_LABEL
    code = place(sentence, asked, behind=places.LISTED)
    is_plain = DENIED.isdisjoint(words_of(sentence)) and not named(sentence, asked.symbols)
    if code == UNCLEAR and is_plain:  # "..., so it's a tie."
        code = place(_CLAUSE.split(sentence)[-1], asked)
    points = code == DECLARED_TIE or not POINTING.isdisjoint(words_of(sentence))
    return code if points and code != UNCLEAR else NO_LABEL
