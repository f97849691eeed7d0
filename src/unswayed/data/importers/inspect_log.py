"""Logs of Inspect (`.eval`, or `.json`): our own decisions, a permuted run, or any multiple-choice run.

A sample is read as the first that it is: (1) a score whose metadata has our decisions; (2) a sample whose
metadata has our mark (item, order, gold), the letter in `scores.<scorer>.answer` being displayed; (3) an
ordinary multiple-choice sample, in its own order only. `shuffle_choices` permutes `choices` and `target`
and forgets what was first: of several logs of one data set the first one read says what the own order
is, and options are matched by their text; where two are equal they cannot be, left out. Epochs are
repetitions. A sample with `error` is a failed call, not a decision. As in Inspect, every letter of a target is right
(`["A", "C"]`, `AC`), and gold is the list of them. Any one of these counts as right here, while Inspect asks for the set:
such samples are counted. A decision names one option, so an answer of several letters is unparsed.

Source: Inspect AI's log format (`inspect_ai.log`, versions 2): header, samples/<id>_epoch_<n>.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from string import ascii_uppercase
from typing import Any, Final

import msgspec

from unswayed.data.importers.eval_archive import EVALUATION, samples_of
from unswayed.data.importers.protocol import (
    MARK,
    Entry,
    Importer,
    Mark,
    ReadRecord,
    Record,
    Source,
    by_candidate,
    changed,
    decision,
    decoded,
    elements,
    mark_of,
)
from unswayed.model.decisions import Choice, Decision
from unswayed.model.items import BadFieldError, Gold, Item, Task
from unswayed.model.permutations import Order

FAILED: Final = "a sample that failed (error)"
NO_CHOICES: Final = "a sample without choices: no multiple choice"
EQUAL: Final = "two options have the same text, so their shuffled order is unknown"
NO_ANSWER: Final = "a sample that was not scored"
SEVERAL_RIGHT: Final = "several right letters in the target: each of them counts as right"
SEVERAL: Final = "several letters in the answer, unparsed"

_BASE: Final = "unswayed_base"
_SCORER: Final = "choice"
"""Inspect's own scorer of letters; of others the first with an answer is read."""


class _Score(msgspec.Struct):
    answer: Any = None
    metadata: dict[str, Any] | None = None


class _Completion(msgspec.Struct):
    stop_reason: str | None = None


class _Output(msgspec.Struct):
    choices: list[_Completion] = []


class _Evaluation(msgspec.Struct):
    model: str | None = None
    task: str | None = None


class _Sample(msgspec.Struct):
    id: int | str
    epoch: int = 1
    input: Any = None
    choices: list[str] | None = None
    target: str | list[str] = ""
    metadata: dict[str, Any] | None = None
    scores: dict[str, _Score] | None = None
    output: _Output | None = None
    error: Any = None
    evaluation: _Evaluation = msgspec.field(name=EVALUATION, default_factory=_Evaluation)
    base: list[str] | None = msgspec.field(name=_BASE, default=None)


def _read(sample: _Sample, source: Source) -> ReadRecord:
    if sample.error:
        return ReadRecord(None, (), left_out=FAILED)
    scores = sample.scores or {}
    for score in scores.values():
        own = (score.metadata or {}).get(MARK)
        if isinstance(own, Mapping) and isinstance(own.get("decisions"), list):
            return _own(own, sample)
    if not sample.choices or len(sample.choices) < 2:
        return ReadRecord(None, (), left_out=NO_CHOICES)
    if not scores:
        return ReadRecord(None, (), left_out=NO_ANSWER)
    return _choice_of(sample, scores)


def _own(own: Mapping[str, Any], sample: _Sample) -> ReadRecord:
    try:
        decisions = msgspec.convert(own["decisions"], tuple[Decision, ...])
        gold = msgspec.convert(own.get("gold"), Gold)
    except msgspec.ValidationError as error:
        raise BadFieldError("scores.metadata.unswayed", str(error)) from None
    if len({decision.item_id for decision in decisions}) != 1:
        raise BadFieldError("scores.metadata.unswayed.decisions", "are not about one item")
    n = len(decisions[0].order)
    item = Item(
        id=decisions[0].item_id,
        task=Task.PAIRWISE if n == 2 else Task.MCQ,
        prompt=_text(sample.input),
        candidates=("",) * n,
        gold=gold,
    )
    return ReadRecord(item, decisions)


