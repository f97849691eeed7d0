"""Listwise reply -> score, flags and place of every label; `listwise_objects` says of which form.

A reply is read as loosely as `listwise_json` allows, with any prose and fences around. Which objects
count: all about these labels, but for those

* inside reasoning, in a quotation (`quoting`), or in words that report somebody's ("Candidate B ends
  with: {…}"); a fence that holds nothing before the object is not a quotation;
* copied from the item's texts, word for word or value for value;
* in a string of another object, or in the middle of a line behind an object that broke off;
* that the words before a later one correct ("Wait, revised: {…}");
* behind whose last bracket the keys of candidates go on: a quotation mark inside a string may have
  closed it.

Those that count must agree; the last one does not win. A label of which two different things are said,
in one object or in two, is missing with all that is said of it, and so is a ranking that is given twice
differently, has ties, or does not name each label once. Of an object that broke off the candidates
that were closed count, and nothing behind them. A reply that is taken back ("I cannot decide") says
nothing. What no rule on the text can tell apart is a judge that repeats in its own words what a
candidate claims.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from unswayed.model.parsing.listwise_json import JsonList, JsonObject, json_texts
from unswayed.model.parsing.listwise_objects import FLAGS, SCORE, ListObject, reply_of
from unswayed.model.parsing.places import alone
from unswayed.model.parsing.quoting import spoken, without_thinking
from unswayed.model.parsing.symbols import NO_LABEL, Symbols, symbols_of

_REACH: Final = 200
_MOST_PLACES: Final = 50
"""A reply that answers more often than that says nothing."""
# Words between two objects that correct the first, and words after one that take it back.
_CORRECTS: Final = re.compile(
    r"\b(?:no|wait|actually|correction|instead|rather|reconsider\w{0,3}|on\s(?:second|reflection)|"
    r"revis\w{1,4}|final\w{0,2}|sorry|mistake|i\smeant?)\b",
    re.IGNORECASE,
)
_RETRACTS: Final = re.compile(
    r"\b(?:(?:cannot|can['’]t|could\snot|couldn['’]t)\s(?:really\s)?(?:decide|tell|say|choose|judge)|undecided|"
    r"on\s(?:second\sthought|reflection)|wait\b|scratch\sthat|take\s(?:that|it)\sback|correction|"
    r"change\smy\s(?:mind|verdict|answer)|h+mm*\b|\A(?:oh\s)?no\b|i\smeant|i\swas\swrong|just\skidding|joking|\Anot\W*\Z|hard\sto\s(?:say|tell))",
    re.IGNORECASE,
)
# An object stands in the prose as its number between two characters that mean nothing.
_LEFT, _RIGHT = "\ue000", "\ue001"
_PLACE: Final = re.compile(f"{_LEFT}([0-9]+){_RIGHT}")
_BARE: Final = {ord(_LEFT): None, ord(_RIGHT): None}
_FENCED: Final = re.compile(
    rf"(`{{3,}}|~{{3,}})[^\n`~{_LEFT}]{{0,40}}\n?\s{{0,20}}((?:{_PLACE.pattern}[\s,]{{0,20}}+)++)\1"
)
_LAST_FENCE: Final = re.compile(rf"```[^\n`{_LEFT}]{{0,40}}\n?\s{{0,20}}(?={_LEFT})")
_NEW_LINE: Final = re.compile(r"(?:\A|\n|</[^<>\n]{1,40}>)[ \t`~\w]{0,20}\Z")
_TORN: Final = re.compile(rf"[\"'](?:{SCORE}|rationale|{'|'.join(FLAGS)})[\"']\s{{0,4}}:")
_STOP: Final = re.compile(r"[.!?;]\s|\n\s{0,20}\n")
_OWN: Final = re.compile(r"\b(?:my|mine|i|we|our)\b", re.IGNORECASE)
_REPORTED: Final = re.compile(
    r"\b(?:(?:candidate|answer|response|assistant|option|text|injection|it|which)s?\b"
    r"(?:[^\w\n.,;]{1,4}\w{1,20}){0,3}[^\w\n.,;]{1,4}"
    r"(?:says?|said|claim(?:s|ed)?|state[sd]?|contain(?:s|ed)?|include[sd]?|end(?:s|ed)?|close[sd]?"
    r"|quote[sd]?|reads?|tells?|told|ask(?:s|ed)?|demand(?:s|ed)?|instruct(?:s|ed)?|assert(?:s|ed)?"
    r"|print(?:s|ed)?|tr(?:y|ies|ied)|writes?|wrote|suggest(?:s|ed)?|insert(?:s|ed)?|hides?|injects?)\b"
    r"[^.\n]{0,60}"
    r"|(?:for|an)\sexample|e\.g\.|(?:quoted?|injection|injected|system|user)\s{0,2})"
    r"[\s:,`\"'*_]{0,8}\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ListwiseReading:
    """Content of a listwise reply, by index of the label in its set."""

    scores: tuple[float | None, ...]  # score of each label, 0 to 100; None where it is missing
    # per name of `FLAGS` what is said of each label; None where nothing is
    flags: dict[str, tuple[bool | None, ...]]
    ranking: tuple[int, ...] | None  # all labels, best first; None where there is no such order


ReadsObject = Callable[[JsonObject | JsonList], ListObject]
"""What one object, or a list of them, says."""


class _Place(NamedTuple):
    """An object in the text, and what it says."""

    root: JsonObject | JsonList
    reply: ListObject


def read_listwise(
    text: str,
    labels: Sequence[str],
    *,
    quoted: Iterable[str] = (),
) -> ListwiseReading:
    """Read what a reply states about each label; takes time linear in the length of the texts.

    >>> read_listwise('{"candidates": {"A": {"score": "73/100"}}, "ranking": "B > A"}', "AB").scores
    (73.0, None)
    """
    symbols = symbols_of(labels)
    reader = partial(reply_of, symbols=symbols)
    replies = own_replies(text, symbols, reader, tuple(map(_unmarked, quoted)))
    marks: dict[tuple[int, str], float | bool | None] = {}
    disputed: set[int] = set()
    for reply in replies:
        for label, name, value in reply.marks:
            if marks.setdefault((label, name), value) != value:
                disputed.add(label)
    rankings = {ranking for reply in replies for ranking in reply.rankings}
    said = {
        place: value
        for place, value in marks.items()
        if value is not None and place[0] not in disputed
    }
    indices = range(len(labels))
    flags = {flag: [said.get((label, flag)) for label in indices] for flag in FLAGS}
    return ListwiseReading(
        scores=tuple(said.get((label, SCORE)) for label in indices),
        flags={
            flag: tuple(None if value is None else bool(value) for value in values)
            for flag, values in flags.items()
        },
        ranking=rankings.pop() if len(rankings) == 1 else None,
    )


def own_replies(
    text: str, symbols: Symbols, read: ReadsObject, quoted: tuple[str, ...]
) -> list[ListObject]:
    """Return the judge's own objects in order, without the ones it corrects."""
    places = _places(text, read)
    if not 0 < sum(place.reply.answers for place in places) <= _MOST_PLACES:
        return []
    copies = _copies(text, places, quoted, read)
    own = without_thinking(_prose(text, places)).strip()
    prose = spoken(_unfenced(own), symbols, quoted)
    replies: list[ListObject] = []
    end = 0
    for mark in _PLACE.finditer(prose):
        place = int(mark[1])
        if not places[place].reply.answers:
            continue
        before = prose[max(end, mark.start() - _REACH) : mark.start()]
        end = mark.end()
        if place in copies or _is_reported(before, symbols):
            continue
        if _CORRECTS.search(before):
            replies.clear()
        if not _is_torn(text, places, place):
            replies.append(places[place].reply)
    is_retracted = _RETRACTS.search(prose[end : end + _REACH].lstrip(" !.,*_)")) is not None
    return [] if is_retracted else replies


