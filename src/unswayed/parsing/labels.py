"""Text -> label: from what a reply states, by rules of which the strongest that applies decides.

1. The whole reply is a label (`B`, `**B**`, `Option (b).`) or ends with JSON that names one.
2. `<answer>X</answer>`; else the whole reply is "the answer is X" or "tie".
3. A mark: `[[X]]`, `[[X>Y]]`, `\\boxed{X}`.
4. An explicit statement: "the verdict is X", a line "Answer: X".
5. A line of its own that is a label, the last or the first, if no other label heads a line.
6. A sentence that favours a candidate: "X is better", "I choose X", "the better answer is X".
7. A first or last line that begins `X.` or `X)`, if no other label heads a line; "X is correct".

Nothing else counts, least of all a capital letter somewhere in prose. Reasoning and quotations are
taken out first (`quoting`). What is denied, doubted or reported (`hedges`), and what is about the
worse one or said by somebody else (`subjects`), is passed over.

Of two different verdicts neither is read, unless the second is marked as final: a tag, a mark, a
statement or a last line settles what weaker rules found before it. So a rule gives no verdict
where its own places disagree, or where a weaker one has another verdict after it; a statement and
a sentence give none beside a line (5, 7) with another verdict, wherever that stands. A second tag
counts over a first one only where the words between them correct it. Words that take a verdict
back ("on reflection I cannot decide") leave none.

A reply that was cut off has only complete tags and marks, or is a label and nothing more: whatever
follows could change anything else. Of a reply longer than 20 000 characters without its reasoning
the tags and marks in the last 20 000 are read. Reading takes time linear in the length.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from unswayed.parsing.hedges import corrects, is_hedged, is_reported, retracts
from unswayed.parsing.json_replies import json_verdict
from unswayed.parsing.quoting import is_short, spoken, unfenced, without_thinking
from unswayed.parsing.statements import (
    contrasts,
    headings,
    leading_labels,
    marked_verdicts,
    named_numbers,
    praise,
    prose_verdicts,
    stated_verdicts,
)
from unswayed.parsing.subjects import is_about_the_better, is_opened_plainly
from unswayed.parsing.symbols import NO_LABEL, Symbols, straighten, symbols_of

__all__ = ["DECLARED_TIE", "LONGEST", "parse_label", "read_label"]

DECLARED_TIE: Final = -2
"""Code of an explicit tie (`NO_LABEL`, -1, is the code of no verdict)."""
LONGEST: Final = 20_000
"""Characters of a reply, without its reasoning, that are read by all rules: below 50 ms."""
_TAG: Final = re.compile(
    r"<(answer|verdict|final_answer)\s{0,4}>([^<]{0,200})(?:</\1\s{0,4}>|(?=<\1\s{0,4}>))",
    re.IGNORECASE,
)
_TIE_ALONE: Final = re.compile(
    r"[\W_]*(?:(?:the\s)?(?:final\s)?(?:verdict|answer|result|decision|winner)\s?(?:is|:|=)?[\s*_]*)?"
    r"(?:it(?:['’]s|\sis)\s)?(?:an?\s)?(?:tie|draw|tied|equal|even"
    r"|(?:both|they)\s(?:(?:are|answers|responses|options|assistants)\s){0,2}"
    r"(?:tied|equal|equally\s(?:good|bad|strong|weak)))[*_\s.!)\]\"'”’]*",
    re.IGNORECASE,
)
_BEGINNING: Final = re.compile(
    r"(?:\A|[.,;:!\n*])\s{0,3}(?:(?:so|thus|hence|therefore)\s)?\Z", re.IGNORECASE
)
# A heading, and a turn of a conversation.
_NOT_STATED: Final = re.compile(
    r":[ \t*_#]*\Z|\A[\s*_]*(?:assistant|user|human|system)\s?:", re.IGNORECASE
)
_CUT_FRONT: Final = " \t\r\n*_`\"'“("
_PREFERS: Final = re.compile(
    r"\b(?:better|best|preferred|superior|stronger|choice|option|selection|pick|vote|label|one|response"
    r"|assistant|output|candidate|model|reply)\b",
    re.IGNORECASE,
)
_LAST: Final = 50
"""How many of the last statements of one kind are looked at."""


class _Claim(NamedTuple):
    """A place that names a verdict: where it stands, and the code."""

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
    text: str, symbols: Symbols, *, quoted: Iterable[str] = (), truncated: bool = False
) -> int:
    """The label as an index; -1 for none, -2 for a declared tie.

    Args:
        text: The reply.
        symbols: The label set.
        quoted: Texts the judge may have quoted.
        truncated: The reply was cut off: only complete tags and marks count, and a label alone.
    """
    short = symbols.index(text.lstrip(_CUT_FRONT) if truncated else text.strip())
    if short != NO_LABEL:
        return NO_LABEL if truncated and symbols.goes_on(short) else short
    text = without_thinking(straighten(text)).strip()
    if not text:
        return NO_LABEL
    inside = unfenced(text)
    text = text if inside is None else inside.strip()
    if len(text) > LONGEST:
        text, truncated = text[-LONGEST:].partition("\n")[2] or text[-LONGEST:], True
    if not truncated and _is_balanced(text) and is_short(text.strip("[]<>~"), symbols):
        return NO_LABEL if "~~" in text else symbols.bare(text.strip("[]<>"))
    code, is_final = json_verdict(text, lambda value: _whole(value, symbols))
    if code != NO_LABEL or is_final:
        return code
    alone = _TAG.fullmatch(text.strip("`*"))
    own = text if alone is not None else spoken(text, symbols, quoted).strip()
    return _settled(own, symbols, truncated=truncated)


def _is_balanced(text: str) -> bool:
    return text.count("[") == text.count("]") and text.count("<") == text.count(">")


def _settled(text: str, symbols: Symbols, *, truncated: bool) -> int:
    """The verdict of the strongest rule, unless another one stands against it."""
    tags, marks = _tags(text, symbols), _marks(text, symbols)
    if not tags and not truncated and (code := _stated(text, symbols)) != NO_LABEL:
        return code
    statements, (prose, opinions) = _statements(text, symbols), _prose(text, symbols)
    lines, leading = _lines(text, symbols)
    ranks = (tags, marks, statements, lines, prose, leading)
    for rank, claims in enumerate(ranks[:2] if truncated else ranks):
        if not claims:
            continue
        last = claims[-1]
        is_split = any(claim.code != last.code for claim in claims)
        if is_split and (rank or not _is_corrected(text, claims)):
            return NO_LABEL
        rivals = [claim for weaker in (*ranks[rank + 1 : 5], opinions) for claim in weaker]
        rivals = [claim for claim in rivals if claim.start > last.start]
        if rank in {2, 4}:
            rivals += [*lines, *leading]
        if any(claim.code != last.code for claim in rivals) or retracts(text[last.end :]):
            return NO_LABEL
        return last.code
    codes = set() if truncated else _praised(text, symbols)
    return codes.pop() if len(codes) == 1 else NO_LABEL


def _whole(text: str, symbols: Symbols) -> int:
    code = symbols.bare(text)
    if code != NO_LABEL:
        return code
    if len(text) < 80 and _TIE_ALONE.fullmatch(text):
        return DECLARED_TIE
    return NO_LABEL


def _stated(line: str, symbols: Symbols) -> int:
    """The verdict that is all a line says; a heading ("Answer A:") is none."""
    if not _is_balanced(line) or _NOT_STATED.search(line):
        return NO_LABEL
    return _whole(line, symbols)


def _last(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The last matches: a reply with more verdicts than that states none of them."""
    return iter(deque(pattern.finditer(text), maxlen=_LAST))


