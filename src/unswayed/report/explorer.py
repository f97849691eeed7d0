"""The flipped items: what is shown of each, and what of that fits into the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unswayed.decisions import Choice
from unswayed.report.data import FlippedItem, Shown
from unswayed.report.findings import Finding
from unswayed.report.numerals import count, percent, plural
from unswayed.report.parts import Part, cut, parts_of
from unswayed.report.wording import Line, line, listed, strong
from unswayed.visible import one_line, visible

__all__ = ["Embedded", "ItemView", "View", "embed", "item_view", "script_json"]

SIDE_BY_SIDE = 4


@dataclass(frozen=True, slots=True)
class View:
    """One prompt and the judge's answer to it.

    Attributes:
        choice: Candidate that was chosen, -1 if none.
        details: Closed texts below the verdict: title and text.
    """

    heading: str
    parts: tuple[Part, ...]
    choice: int
    said: Line
    quiet: str
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ItemView:
    """A flipped item ready to show.

    Attributes:
        views: One per distinct answer, at most four.
        others: The remaining presentations.
        word: "answer" for two candidates, "option" for more.
    """

    item_id: str
    group: str
    run: int
    word: str
    candidates: tuple[str, ...]
    summary: str
    views: tuple[View, ...]
    others: tuple[View, ...]


def word_for(n: int) -> str:
    """What the candidates are called."""
    return "answer" if n == 2 else "option"


def _choice_key(choice: Choice) -> str:
    return str(choice)


def distinct(shown: Sequence[Shown]) -> tuple[list[Shown], list[Shown]]:
    """The first presentation of each distinct answer (at most four), and all the others."""
    first: dict[str, Shown] = {}
    for one in shown:
        first.setdefault(_choice_key(one.choice), one)
    kept = list(first.values())[:SIDE_BY_SIDE]
    return kept, [one for one in shown if not any(one is other for other in kept)]


def item_view(item: FlippedItem, run: int = 0, presentations: int = 0) -> ItemView:
    """What is shown of an item.

    Args:
        item: The item.
        run: Number of its run.
        presentations: How many presentations were asked; answers are counted only if all of them
            are here.
    """
    n = len(item.candidates)
    word = word_for(n)
    kept, others = distinct(item.shown)
    tally: dict[str, int] = {}
    for one in item.shown:
        key = _choice_key(one.choice)
        tally[key] = tally.get(key, 0) + 1
    total = len(item.shown) if len(item.shown) == presentations else 0
    return ItemView(
        item_id=visible(item.item_id),
        group=visible(item.group or ""),
        run=run,
        word=word,
        candidates=tuple(cut(text) for text in item.candidates),
        summary=f"{_summary(item, kept, word)} {_gold(item, word)}",
        views=tuple(
            _view(
                one,
                item.candidates,
                _heading(one, n, (tally[_choice_key(one.choice)], total), own=i == 0),
            )
            for i, one in enumerate(kept)
        ),
        others=tuple(_view(one, item.candidates, _heading(one, n, None)) for one in others),
    )


def _heading(one: Shown, n: int, tally: tuple[int, int] | None, *, own: bool = False) -> str:
    identity = one.order == tuple(range(n))
    if n == 2 and one.labels == tuple(sorted(one.labels)):
        return "As given" if identity else "Answers swapped"
    shown = f"Order {' '.join(str(c + 1) for c in one.order)}"
    if one.labels != tuple(sorted(one.labels)):
        shown += f", labels {' '.join(one_line(label) for label in one.labels)}"
    if own and identity:
        shown = "As given"
    if tally is None or tally[1] <= 2:
        return shown
    return f"{shown}; {tally[0]} of {tally[1]} orders say this"


def _chosen(choice: Choice, word: str) -> str:
    if choice is None:
        return "no readable answer"
    return "a tie" if choice == "tie" else f"{word} {int(choice) + 1}"


def _summary(item: FlippedItem, kept: Sequence[Shown], word: str) -> str:
    if len(item.candidates) > 2 or len(kept) != 2:
        chosen = [_chosen(one.choice, word) for one in kept]
        return f"Depending on the order it chose {listed(chosen, 'or')}."
    a, b = kept
    went = f"its choice went from {_chosen(a.choice, word)} to {_chosen(b.choice, word)}."
    if not isinstance(a.choice, int) or not isinstance(b.choice, int):
        return f"{went[:1].upper()}{went[1:]}"
    if a.label is None or b.label is None:
        return f"{went[:1].upper()}{went[1:]}"
    if a.label == b.label:
        return f"It said {one_line(a.label)} both times, so {went}"
    return f"It said {one_line(a.label)}, then {one_line(b.label)}: {went}"


def _gold(item: FlippedItem, word: str) -> str:
    if item.gold is None:
        return "This item has no gold label."
    if item.gold == "tie":
        return "The gold label is a tie."
    if isinstance(item.gold, tuple):
        return f"Right are {listed([f'{word} {c + 1}' for c in item.gold])}."
    return f"The gold label is {_chosen(item.gold, word)}."


def _said(one: Shown, word: str) -> Line:
    if one.choice is None:
        return line("The answer could not be read.")
    if one.choice == "tie":
        return line("The judge called it ", strong("a tie"), ".")
    chosen = strong(f"{word} {int(one.choice) + 1}")
    if one.label is None:
        return line("The judge chose ", chosen, ".")
    return line("The judge said ", strong(one_line(one.label)), ", which is ", chosen, ".")


def _view(one: Shown, candidates: Sequence[str], heading: str) -> View:
    details = []
    if one.reasoning:
        details.append(("Reasoning", cut(one.reasoning)))
    if one.text and one.text.strip() != (one.label or "").strip():
        details.append(("Answer as it came", cut(one.text)))
    return View(
        heading=heading,
        parts=parts_of(one, candidates),
        choice=one.choice if isinstance(one.choice, int) else -1,
        said=_said(one, word_for(len(candidates))),
        quiet="" if one.prob is None else f"probability {percent(one.prob, 0)}",
        details=tuple(details),
    )


@dataclass(frozen=True, slots=True)
class Embedded:
    """The items inside the page.

    Attributes:
        first: The item that is shown before any script runs; None if there are none.
        data: What the script reads.
        count: How many items are inside, and of how many.
    """

    first: ItemView | None
    data: str
    count: str


class _Texts:
    """Texts by number: templates, questions and sentences repeat from item to item."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.size = 0

    def add(self, text: str) -> int:
        """The number of a text."""
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.numbers)
            self.size += byte_length(script_json(text)) + 1
        return number

    def keep(self, count: int) -> None:
        """Forget all but the first `count` texts."""
        while len(self.numbers) > count:
            self.numbers.popitem()


