"""Text -> label. The order of rules, the first that finds something decides:

1. The whole reply is a label (`B`, `**B**`, `Option (b).`), or JSON that names one.
2. The last well-formed `<answer>X</answer>`; else the whole reply is "the answer is X" or "tie".
3. The last explicit statement: `[[X]]`, `\\boxed{X}`, "the verdict is X", a line "Answer: X".
4. A line of its own that is a label: the last line, else the first.
5. The last sentence that favours a candidate: "X is better", "I choose X", "the answer is X".
6. A first or last line that begins `X.`, `X)` or `X:`, if no other label begins a line like that.

Nothing else counts, least of all a capital letter somewhere in prose. Reasoning and quotations are
taken out first (`quoting`). Sentences that deny, doubt or report ("A's answer is B") are passed
over, and so are tags and brackets that are reported ("it says <answer>A</answer>"). Reading takes
time linear in the length of the reply.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from unswayed.parsing.quoting import is_short, spoken, unfenced, without_thinking
from unswayed.parsing.statements import (
    explicit_verdicts,
    is_hedged,
    is_reported,
    leading_labels,
    prose_verdicts,
)
from unswayed.parsing.symbols import NO_LABEL, Symbols, straighten, symbols_of

__all__ = ["DECLARED_TIE", "parse_label", "read_label"]

DECLARED_TIE: Final = -2
"""Code of an explicit tie (`NO_LABEL`, -1, is the code of no verdict)."""
_TAG: Final = re.compile(
    r"<(answer|verdict|final_answer)\s{0,4}>([^<]{0,200})</\1\s{0,4}>", re.IGNORECASE
)
_TIE_ALONE: Final = re.compile(
    r"[\W_]*(?:(?:the\s)?(?:final\s)?(?:verdict|answer|result|decision|winner)\s?(?:is|:|=)?[\s*_]*)?"
    r"(?:it(?:['’]s|\sis)\s)?(?:an?\s)?(?:tie|draw|tied|equal|even"
    r"|(?:both|they)\s(?:(?:are|answers|responses|options|assistants)\s){0,2}"
    r"(?:tied|equal|equally\s(?:good|bad|strong|weak)))[\W_]*",
    re.IGNORECASE,
)
_JSON_KEYS: Final = (
    "verdict",
    "answer",
    "final_answer",
    "final_verdict",
    "choice",
    "winner",
    "label",
    "decision",
    "better",
    "best",
    "preference",
    "preferred",
    "selection",
    "selected",
    "result",
)
_JSON_LIMIT: Final = 100_000
_LAST: Final = 50
"""How many of the last statements of one kind are looked at."""


def parse_label(
    text: str,
    symbols: Sequence[str],
    *,
    allow_tie: bool = True,
    quoted: Iterable[str] = (),
) -> str | Literal["tie"] | None:
    """The verdict that a reply states.

    Args:
        text: The reply.
        symbols: The label set.
        allow_tie: False reads an explicit tie as no verdict.
        quoted: Texts the judge may have quoted (the item's); their lines do not count.

    Returns:
        One of `symbols`, `"tie"`, or None where the reply states no verdict.
    """
    found = read_label(text, symbols_of(symbols), quoted=quoted)
    if found >= 0:
        return symbols[found]
    return "tie" if found == DECLARED_TIE and allow_tie else None


def read_label(
    text: str, symbols: Symbols, *, quoted: Iterable[str] = (), truncated: bool = False
) -> int:
    """The label as an index; -1 for none, -2 for a declared tie.

    Args:
        text: The reply.
        symbols: The label set.
        quoted: Texts the judge may have quoted.
        truncated: The reply was cut off: only complete tags and brackets count.
    """
    short = symbols.index(text.strip())
    if short != NO_LABEL:
        return short
    text = without_thinking(straighten(text)).strip()
    if not text:
        return NO_LABEL
    inside = unfenced(text)
    text = text if inside is None else inside.strip()
    if not truncated and is_short(text.strip("[]<>"), symbols):
        return symbols.bare(text)
    found, is_json = _from_json(text, symbols)
    if found != NO_LABEL or is_json:
        return found
    own = spoken(text, symbols, quoted).strip()
    found = _last_tag(own, symbols)
    if found != NO_LABEL:
        return found
    found = NO_LABEL if truncated else _whole(own, symbols)
    if found != NO_LABEL:
        return found
    found = _explicit(own, symbols, truncated=truncated)
    if found != NO_LABEL or truncated:
        return found
    for rule in (_own_line, _prose, _leading):
        found = rule(own, symbols)
        if found != NO_LABEL:
            return found
    return NO_LABEL


def _whole(text: str, symbols: Symbols) -> int:
    found = symbols.bare(text)
    if found != NO_LABEL:
        return found
    if len(text) < 80 and _TIE_ALONE.fullmatch(text):
        return DECLARED_TIE
    return NO_LABEL


def _last(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The last matches, last first: a reply with more verdicts than that states none of them."""
    return reversed(deque(pattern.finditer(text), maxlen=_LAST))


def _last_tag(text: str, symbols: Symbols) -> int:
    for match in _last(_TAG, text):
        if is_reported(text, match.start()) or text[match.start() - 1 : match.start()] == "'":
            continue  # mentioned, not used
        found = _whole(match[2], symbols)
        if found != NO_LABEL:
            return found
    return NO_LABEL


def _explicit(text: str, symbols: Symbols, *, truncated: bool) -> int:
    for match in _last(explicit_verdicts(symbols), text):
        if match[0][0] in "[\\" and is_reported(text, match.start()):
            continue
        if match["left"] is not None:
            found = _comparison(match, symbols)
            if found != NO_LABEL:
                return found
        elif match["tied"] is not None:
            # [[C]] is a tie in the convention of two-answer judging, unless C is a label.
            if match["tied"].casefold() != "c" or len(symbols.labels) == 2:
                return DECLARED_TIE
        elif match["bracketed"] is not None or match["boxed"] is not None:
            return symbols.index(match["bracketed"] or match["boxed"])
        elif truncated:
            continue
        elif match["opened"] is not None or match["named"] is not None:
            return symbols.index(match["opened"] or match["named"])
        elif not is_hedged(text, match.start()):
            return DECLARED_TIE if match["tie"] is not None else symbols.index(match["label"])
    return NO_LABEL


def _comparison(match: re.Match[str], symbols: Symbols) -> int:
    """`[[A>B]]`, `[[A>>B]]`, `[[A=B]]`: a verdict where there are two labels."""
    left, right = symbols.index(match["left"]), symbols.index(match["right"])
    if left == right or len(symbols.labels) != 2:
        return NO_LABEL
    if match["order"] == "=":
        return DECLARED_TIE
    return left if match["order"].startswith(">") else right


def _own_line(text: str, symbols: Symbols) -> int:
    if "\n" not in text:
        return NO_LABEL
    found = _whole(text[text.rindex("\n") + 1 :], symbols)
    return found if found != NO_LABEL else _whole(text[: text.index("\n")], symbols)


def _prose(text: str, symbols: Symbols) -> int:
    prose = prose_verdicts(symbols)
    left = _LAST
    # Line by line from the end: the verdict is usually in the last one.
    for line in reversed(text.split("\n")):
        for match in _last(prose, line):
            if is_hedged(line, match.start()):
                left -= 1
                if not left:
                    return NO_LABEL
                continue
            if match["even"] is not None:
                return DECLARED_TIE
            return symbols.index(match["label"] or match["chosen"] or match["favoured"])
    return NO_LABEL


def _leading(text: str, symbols: Symbols) -> int:
    pattern = leading_labels(symbols)
    begun = {symbols.index(match["label"]) for match in pattern.finditer(text)}
    if len(begun) != 1:
        return NO_LABEL
    last = text[text.rfind("\n") + 1 :]
    return begun.pop() if pattern.match(text) or pattern.match(last) else NO_LABEL


def _from_json(text: str, symbols: Symbols) -> tuple[int, bool]:
    """What a JSON object at the end of a reply says, and whether it is the whole reply."""
    body = text
    if text.endswith("```"):
        start = text.rfind("```", 0, -3)
        body = text[start + 3 : -3].strip().removeprefix("json").strip()
    if not body.endswith("}"):
        return NO_LABEL, False
    if not body.startswith("{"):
        body = body[body.rfind("{") :]
    if len(body) > _JSON_LIMIT:
        return NO_LABEL, False
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return NO_LABEL, False
    if not isinstance(record, dict):
        return NO_LABEL, False
    named = {str(key).casefold(): value for key, value in record.items()}
    for key in _JSON_KEYS:
        value = named.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            found = _whole(str(value), symbols)
            if found != NO_LABEL:
                return found, True
    return NO_LABEL, len(body) == len(text)
