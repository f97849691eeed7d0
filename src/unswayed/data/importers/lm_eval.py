"""lm-evaluation-harness `--log_samples` files: `samples_<task>_<time>.jsonl`.

Numbers are text there (`[["-0.1", "False"], ...]`), and calls are numbered fields (`gen_args_0`), the tenth of
which sorts before the second. Continuations of one character over one context are label scores: their
softmax is `probs`, the sum of their exponentials `label_mass`. Anything else scores the options themselves (cloze),
which has no order: left out. A file holds one task, so one cloze document makes the whole file cloze, even if other
documents look like labels (an option may be one character). `acc_mutual_info` appends the same continuations over other contexts:
only the first half is the question. Of generated answers the letter is in `filtered_resps`, once per
filter: the first filter of a file is read, the others are counted. A task permuted by us keeps its mark in
`doc.unswayed` (item, order, gold); without it there is the own order only.

Source: EleutherAI/lm-evaluation-harness, `--log_samples --output_path`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from string import ascii_uppercase
from typing import Any, Final

import msgspec

from unswayed.data.importers.protocol import (
    Entry,
    Importer,
    Mark,
    ReadRecord,
    Source,
    by_candidate,
    changed,
    decision,
    has,
    mark_of,
    read_as,
    readable,
)
from unswayed.model.items import BadFieldError, Item, Task
from unswayed.model.permutations import Order
from unswayed.model.tasks.listwise import best_candidate

CLOZE: Final = "options were scored as continuations: they have no order"
OTHER_FILTER: Final = "another filter of the same answers"
NO_OPTIONS: Final = "a generated answer whose options were not found in doc"
NO_LETTER: Final = "answers that are not a letter, unparsed"

_FILE: Final = re.compile(r"samples_(.+?)_\d{4}-\d{2}-\d{2}T")
_SKIPPED: Final = "unswayed_skipped"
_CLOZE: Final = "unswayed_cloze"
_ANSWER: Final = re.compile(r"\(?([A-Za-z0-9])\)?[.:]?")
_FIELDS: Final = ("opa", "opb", "opc", "opd")
"""Where some tasks keep each option in a field of its own."""


class _Sample(msgspec.Struct):
    doc_id: int | str
    doc: dict[str, Any]
    arguments: Any
    filtered_resps: list[Any]
    target: Any = None
    filter: str | None = None
    metrics: list[str] = []
    skipped: bool = msgspec.field(name=_SKIPPED, default=False)
    cloze: bool = msgspec.field(name=_CLOZE, default=False)


def _read(sample: _Sample, source: Source) -> ReadRecord:
    if sample.skipped:
        return ReadRecord(None, (), left_out=OTHER_FILTER)
    labels = _labels(sample)
    if labels is None:
        return _generated(sample, source)
    return ReadRecord(None, (), left_out=CLOZE) if sample.cloze else _scored(sample, labels, source)


def _scored(sample: _Sample, labels: tuple[str, ...], source: Source) -> ReadRecord:
    n = len(labels)
    if n < 2 or len(sample.filtered_resps) < n:
        raise BadFieldError("filtered_resps", f"{len(sample.filtered_resps)} scores for {n} labels")
    scores = [
        _score(given, f"filtered_resps[{k}]") for k, given in enumerate(sample.filtered_resps[:n])
    ]
    item, order = _item(sample, labels, source)
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    call = decision(
        item,
        order,
        labels,
        choice=best_candidate(by_candidate(order, scores), None),
        probs=by_candidate(order, [weight / sum(weights) for weight in weights]),
        label_mass=min(1.0, sum(map(math.exp, scores))),
        model=_model(source),
    )
    return ReadRecord(item, (call,), unread=_unread_gold(sample, item))


def _labels(sample: _Sample) -> tuple[str, ...] | None:
    """Return the scored labels; empty if the options themselves were scored, None if text was generated."""
    calls, given = _calls(sample.arguments), sample.filtered_resps
    if len(calls) == 1 and not (given and isinstance(given[0], list) and len(given[0]) == 2):
        return None  # a score is a log-likelihood with whether it is greedy
    if "acc_mutual_info" in sample.metrics and len(calls) % 2 == 0:
        calls = calls[: len(calls) // 2]
    labels = tuple(continuation.strip() for _, continuation in calls)
    several = len({context for context, _ in calls}) > 1 or len(set(labels)) < len(labels)
    return () if several or any(len(label) != 1 for label in labels) else labels


def _generated(sample: _Sample, source: Source) -> ReadRecord:
    options = _options(sample.doc)
    marked = mark_of(sample.doc, field="doc")
    n = len(options) if options else len(marked.order) if marked else 0
    if not 2 <= n <= len(ascii_uppercase):
        return ReadRecord(None, (), left_out=NO_OPTIONS)
    labels = tuple(ascii_uppercase[:n])
    item, order = _item(sample, labels, source)
    given = sample.filtered_resps[0] if sample.filtered_resps else None
    text = given[0] if isinstance(given, list) and given else given
    match = _ANSWER.fullmatch(str(text).strip())
    letter = match[1].upper() if match else ""
    choice = order[labels.index(letter)] if letter in labels else None
    call = decision(item, order, labels, choice=choice, model=_model(source))
    unread = _unread_gold(sample, item)
    if choice is None:
        unread["choice"] = ("filtered_resps", text)
    remarks = (NO_LETTER,) if choice is None else ()
    return ReadRecord(item, (call,), remarks=remarks, unread=unread)


def _unread_gold(sample: _Sample, item: Item) -> dict[str, tuple[str, object]]:
    is_unread = item.gold is None and sample.target not in (None, "")
    return {"gold": ("target", sample.target)} if is_unread else {}


def _item(sample: _Sample, labels: tuple[str, ...], source: Source) -> tuple[Item, Order]:
    shown, n = _options(sample.doc), len(labels)
    mark = mark_of(sample.doc, field="doc")
    if mark is None:
        gold = _gold(sample.target, labels, shown or [])
        mark = Mark(sample.doc_id, tuple(range(n)), gold)
    order = mark.order
    if sorted(order) != list(range(n)):
        raise BadFieldError("doc.unswayed.order", f"{list(order)} is not an order of {n} labels")
    texts = shown if shown is not None and len(shown) == n else [""] * n
    task = _FILE.match(PurePath(source.file).name)
    question = sample.doc.get("question", sample.doc.get("query"))
    item = Item(
        id=f"{task[1]}/{mark.item}" if task else str(mark.item),
        task=Task.MCQ,
        prompt=question if isinstance(question, str) else "",
        candidates=by_candidate(order, texts),
        gold=tuple(mark.gold) if isinstance(mark.gold, list) else mark.gold,
        group=task[1] if task else None,
        permutable=mark.permutable,
    )
    return item, order


def _model(source: Source) -> str | None:
    return PurePath(source.file).parent.name.replace("__", "/") or None


def _calls(arguments: object) -> list[tuple[str, str]]:
    """Context and continuation of each call, in the order in which they were made."""
    calls: Sequence[Any] = ()
    if isinstance(arguments, Mapping):
        numbers = {name: re.sub(r"\D", "", name) for name in arguments}
        names = sorted(arguments, key=lambda name: (len(numbers[name]), numbers[name]))
        calls = [arguments[name] for name in names]
    elif isinstance(arguments, list):
        calls = arguments
    read = []
    for call in calls:
        parts = [call[name] for name in sorted(call)] if isinstance(call, Mapping) else call
        if not isinstance(parts, list | tuple) or not parts:
            raise BadFieldError("arguments", "is neither numbered fields nor a list of pairs")
        read.append((str(parts[0]), str(parts[1]) if len(parts) > 1 else ""))
    if not read:
        raise BadFieldError("arguments", "has no calls")
    return read


def _score(given: object, field: str) -> float:
    value = given[0] if isinstance(given, list) and given else given
    try:
        score = float(str(value))
    except ValueError:
        raise BadFieldError(field, f"{value!r} is not a number") from None
    if not -math.inf < score <= 1e-6:
        raise BadFieldError(field, f"{score:g} is not a log-probability")
    return score


def _options(doc: Mapping[str, Any]) -> list[str] | None:
    """Return the options of a document, where tasks keep them."""
    choices = doc.get("choices", doc.get("options"))
    if isinstance(choices, Mapping):
        choices = choices.get("text")
    if choices is None and doc.keys() >= set(_FIELDS):
        choices = [doc[name] for name in _FIELDS]
    if isinstance(choices, list) and len(choices) > 1:
        return [str(choice) for choice in choices]
    return None


def _gold(target: object, labels: tuple[str, ...], options: list[str]) -> int | list[int] | None:
    """Return the right option: an index (as text in files), a label, its text, or several indices."""
    text = str(target).strip()
    if text in {str(place) for place in range(len(labels))}:
        return int(text)
    match = _ANSWER.fullmatch(text)
    if match and match[1] in labels:
        return labels.index(match[1])
    if options.count(text) == 1 and len(options) == len(labels):
        return options.index(text)
    if text.startswith("["):
        try:
            several = msgspec.json.decode(text.replace("'", '"'), type=list[int])
        except msgspec.MsgspecError:
            return None
        return several if several and all(0 <= c < len(labels) for c in several) else None
    return None


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    return chain.from_iterable(_of_file(list(entries)) for _, entries in files)


def _of_file(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the records of a file, marked if their filter is not the first or the task is cloze."""
    cloze = any(map(_is_cloze, readable(entries)))
    first = next((record.get("filter") for record in readable(entries)), None)
    return changed(
        entries,
        lambda record: {**record, _SKIPPED: record.get("filter") != first, _CLOZE: cloze},
    )


def _is_cloze(record: Mapping[str, object]) -> bool:
    """Return True if the options themselves were scored; False for an unreadable record."""
    try:
        sample = read_as(_Sample, record)
        labels = _labels(sample)
    except BadFieldError:
        return False
    if not labels:
        return labels is not None
    usual = any(symbols.startswith("".join(labels)) for symbols in (ascii_uppercase, "123456789"))
    return not usual and list(labels) == _options(sample.doc)


LM_EVAL: Final = Importer(
    title="lm-evaluation-harness `samples_*.jsonl`: label scores, or letters of one filter.",
    detects=has("doc_id", "doc", "arguments", "filtered_resps"),
    schema=_Sample,
    read=_read,
    join=_join,
    answer="filtered_resps",
)
