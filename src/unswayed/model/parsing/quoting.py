"""Remove reasoning and quotations from a reply.

A judge may quote a candidate, and a candidate may contain answer tags or lines that look like a
verdict. The rule for what counts as a quotation:

* reasoning: all up to the last `</think>`, and all from a `<think>` that is never closed; the same
  for `<analysis>`, `<scratchpad>`, `[THINK]`, `◁think▷` and their like, and all but the final channel
  of a reply in channels (`<|channel|>final<|message|>`);
* struck-out text (`~~A~~`);
* fenced code blocks and quoted lines (`> ...`), unless the whole reply is one fenced block;
* text in quotation marks or backticks within a line, unless it is a bare label (`"B"`) or a mark
  (`my verdict is "[[B]]"`);
* lines that occur word for word in the item (`items.texts_of`). A line that is
  nothing but a label (`B`, `<answer>B</answer>`) is a quotation only if the line before it is one
  too: a judge must be able to say what a candidate happens to end with.

A reply that is only quotation says nothing. What no rule on the text can tell apart is a judge that
repeats a candidate's verdict in its own words; there the last statement counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from unswayed.model.parsing.places import alone, words_of
from unswayed.model.parsing.symbols import Symbols

_MARKS: Final = (
    r"(?:seed:)?think|thinking(?:_process)?|thoughts?|reasoning|rationale|analysis|scratchpad|reflection"
    r"|(?:inner_|internal_)?monologue|internal|cot|draft|critique|deliberation"
)
_THINK_END: Final = re.compile(
    rf"</(?:{_MARKS})\s{{0,4}}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>", re.I
)
_THINK_START: Final = re.compile(
    rf"<(?:{_MARKS})\s{{0,4}}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>", re.I
)
_CHANNEL: Final = "<|channel|>"
_FINAL_CHANNEL: Final = "<|channel|>final<|message|>"
_SOLUTION: Final = "<|begin_of_solution|>"
_END_TOKENS: Final = re.compile(r"(?:\s|<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>)++\Z")
_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)")
_TEXT_FENCES: Final = frozenset(
    ("", "text", "txt", "plaintext", "markdown", "md", "json", "xml", "html")
)
_STRUCK: Final = re.compile(r"(?<!~)~~(?!~)[^~\n]{1,400}~~(?!~)")
_QUOTED: Final = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|「[^「」\n]*」|『[^『』\n]*』|`[^`\n]+`"
    r"|(?<!\w)'[^'\n]+'(?!\w)|(?<!\w)‘[^‘’\n]+’(?!\w)"
)
_GAP: Final = "."
_QUOTES: Final = frozenset("\"`“«„「『'‘")
_MARK: Final = re.compile(r"\s*\[\[[^\[\]]{1,40}\]\]\s*")
_TAGS: Final = re.compile(r"</?(?:answer|verdict|final_answer)>", re.I)
_BARE_TIES: Final = frozenset(("c", "tie", "draw"))


def without_thinking(text: str) -> str:
    """Return the reply after its reasoning, without the tokens that end a turn."""
    if not ("<" in text or "[" in text or "◁" in text):
        return text
    end = 0
    for match in _THINK_END.finditer(text):
        end = match.end()
    text = text[end:]
    if _CHANNEL in text:
        text = text.rpartition(_FINAL_CHANNEL)[2] if _FINAL_CHANNEL in text else ""
    text = text.lstrip().removeprefix(_SOLUTION)
    start = _THINK_START.search(text)
    if start is not None:
        text = text[: start.start()]
    if text.endswith(">"):
        tokens = _END_TOKENS.search(text, max(0, len(text) - 400))
        if tokens is not None:
            text = text[: tokens.start()]
    return text


def unfenced(text: str) -> str | None:
    """Return the inside of a reply that is one fenced block and nothing else; None if it is not."""
    text = text.strip()
    opening = _FENCE.match(text)
    if opening is None or not text.endswith(opening[1]):
        return None
    if opening[2].strip().casefold() not in _TEXT_FENCES:
        return None  # a program, not an answer
    body = text[opening.end() : -len(opening[1])]
    if not body.startswith("\n") or f"\n{opening[1]}" in body.rstrip("\n"):
        return None
    return body


def spoken(text: str, symbols: Symbols, quoted: Iterable[str] = ()) -> str:
    """Return the reply (without reasoning) without what it quotes; a bare label in quotation marks stays."""
    echoes = {line.strip() for text_of_item in quoted for line in text_of_item.split("\n")} - {""}
    kept: list[str] = []
    fences: list[str] = []
    after_echo = False
    for line in text.split("\n"):
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence is not None:
            mark, info = fence[1], fence[2].strip()
            if fences and mark[0] == fences[-1][0] and len(mark) >= len(fences[-1]) and not info:
                fences.pop()
            elif not fences or info:
                # A fence with a language inside a fence opens an inner one (a quoted answer that
                # has code of its own).
                fences.append(mark)
            continue
        bare = line.strip()
        if fences or bare.startswith(">"):
            _leave_gap(kept)
            continue
        if bare and echoes:
            is_echo = bare in echoes and (after_echo or not _is_bare(_TAGS.sub(" ", bare), symbols))
            after_echo = is_echo
            if is_echo:
                _leave_gap(kept)
                continue
        kept.append(line)
    rest = "\n".join(kept)
    if "~~" in rest:
        rest = _STRUCK.sub(" ", rest)
    if not _QUOTES.isdisjoint(rest):
        rest = _QUOTED.sub(lambda match: _unquote(match, symbols), rest)
    return rest


def _leave_gap(kept: list[str]) -> None:
    """End the sentence: what leads up to a quotation does not lead up to what follows it."""
    if kept and kept[-1] != _GAP:
        kept.append(_GAP)


def _unquote(match: re.Match[str], symbols: Symbols) -> str:
    quotation = match[0]
    inside = quotation[1:-1]
    if len(inside) >= 120:
        return " "
    if inside.casefold() in _BARE_TIES or _is_bare(inside, symbols):
        return quotation
    return inside if _MARK.fullmatch(inside) else " "


def _is_bare(text: str, symbols: Symbols) -> bool:
    """Return True if a text is a label and at most one word more: `B`, `Option B`, not `[[B]]`."""
    if len(text) > 2 * symbols.longest + 40 or "[" in text or "<" in text:
        return False
    return alone(text, symbols) >= 0 and len(words_of(symbols.word.sub(" ", text))) <= 1