def _tags(text: str, symbols: Symbols) -> list[_Claim]:
    claims = []
    for match in _last(_TAG, text):
        if (
            is_reported(text, match.start(), match.end())
            or text[match.start() - 1 : match.start()] == "'"
        ):
            continue  # mentioned, not used
        code = _whole(match[2], symbols)
        if code != NO_LABEL:
            claims.append(_Claim(match.start(), match.end(), code))
    return claims


def _is_corrected(text: str, tags: list[_Claim]) -> bool:
    """Whether the words between the last two tags correct the first of them."""
    earlier, last = tags[-2:]
    between = text[earlier.end : last.start]
    return earlier.code != last.code and len(between) < 200 and corrects(between)


def _marks(text: str, symbols: Symbols) -> list[_Claim]:
    claims = []
    for match in _last(marked_verdicts(symbols), text):
        if is_reported(text, match.start(), match.end()):
            continue
        if match["left"] is not None:
            code = _comparison(match, symbols)
        elif match["tied"] is not None:
            # [[C]] is a tie in the convention of two-answer judging, unless C is a label.
            is_tie = match["tied"].casefold() != "c" or len(symbols.labels) == 2
            code = DECLARED_TIE if is_tie else NO_LABEL
        else:
            code = symbols.index(match["bracketed"] or match["boxed"])
        if code != NO_LABEL:
            claims.append(_Claim(match.start(), match.end(), code))
    return claims


def _comparison(match: re.Match[str], symbols: Symbols) -> int:
    """`[[A>B]]`, `[[A>>B]]`, `[[A=B]]`: a verdict where there are two labels."""
    left, right = symbols.index(match["left"]), symbols.index(match["right"])
    if left == right or len(symbols.labels) != 2:
        return NO_LABEL
    if match["order"] == "=":
        return DECLARED_TIE
    return left if match["order"].startswith(">") else right


