"""Auto-J's pairwise test set with a judge's outputs in both orders, and the human label.

The public files are three, joined by line: the test data (`prompt`, `response 1`, `response 2`,
`label`), the outputs on them, and the outputs with the responses exchanged; the last may be lacking.
An output is a *displayed* position (0 first, 1 second, 2 tie), so the exchanged one must be read the
other way round. The label is by response (0, 1, 2 tie). One file that was joined before
(`autoj_output_order1`, `autoj_output_order2` beside the test data) is read too.

Source: GAIR-NLP/auto-j, `data/test/testdata_pairwise.jsonl`, `data/outputs/pairwise_*.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from unswayed.decisions import Choice
from unswayed.errors import UsageError
from unswayed.importers.protocol import (
    Entry,
    Importer,
    Judged,
    Source,
    candidate_at,
    pair_decision,
    short_name,
)
from unswayed.items import BadFieldError, Item
from unswayed.presentation import X0, X2

LABELS: Final = ("1", "2")
"""The prompt calls the answers Response 1 and Response 2."""

_PAIR: Final = frozenset({"prompt", "response 1", "response 2"})
_COMMAND: Final = "unswayed import autoj TESTDATA.jsonl OUTPUTS.jsonl EXCHANGED.jsonl"

Output = int | None | msgspec.UnsetType


class _Row(msgspec.Struct):
    prompt: str
    response_1: str = msgspec.field(name="response 1")
    response_2: str = msgspec.field(name="response 2")
    label: int | None = None
    row: int | str | None = None
    scenario: str | None = None
    autoj_output_order1: Output = msgspec.UNSET
    autoj_output_order2: Output = msgspec.UNSET
    judge: str = "auto-j"


def _read(row: _Row, source: Source) -> Judged:
    """One pair and its one or two outputs."""
    item = Item(
        id=f"{short_name(source.file)}-{source.number if row.row is None else row.row}",
        prompt=row.prompt,
        candidates=(row.response_1, row.response_2),
        gold=_position(row.label, "label"),
        group=row.scenario,
    )
    outputs = (
        ("autoj_output_order1", X0, row.autoj_output_order1),
        ("autoj_output_order2", X2, row.autoj_output_order2),
    )
    decisions = tuple(
        pair_decision(
            item, shown, LABELS, candidate_at(shown, _position(output, field)), model=row.judge
        )
        for field, shown, output in outputs
        if not isinstance(output, msgspec.UnsetType)
    )
    if not decisions:
        return Judged(item, (), left_out=f"test data without outputs (give them: {_COMMAND})")
    return Judged(item, decisions)


def _position(value: int | None, field: str) -> Choice:
    if value not in (0, 1, 2, None):
        raise BadFieldError(field, f"{value} is not 0, 1, 2 (tie) or null")
    return "tie" if value == 2 else value


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """The test data with the outputs on the same lines.

    Raises:
        UsageError: If the files are not one of test data with one or two of as many outputs.
    """
    parts = [(file, list(entries)) for file, entries in files]
    outputs = [(file, entries) for file, entries in parts if _are_outputs(entries)]
    pairs = [(file, entries) for file, entries in parts if not _are_outputs(entries)]
    if not outputs:
        for _, entries in pairs:
            yield from entries
        return
    if len(pairs) != 1 or len(outputs) > 2:
        raise UsageError(
            f"{len(pairs)} files of test data and {len(outputs)} of outputs do not make one "
            f"set. Give one of test data and its one or two of outputs: {_COMMAND}"
        )
    outputs.sort(key=lambda part: "exchange" in PurePath(part[0]).name)
    parts = [*pairs, *outputs]
    if len({len(entries) for _, entries in parts}) > 1:
        counts = ", ".join(f"{file} {len(entries)}" for file, entries in parts)
        raise UsageError(f"autoj joins files by line, but their lengths differ: {counts}.")
    judge = short_name(outputs[0][0])
    for lines in zip(*(entries for _, entries in parts), strict=True):
        yield _joined(lines, judge)


def _are_outputs(entries: Sequence[Entry]) -> bool:
    """Whether the first readable record is an output without its pair."""
    records = (record for _, record in entries if not isinstance(record, BadFieldError))
    first = next(records, None)
    return first is not None and "output" in first and not first.keys() >= _PAIR


def _joined(lines: Sequence[Entry], judge: str) -> Entry:
    """One pair with its outputs; the first of the lines that cannot be read, if any."""
    for source, record in lines:
        if isinstance(record, BadFieldError):
            return source, record
    (source, pair), *outputs = lines
    values = {
        f"autoj_output_order{k}": record.get("output")
        for k, (_, record) in enumerate(outputs, start=1)
        if not isinstance(record, BadFieldError)
    }
    assert not isinstance(pair, BadFieldError)
    return source, {**pair, **values, "judge": judge}


AUTOJ: Final = Importer(
    title="Auto-J pairwise test data with outputs in both orders, as one file or as its three.",
    detects=lambda record: record.keys() >= _PAIR or record.keys() == {"output"},
    schema=_Row,
    read=_read,
    join=_join,
)