def _choice_of(sample: _Sample, scores: Mapping[str, _Score]) -> ReadRecord:
    """Return a multiple-choice sample: its letter, through the order in which options were shown."""
    shown = sample.choices or []
    n = len(shown)
    if n > len(ascii_uppercase):
        raise BadFieldError("choices", f"{n} options have no letters")
    mark = mark_of(sample.metadata, field="metadata") or _unmarked(sample, shown)
    if mark is None:
        return ReadRecord(None, (), left_out=EQUAL)
    order = mark.order
    if sorted(order) != list(range(n)):
        raise BadFieldError(
            "metadata.unswayed.order", f"{list(order)} is not an order of {n} options"
        )
    gold = _gold(sample.target, order, shown) if mark.gold is None else mark.gold
    right = [gold] if isinstance(gold, int) else gold
    task, labels = sample.evaluation.task, tuple(ascii_uppercase[:n])
    item = Item(
        id=str(mark.item) if task is None else f"{task}/{mark.item}",
        task=Task.MCQ,
        prompt=_text(sample.input),
        candidates=by_candidate(order, shown),
        gold=tuple(right) if len(right) > 1 else right[0] if right else None,
        permutable=mark.permutable,
    )
    answers = {name: s.answer for name, s in scores.items() if isinstance(s.answer, str)}
    scorer = _SCORER if _SCORER in scores else next(iter(answers), next(iter(scores)))
    answer = answers.get(scorer, "")
    completions = sample.output.choices if sample.output else []
    call = decision(
        item,
        order,
        labels,
        sample=sample.epoch - 1,
        choice=_letter(answer, order),
        model=sample.evaluation.model,
        finish_reason=completions[0].stop_reason if completions else None,
    )
    remarks = [SEVERAL_RIGHT] * (len(right) > 1)
    remarks += [SEVERAL] * bool(re.fullmatch(r"\s*[A-Z](\s*,\s*[A-Z])+\s*", answer))
    unread: dict[str, tuple[str, object]] = {}
    if call.choice is None:
        unread["choice"] = (f"scores.{scorer}.answer", answer)
    if not right and sample.target:
        unread["gold"] = ("target", sample.target)
    return ReadRecord(item, (call,), remarks=tuple(remarks), unread=unread)


def _unmarked(sample: _Sample, shown: Sequence[str]) -> Mark | None:
    """Return the order by the options of the log read before; None where equal texts hide it."""
    if sample.base is None or sample.base == shown:
        return Mark(sample.id, tuple(range(len(shown))))
    if len(set(shown)) < len(shown):
        return None
    if sorted(sample.base) != sorted(shown):
        raise BadFieldError("choices", "differ from the options in the log that was read first")
    return Mark(sample.id, tuple(map(sample.base.index, shown)))


def _letter(answer: str, order: Order) -> Choice:
    """Return the candidate that a displayed letter names; several letters or none: unparsed."""
    letters = [part.strip() for part in answer.split(",") if part.strip()]
    if len(letters) != 1 or len(letters[0]) != 1:
        return None
    place = ascii_uppercase.find(letters[0])
    return order[place] if 0 <= place < len(order) else None


def _gold(target: str | list[str], order: Order, shown: Sequence[str]) -> list[int]:
    """Return the right candidates, by displayed letters or one by its text; none where it is neither."""
    places = {ascii_uppercase.find(letter) for part in target for letter in part.strip()}
    if not all(0 <= place < len(order) for place in places):
        places = {shown.index(text) for text in shown if text == target and shown.count(text) == 1}
    return sorted(order[place] for place in places)


def _text(given: object) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        return ""
    texts = [
        message["content"]
        for message in given
        if isinstance(message, Mapping)
        and message.get("role") == "user"
        and isinstance(message.get("content"), str)
    ]
    return "\n\n".join(texts)


def _unfold(record: Record, source: Source) -> Iterator[Entry]:
    """Yield the samples of a log in JSON, each with its evaluation; a sample by itself stays."""
    if EVALUATION in record or record.get("samples") is None:
        yield source, record
        return
    evaluation = decoded(record.get("eval", {}), "eval")
    samples = elements(record, "samples", source)
    yield from changed(samples, lambda sample: {**sample, EVALUATION: evaluation})


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """All samples; those of a question that was read before know its own order."""
    own: dict[tuple[str, str], object] = {}

    def with_base(record: Record) -> Record:
        if not isinstance(record.get("choices"), list):
            return record
        evaluation = record.get(EVALUATION)
        task = evaluation.get("task") if isinstance(evaluation, Mapping) else None
        base = own.setdefault((str(task), str(record.get("id"))), record["choices"])
        return {**record, _BASE: base}

    yield from changed(chain.from_iterable(entries for _, entries in files), with_base)


def _detects(record: Record) -> bool:
    evaluation = record.get("eval")
    log = isinstance(evaluation, msgspec.Raw | Mapping) and "samples" in record
    return log and {"version", "status", "plan"} & record.keys() != set()


INSPECT: Final = Importer(
    title="Inspect logs (.eval, .json): decisions of Unswayed, permuted runs, multiple choice in its own order.",
    detects=_detects,
    schema=_Sample,
    read=_read,
    join=_join,
    unfold=_unfold,
    suffix=".eval",
    opened=samples_of,
)
