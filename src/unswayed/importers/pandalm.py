"""PandaLM's test set with a judge's results, joined by `idx`.

The test set has the pair and three annotators (0 tie, 1 or 2), the result file of a judge only
`<judge>_result` ("1", "2", "Tie") and its reason. Response 1 was always shown first, so there is one order
and nothing is known about its effect. Gold is what most annotators said; without a majority there is
none, counted. A result "garbage" could not be read: here it is unparsed, in the project's own script it
counts as a tie. The instruction's `input` stands behind it in the prompt. The test set alone gives items,
a result file alone decisions.

Source: WeOpenML/PandaLM, `data/testset-v1.json`, `data/*-testset-v1.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.errors import UsageError
from unswayed.importers.protocol import Entry, Importer, Judged, Record, Source, short_name
from unswayed.items import BadFieldError, Item

LABELS: Final = ("1", "2")
"""The prompt calls the answers Response 1 and Response 2."""

NO_MAJORITY: Final = "items without gold: no majority of the annotators"

_PAIR: Final = frozenset({"idx", "response1", "response2"})
_RESULT: Final = "_result"
_MADE: Final = {"result": "unswayed_result", "judge": "unswayed_judge", "reason": "unswayed_reason"}
_CHOICE: Final[dict[str, Choice]] = {"0": "tie", "1": 0, "2": 1, "tie": "tie", "garbage": None}


Answer = str | bool | int | float | None
"""A text; an answer such as `True` or `7` has lost its quotes in the public file."""


class _Row(msgspec.Struct):
    idx: int | str
    instruction: Answer = None
    input: Answer = None
    response1: Answer = None
    response2: Answer = None
    annotator1: int | str | None = None
    annotator2: int | str | None = None
    annotator3: int | str | None = None
    motivation_app: str | None = None
    cmp_key: str | None = None
    result: int | str | msgspec.UnsetType | None = msgspec.field(
        name=_MADE["result"], default=msgspec.UNSET
    )
    judge: str | None = msgspec.field(name=_MADE["judge"], default=None)
    reason: str | None = msgspec.field(name=_MADE["reason"], default=None)


def _read(row: _Row, source: Source) -> Judged:
    """One pair, and what one judge said about it."""
    name = f"pandalm-{row.idx}"
    item: Item | None = None
    remarks: tuple[str, ...] = ()
    if row.response1 is not None and row.response2 is not None:
        gold = _majority(row)
        remarks = (NO_MAJORITY,) if gold is None and row.annotator1 is not None else ()
        item = Item(
            id=name,
            prompt="\n\n".join(_text(part) for part in (row.instruction, row.input) if part),
            candidates=(_text(row.response1), _text(row.response2)),
            gold=gold,
            group=row.motivation_app,
            meta={"cmp_key": row.cmp_key},
        )
    if isinstance(row.result, msgspec.UnsetType):
        return Judged(item, (), remarks=remarks)
    decision = Decision(
        item_id=name,
        order=(0, 1),
        labels=LABELS,
        choice=_choice(row.result, "result"),
        text=row.reason,
        model=row.judge,
    )
    return Judged(item, (decision,), remarks=remarks)


def _text(answer: Answer) -> str:
    return "" if answer is None else str(answer)


def _majority(row: _Row) -> Choice:
    votes = [
        _choice(vote, f"annotator{k}")
        for k, vote in enumerate((row.annotator1, row.annotator2, row.annotator3), start=1)
        if vote is not None
    ]
    (choice, count), *_ = Counter(votes).most_common() or [(None, 0)]
    return choice if 2 * count > len(votes) else None


def _choice(value: int | str | None, field: str) -> Choice:
    written = str(value).strip().lower()
    if value is None or written not in _CHOICE:
        raise BadFieldError(field, f"{value!r} is not 1, 2, 0 or Tie, or garbage")
    return _CHOICE[written]


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """The results of judges beside their pairs, by `idx`.

    Raises:
        UsageError: If two files are of pairs.
    """
    pairs: dict[str, Record] = {}
    results: list[tuple[str, list[Entry]]] = []
    sets: list[tuple[str, list[Entry]]] = []
    for file, entries in files:
        part = list(entries)
        records = (record for _, record in part if not isinstance(record, BadFieldError))
        first: Record = next(records, {})
        (sets if first.keys() >= _PAIR and not _result_field(first) else results).append(
            (file, part)
        )
    if len(sets) > 1:
        names = ", ".join(file for file, _ in sets)
        raise UsageError(f"{names}: two files of pairs do not make one set. Give one of them.")
    for _, part in sets:
        pairs = {
            str(record.get("idx")): record
            for _, record in part
            if not isinstance(record, BadFieldError)
        }
        yield from (entry for entry in part if isinstance(entry[1], BadFieldError))
    judged: set[str] = set()
    for file, part in results:
        for source, record in part:
            if not isinstance(record, BadFieldError):
                number = str(record.get("idx"))
                judged.add(number)
                record = _joined(pairs.get(number, {}), record, file)
            yield source, record
    for _, part in sets:
        for source, record in part:
            if not isinstance(record, BadFieldError) and str(record.get("idx")) not in judged:
                yield source, record


def _joined(pair: Record, result: Record, file: str) -> Mapping[str, object]:
    field = _result_field(result)
    reason = result.get(f"{field.removesuffix(_RESULT)}_reason") if field else None
    return {
        **pair,
        **result,
        **({} if field is None else {_MADE["result"]: result[field]}),
        _MADE["reason"]: reason if isinstance(reason, str) else None,
        _MADE["judge"]: short_name(file).removesuffix("-testset-v1"),
    }


def _result_field(record: Record) -> str | None:
    return next((name for name in record if name.endswith(_RESULT)), None)


def _detects(record: Record) -> bool:
    annotated = record.keys() >= _PAIR and "annotator1" in record
    return annotated or ("idx" in record and _result_field(record) is not None)


PANDALM: Final = Importer(
    title="PandaLM's test set with results of judges, one order; give all files together.",
    detects=_detects,
    schema=_Row,
    read=_read,
    join=_join,
)
