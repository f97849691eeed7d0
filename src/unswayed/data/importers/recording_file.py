"""Read a decisions file as columns, without a record for each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UnswayedError
from unswayed.data.importers.decisions_file import (
    decode_decision,
    decode_quickly,
    no_decisions,
    question_key,
    refusal,
    repeated,
)
from unswayed.data.importers.recorded_lines import GivenLines, RecordedLines
from unswayed.model.decisions import Decision, Recorder, Recording, are_usual
from unswayed.model.items import BadFieldError, BadLine, suffix


def read_recording(
    source: str | Path | Sequence[object], on_bad_item: Literal["stop", "skip"] = "stop"
) -> Recording:
    """Read a decisions file, or the Parquet that `unswayed export` writes, into columns.

    A decision about one of several criteria gets the id of that criterion (`items.criteria`).

    Args:
        source: `.jsonl`, `.jsonl.gz`, `.parquet`, `-` for standard input, or decisions and mappings with
            their fields in memory.
        on_bad_item: "stop" at the first bad line, or "skip" and keep the bad lines apart
            (`Recording.bad_lines`). A question answered twice by one model is a bad line; the first
            answer is kept.

    Raises:
        ItemError: If a line is bad, or there are no decisions.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
        UsageError: If the file cannot be read.
    """
    recorder = Recorder()
    if isinstance(source, str | Path):
        lines: RecordedLines | GivenLines = RecordedLines(source, decode_decision)
    else:
        lines = GivenLines(source, decode_decision)
    in_memory = isinstance(lines, GivenLines)
    path = str(lines.path)
    bad: list[BadLine] = []
    for first, block in lines.blocks():
        if _take_quickly(recorder, first, block):
            continue
        bad.extend(_take_one_by_one(recorder, first, block, path))
        if bad and on_bad_item == "stop":
            break
    recording = recorder.recording(lines)
    again = _repeated(recording)
    for row, before in again.items():
        where = f"{'by decisions:' if in_memory else 'on line '}{recording.places[before] + 1}"
        error = repeated(recording.item_ids[recording.item[row]], where)
        bad.append(BadLine(path, int(recording.places[row]) + 1, error.field, error.reason))
    bad.sort(key=lambda problem: problem.line)
    if bad and on_bad_item == "stop":
        raise refusal(
            bad[0], is_first=not (recording.places < bad[0].line - 1).any(), in_memory=in_memory
        )
    recording = recording.rows(~np.isin(np.arange(len(recording)), list(again)))
    if not len(recording):
        raise no_decisions(path, bad, in_memory=in_memory)
    return recording.tidy().without(bad) if bad else recording


def read_decisions_file(
    path: str | Path, on_bad_item: Literal["stop", "skip"] = "stop"
) -> tuple[Decision, ...]:
    """Return the decisions of `read_recording` in file order; it raises the same errors."""
    recording = read_recording(path, on_bad_item)
    return tuple(recording.decisions(np.arange(len(recording))))


def _take_quickly(recorder: Recorder, first: int, lines: list[bytes]) -> bool:
    """Take a block in which nothing calls for a second look; whether it was one."""
    try:
        decisions = list(map(decode_quickly, lines))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, UnswayedError):
        return False
    if not are_usual(decisions):
        return False
    ids = [
        decision.item_id
        if decision.criterion is None
        else decision.item_id + suffix(decision.criterion)
        for decision in decisions
    ]
    block = recorder.block(decisions, ids)
    if not recorder.is_surely_right(block):
        return False
    recorder.add(block, np.arange(first, first + len(lines)))
    return True


def _take_one_by_one(
    recorder: Recorder, first: int, lines: list[bytes], path: str
) -> list[BadLine]:
    """Take the good lines of a block; the bad ones."""
    decisions: list[Decision] = []
    places, bad = [], []
    for place, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            decisions.append(decode_decision(line))
            places.append(place)
        except BadFieldError as error:
            bad.append(BadLine(path, place + 1, error.field, error.reason))
    if decisions:
        block = recorder.block(decisions, [decision.item_id for decision in decisions])
        recorder.add(block, np.array(places, dtype=np.int64))
    return bad


def _repeated(recording: Recording) -> dict[int, int]:
    """Return the first answer's row by the rows of later answers to the same question."""
    questions: dict[object, int] = {}
    of_kind = [questions.setdefault(question_key(kind), len(questions)) for kind in recording.kinds]
    number: NDArray[np.int64] = np.array(of_kind, dtype=np.int64)[recording.kind]
    number += recording.item.astype(np.int64) * len(questions)
    order = number.argsort(kind="stable")
    again = np.flatnonzero(number[order][1:] == number[order][:-1]) + 1
    first_of: dict[int, int] = {}
    for at in again.tolist():
        before = int(order[at - 1])
        first_of[int(order[at])] = first_of.get(before, before)
    return first_of
