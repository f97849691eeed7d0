"""The flipped items: what is shown of each, and what of that fits into the page."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct

from unswayed.auditing.flips import FlippedItem, Shown
from unswayed.base.visible import one_line, visible
from unswayed.model.decisions import Choice
from unswayed.report.findings import Finding
from unswayed.report.numerals import figure, percent
from unswayed.report.parts import Part, cut, parts_of
from unswayed.report.words import phrase, plain, sentence, spans

SIDE_BY_SIDE = 4
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class View(Struct, frozen=True, gc=False):
    """One prompt and the judge's answer to it."""

    heading: str
    parts: tuple[Part, ...]
    choice: int  # candidate that was chosen, -1 if none
    said: tuple[tuple[str, bool], ...]  # the pieces of the verdict with whether each is emphasised
    quiet: str
    details: tuple[tuple[str, str], ...]  # closed texts below the verdict: title and text


class ItemView(Struct, frozen=True, gc=False):
    """A flipped item ready to show, by the page and by its script (`page.js`, in this order)."""

    item_id: str
    group: str
    run: int
    noun: str  # what its candidates are called
    candidates: tuple[str, ...]
    summary: str
    views: tuple[View, ...]  # one per distinct answer, at most four
    others: tuple[View, ...]  # the remaining presentations


def distinct(shown: Sequence[Shown]) -> tuple[list[Shown], list[Shown]]:
    """Return the first presentation of each distinct answer (at most four), and all the others."""
    first: dict[Choice, Shown] = {}
    for view in shown:
        first.setdefault(view.choice, view)
    kept = list(first.values())[:SIDE_BY_SIDE]
    return kept, [view for view in shown if not any(view is other for other in kept)]


def item_view(item: FlippedItem, noun: str, run: int = 0, presentations: int = 0) -> ItemView:
    """Build the view of an item of a numbered run; `noun` is the word for its candidates. Answers
    are counted only if all `presentations` that were asked are here.
    """
    kept, others = distinct(item.shown)
    votes = Counter(view.choice for view in item.shown)
    asked = len(item.shown) if len(item.shown) == presentations else 0
    went = tuple((view.label, view.choice) for view in kept)
    return ItemView(
        item_id=visible(item.item_id),
        group=visible(item.group or ""),
        run=run,
        noun=noun,
        candidates=tuple(cut(text) for text in item.candidates),
        summary=_summary(item, went, noun),
        views=tuple(
            _view(view, item, noun, votes[view.choice], asked, own=view is kept[0]) for view in kept
        ),
        others=tuple(_view(view, item, noun) for view in others),
    )


def _summary(item: FlippedItem, went: tuple[tuple[str | None, Choice], ...], noun: str) -> str:
    """Describe the change of the verdict, in scores where there are some."""
    if item.values is not UNSET:
        values = item.values
        scores = sorted({values[choice] for _, choice in went if isinstance(choice, int)})
        return plain(
            phrase("scales.went", tuple(scores), None if item.human is UNSET else item.human)
        )
    told = plain(phrase("items.went", went, item.gold, len(item.candidates), noun))
    if item.first_gain is UNSET:
        return told
    gains = enumerate(item.first_gain)
    firsts = tuple((c, gain) for c, gain in gains if gain is not None and round(gain, 1))
    return f"{told} {plain(phrase('lists.item', None if item.stability is UNSET else item.stability, firsts, noun))}"


def _quiet(view: Shown, item: FlippedItem, noun: str) -> str:
    """Build the small print below a verdict: scores and probability."""
    parts = []
    if item.values is not UNSET and isinstance(view.choice, int):
        parts.append(f"score {figure(item.values[view.choice])}")
    if view.scores is not UNSET:
        ranked = sorted(enumerate(view.scores), key=lambda own: (own[1] is None, -(own[1] or 0.0)))
        parts.append(plain(phrase("lists.scores", tuple(ranked), noun)))
    if view.prob is not None:
        parts.append(f"probability {percent(view.prob, 0)}")
    return ", ".join(parts)