def byte_length(text: str) -> int:
    """Length in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def script_json(value: object) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return visible(text)


def _packed_view(view: View, texts: _Texts) -> dict[str, object]:
    parts: list[object] = []
    for part in view.parts:
        if part.kind == "candidate":
            whole = not part.text
            parts.append(part.candidate if whole else [part.candidate, texts.add(part.text)])
        elif part.kind == "role":
            parts.append([texts.add(part.text)])
        else:
            parts.append(-1 - texts.add(part.text))
    packed: dict[str, object] = {
        "h": texts.add(view.heading),
        "p": parts,
        "c": view.choice,
        "s": [[texts.add(span.text), int(span.kind == "strong")] for span in view.said],
    }
    if view.quiet:
        packed["q"] = texts.add(view.quiet)
    if view.details:
        packed["d"] = [[texts.add(title), texts.add(text)] for title, text in view.details]
    return packed


def _packed(item: ItemView, texts: _Texts) -> dict[str, object]:
    packed: dict[str, object] = {
        "i": item.item_id,
        "g": item.group,
        "w": item.word,
        "t": item.candidates,
        "y": texts.add(item.summary),
        "v": [_packed_view(view, texts) for view in item.views],
    }
    if item.run:
        packed["r"] = item.run
    if item.others:
        packed["o"] = [_packed_view(view, texts) for view in item.others]
    return packed


def _in_turn(findings: Sequence[Finding]) -> Iterable[tuple[int, FlippedItem]]:
    """Items of all runs, the surest of each run first."""
    longest = max((len(found.run.flipped) for found in findings), default=0)
    for rank in range(longest):
        for run, found in enumerate(findings):
            if rank < len(found.run.flipped):
                yield run, found.run.flipped[rank]


def embed(findings: Sequence[Finding], names: Sequence[str], *, embed_mb: float) -> Embedded:
    """Pack the surest flipped items until the limit is reached; the first one always fits."""
    limit = embed_mb * 1e6
    texts = _Texts()
    packed: list[str] = []
    first: ItemView | None = None
    size = 0
    for run, item in _in_turn(findings):
        view = item_view(item, run, findings[run].audit.n_presentations)
        known = len(texts.numbers)
        text = script_json(_packed(view, texts))
        size += byte_length(text) + 1
        if packed and size + texts.size > limit:
            texts.keep(known)
            break
        packed.append(text)
        first = view if first is None else first
    total = sum(found.run.n_flipped for found in findings)
    sure = any(
        view.prob is not None
        for found in findings
        for item in found.run.flipped[:1]
        for view in item.shown
    )
    shown = _count_line(len(packed), total, sure=sure)
    head = {
        "total": total,
        "count": shown,
        "runs": [one_line(run_name) for run_name in names],
        "texts": list(texts.numbers),
    }
    data = f'{script_json(head)[:-1]},"items":[{",".join(packed)}]}}'
    return Embedded(first, data, shown)


def _count_line(embedded: int, total: int, *, sure: bool) -> str:
    if embedded < total:
        return f"{'surest' if sure else 'first'} {count(embedded)} of {count(total)}; all: unswayed export"
    return f"{plural(total, 'flipped item')}{', surest first' if sure else ''}"