def _statements(text: str, symbols: Symbols) -> list[_Claim]:
    claims = []
    for match in _last(stated_verdicts(symbols), text):
        start, end = match.span()
        start += match[0].startswith("\n")
        named = _named(match, "opened", "named", "label", "tie")
        if is_hedged(text, start, end, named) or _is_headed(text, start, symbols):
            continue
        if not is_about_the_better(text, start, named, strictly=False):
            continue
        if _is_one_of_headings(text, named, symbols):
            continue
        label = match["opened"] or match["named"] or match["label"]
        claims.append(_Claim(start, end, DECLARED_TIE if label is None else symbols.index(label)))
    return claims


def _named(match: re.Match[str], *groups: str) -> int:
    """Where the label of a statement begins."""
    return next(match.start(group) for group in groups if match[group] is not None)


def _lines(text: str, symbols: Symbols) -> tuple[list[_Claim], list[_Claim]]:
    """The first or last line as a label, and as one that leads its line: if none else heads one."""
    heads = {symbols.index(match["label"]) for match in headings(symbols).finditer(text)}
    if len(heads) > 1:
        return [], []
    pattern = leading_labels(symbols)
    last = text.rfind("\n") + 1
    alone, leading = [], []
    for start in sorted({0, last}):
        line = text[start:].partition("\n")[0]
        code = _stated(line, symbols) if last else NO_LABEL
        if code != NO_LABEL and not is_reported(text, start, start + len(line)):
            alone.append(_Claim(start, start + len(line), code))
        # A label that is a number or stands by its case is a list item or an initial.
        match = pattern.match(text, start)
        if match is not None and symbols.folds and not match["label"].isdigit():
            leading.append(_Claim(start, match.end(), symbols.index(match["label"])))
    return alone, leading


def _prose(text: str, symbols: Symbols) -> tuple[list[_Claim], list[_Claim]]:
    """Sentences that favour a candidate, and those of which it is unclear who says so.

    The latter ("critics hold that B is better") are no verdict, but stand against one before them.
    """
    claims: list[_Claim] = []
    opinions: list[_Claim] = []
    for match in _last(prose_verdicts(symbols), text):
        start, end = match.span()
        named = _named(match, "label", "chosen", "favoured", "even")
        if is_hedged(text, start, end, named) or _is_headed(text, start, symbols):
            continue
        if match["label"] is not None and not is_about_the_better(text, start, named):
            continue
        if match["chosen"] and not (match["judge"] or match["given"] or _begins(text, start)):
            continue  # "it tells me to choose B"
        label = match["label"] or match["chosen"] or match["favoured"]
        code = DECLARED_TIE if label is None else symbols.index(label)
        is_plain = match["favoured"] is None or is_opened_plainly(text, named)
        if _is_contrasted(text, end, label, symbols) or _is_a_result(match, symbols):
            is_plain = False
        (claims if is_plain else opinions).append(_Claim(start, end, code))
    return claims, opinions


def _is_contrasted(text: str, end: int, label: str | None, symbols: Symbols) -> bool:
    """Whether words about another candidate stand against a sentence: "I prefer A, but B ..."."""
    match = contrasts(symbols).match(text, end)
    return match is not None and label is not None and match["label"] != label


def _is_a_result(match: re.Match[str], symbols: Symbols) -> bool:
    """Whether "the correct answer is 2" may be about the question, as candidates have numbers."""
    if match["label"] is None or not match["label"].isdigit() or _PREFERS.search(match[0]):
        return False
    return named_numbers(symbols).search(match.string.replace(match[0], " ")) is not None


def _is_one_of_headings(text: str, named: int, symbols: Symbols) -> bool:
    """Whether a label heads its line and others head theirs: "Verdict:", "A: weak", "B: strong"."""
    line = max(0, text.rfind("\n", 0, named))
    if line == 0:
        return False
    heads = list(headings(symbols).finditer(text, line))
    return (
        bool(heads)
        and heads[0].start("label") == named
        and any(symbols.index(head["label"]) != symbols.index(heads[0]["label"]) for head in heads)
    )


def _is_headed(text: str, start: int, symbols: Symbols) -> bool:
    """Whether a label heads the line of a statement: "Answer A: the answer is B"."""
    line = max(0, text.rfind("\n", 0, start))
    heading = headings(symbols).match(text, line)
    return heading is not None and heading.end() <= start and text[heading.end() - 1] == ":"


def _begins(text: str, start: int) -> bool:
    """Whether a clause begins there: "Choose B", "Therefore choose B"."""
    return _BEGINNING.search(text, max(0, start - 40), start) is not None


def _praised(text: str, symbols: Symbols) -> set[int]:
    return {
        symbols.index(match["label"])
        for match in _last(praise(symbols), text)
        if not is_hedged(text, match.start(), match.end(), match.start())
    }