def _places(text: str, read: ReadsObject) -> list[_Place]:
    """Return the objects that are closed or about these labels, none inside another.

    A closed one with the keys of a candidate, which belongs inside an object, is not among them.
    """
    places: list[_Place] = []
    end = 0
    is_broken = False
    for root in json_texts(text):
        if root.start < end or (
            is_broken and not _NEW_LINE.search(text, max(0, root.start - _REACH), root.start)
        ):
            continue  # in a string of the one before
        reply = read(root)
        if reply.answers or (root.is_whole and not reply.is_part and not root.is_empty):
            places.append(_Place(root, reply))
            end = root.end
        if reply.answers or not root.is_empty:
            is_broken = not root.is_whole
    return places


def _prose(text: str, places: Sequence[_Place]) -> str:
    """Return the text with a mark in place of each object."""
    parts = []
    end = 0
    for k, (root, _) in enumerate(places):
        parts += [_unmarked(text[end : root.start]), f"{_LEFT}{k}{_RIGHT}"]
        end = root.end
    return "".join([*parts, _unmarked(text[end:])])


def _unmarked(text: str) -> str:
    """Return the text without the marks of objects, which nobody else may write."""
    return text.translate(_BARE) if _LEFT in text or _RIGHT in text else text


def _unfenced(prose: str) -> str:
    """Return the prose without fences, closed or not, that hold objects and nothing before them."""
    alone = _PLACE.fullmatch(prose.strip("` \r\n"))
    if alone is not None:
        return alone[0]
    prose = _FENCED.sub(r"\2", prose)
    opening = _LAST_FENCE.search(prose, max(0, prose.rfind("```")))
    if opening is None or prose.count("```", 0, opening.start()) % 2:
        return prose
    return f"{prose[: opening.start()]}{prose[opening.end() :]}"