def _view(
    view: Shown,
    item: FlippedItem,
    noun: str,
    votes: int = 0,
    asked: int = 0,
    *,
    own: bool = False,
) -> View:
    n = len(item.candidates)
    given, straight = view.order == tuple(range(n)), view.labels == tuple(sorted(view.labels))
    labels = () if straight else view.labels
    heading = phrase("items.heading", given, n, noun, view.order, labels, votes, asked, own)
    details = []
    if view.reasoning:
        details.append(("Reasoning", cut(view.reasoning)))
    if view.text and view.text.strip() != (view.label or "").strip():
        details.append(("Full answer", cut(view.text)))
    return View(
        heading=plain(heading),
        parts=parts_of(view, item.candidates),
        choice=view.choice if isinstance(view.choice, int) else -1,
        said=spans(phrase("items.said", view.label, view.choice, noun)),
        quiet=_quiet(view, item, noun),
        details=tuple(details),
    )


@dataclass(frozen=True, slots=True)
class Embedded:
    """The items inside the page."""

    first: ItemView | None  # the item that is shown before any script runs; None if there are none
    data: str  # what the script reads
    count: str  # how many items are inside, and of how many


class _Texts(dict[str, int]):
    """Texts by number: templates, questions and sentences repeat from item to item."""

    def __init__(self) -> None:
        self.written: list[str] = []  # as JSON, by number
        self.size = 0  # their length in bytes with a comma each

    def __missing__(self, text: str) -> int:
        """Return the number of a text that is new."""
        number = self[text] = len(self.written)
        self.written.append(script_json(text))
        self.size += len(self.written[-1].encode("utf-8", "replace")) + 1
        return number

    def numbered(self, value: object) -> object:
        """Return a value with lists for records and numbers for texts."""
        if isinstance(value, str):
            return self[value]
        if isinstance(value, Struct):
            value = msgspec.structs.astuple(value)
        return [self.numbered(own) for own in value] if isinstance(value, tuple) else value

    def keep(self, count: int) -> None:
        """Forget all but the first `count` texts."""
        del self.written[count:]
        while len(self) > count:
            self.popitem()


def script_json(value: object) -> str:
    """JSON that is safe inside a script element."""
    text = _JSON(value)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return visible(text)


def _in_turn(findings: Sequence[Finding]) -> Iterable[tuple[int, FlippedItem]]:
    """Items of all runs, the surest of each run first."""
    for items in itertools.zip_longest(*(finding.run.flips.flipped for finding in findings)):
        yield from ((run, item) for run, item in enumerate(items) if item is not None)


def embed(findings: Sequence[Finding], *, embed_mb: float) -> Embedded:
    """Pack the surest flipped items until the limit is reached; the first one always fits."""
    limit = embed_mb * 1e6
    texts = _Texts()
    packed: list[str] = []
    first: ItemView | None = None
    size = 0
    for run, item in _in_turn(findings):
        finding = findings[run]
        view = item_view(item, finding.noun, run, finding.metrics.protocol.n_presentations)
        before = len(texts)
        text = msgspec.json.encode(texts.numbered(view)).decode("ascii")
        size += len(text) + 1
        if packed and size + texts.size > limit:
            texts.keep(before)
            break
        packed.append(text)
        first = view if first is None else first
    total = sum(finding.flips for finding in findings)
    firsts = [item for finding in findings for item in finding.run.flips.flipped[:1]]
    sure = any(view.prob is not None for item in firsts for view in item.shown)
    unstable = any(item.stability is not UNSET for item in firsts)
    first_are = "least stable" if unstable else "surest" if sure else ""
    shown = plain(sentence("items.embedded", len(packed), total, first_are))
    head = {
        "total": total,
        "count": shown,
        "runs": [one_line(finding.name) for finding in findings],
    }
    listed = f'"texts":[{",".join(texts.written)}],"items":[{",".join(packed)}]'
    data = f"{script_json(head)[:-1]},{listed}}}"
    return Embedded(first, data, shown)