def _is_torn(text: str, places: Sequence[_Place], place: int) -> bool:
    """Return True if what an object is closed by was not its end: keys of candidates follow."""
    if not places[place].root.is_whole:
        return False
    ends = [*(after.root.start for after in places[place + 1 :]), len(text)]
    for here, end in zip(places[place:], ends, strict=True):
        if here is not places[place] and here.reply.answers:
            return False
        if _TORN.search(text, here.root.end, end):
            return True
    return False


def _copies(
    text: str, places: Sequence[_Place], quoted: tuple[str, ...], read: ReadsObject
) -> set[int]:
    """Return the places whose object stands in a quoted text: its characters, or all that it says."""
    quotable = "\n".join("".join(source.split()) for source in quoted)
    sayings = {
        saying
        for source in quoted
        for root in json_texts(source)
        if (saying := read(root).saying())[0]
    }
    return {
        k
        for k, (root, reply) in enumerate(places)
        if reply.answers
        and ("".join(text[root.start : root.end].split()) in quotable or reply.saying() in sayings)
    }


def _is_reported(before: str, symbols: Symbols) -> bool:
    """Return True if the words before an object say that it is somebody's, or are a candidate's heading."""
    clause = _STOP.split(before.rstrip())[-1]
    if _OWN.search(clause):
        return False
    line = clause.rpartition("\n")[2].rstrip("*_` ")
    if line.endswith(":") and alone(line.rstrip(":"), symbols) != NO_LABEL:
        return True
    return _REPORTED.search(clause) is not None


def listwise_schema(labels: Sequence[str]) -> str:
    """Return the JSON schema of the contract, for servers with structured output.

    Within what strict servers take: every object lists all its keys as required and admits no other.
    The bounds of a score and that no label is ranked twice are left to reading, for `minimum`,
    `maximum` and `uniqueItems` are refused by some; `minItems` and `maxItems`, which keep a model
    from ranking without end, are refused by few (fine-tuned models, older servers).

    `labels` are in displayed order, which the reply then keeps.
    """
    fields = {SCORE: {"type": "integer"}, "rationale": {"type": "string"}}
    candidate = closed({**fields, **{flag: {"type": "boolean"} for flag in FLAGS}})
    ranking = {
        "type": "array",
        "items": {"type": "string", "enum": list(labels)},
        "minItems": len(labels),
        "maxItems": len(labels),
    }
    candidates = closed(dict.fromkeys(labels, candidate))
    return json.dumps(closed({"candidates": candidates, "ranking": ranking}))


def closed(properties: dict[str, object]) -> dict[str, object]:
    """Return the schema of an object with these keys and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
