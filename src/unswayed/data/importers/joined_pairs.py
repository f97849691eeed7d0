"""Formats of pairs that come in several files; why each is read so stands above it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import msgspec

from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.data.importers.protocol import (
    Entry,
    Part,
    Record,
    Source,
    candidate_at,
    changed,
    importer,
    named,
    pair_decision,
    read_as,
    readable,
    short_name,
)
from unswayed.model.decisions import Choice, Decision
from unswayed.model.items import BadFieldError, Item, Message, Text
from unswayed.model.presentation import X0, X2

_1_2: Final = ("1", "2")
"""Prompts of Auto-J and PandaLM call the answers Response 1 and Response 2."""

_File = tuple[str, list[Entry]]


def _first(entries: Sequence[Entry]) -> Record:
    """Return the first record that can be read; empty if there is none."""
    return next(readable(entries), {})


def _parted(
    files: Sequence[tuple[str, Iterator[Entry]]], are_results: Callable[[Record], bool]
) -> tuple[list[_File], list[_File]]:
    parts = [(file, list(entries)) for file, entries in files]
    results = [part for part in parts if are_results(_first(part[1]))]
    return [part for part in parts if not are_results(_first(part[1]))], results


# Auto-J: the public files are three, joined by line: the test data (`prompt`, `response 1`, `response 2`, `label`), the
# outputs on them, and the outputs with the responses exchanged; the last may be lacking. An output is a *displayed*
# position (0 first, 1 second, 2 tie), so the exchanged one must be read the other way round. The label is by response
# (0, 1, 2 tie). One file that was joined before (`autoj_output_order1`, `autoj_output_order2` beside the test data) is read
# too.
# Source: GAIR-NLP/auto-j, `data/test/testdata_pairwise.jsonl`, `data/outputs/pairwise_*.jsonl`.

_AUTOJ_PAIR: Final = frozenset({"prompt", "response 1", "response 2"})
_COMMAND: Final = "unswayed import autoj TESTDATA.jsonl OUTPUTS.jsonl EXCHANGED.jsonl"
_OUTPUT: Final[dict[int | None, Choice]] = {0: 0, 1: 1, 2: "tie", None: None}

_Output = int | None | msgspec.UnsetType


class _AutoJ(msgspec.Struct):
    prompt: str
    response_1: str = msgspec.field(name="response 1")
    response_2: str = msgspec.field(name="response 2")
    label: int | None = None
    row: int | str | None = None
    scenario: str | None = None
    autoj_output_order1: _Output = msgspec.UNSET
    autoj_output_order2: _Output = msgspec.UNSET
    judge: str = "auto-j"


def _autoj(row: _AutoJ, source: Source) -> Iterator[Part]:
    item = Item(
        id=f"{short_name(source.file)}-{source.number if row.row is None else row.row}",
        prompt=row.prompt,
        candidates=(row.response_1, row.response_2),
        gold=named(_OUTPUT, row.label, "label", "0, 1, 2 (tie) or null"),
        group=row.scenario,
    )
    yield item
    outputs = ((X0, row.autoj_output_order1), (X2, row.autoj_output_order2))
    for number, (shown, output) in enumerate(outputs, start=1):
        if not isinstance(output, msgspec.UnsetType):
            field = f"autoj_output_order{number}"
            position = named(_OUTPUT, output, field, "0, 1, 2 (tie) or null")
            yield pair_decision(item, shown, _1_2, candidate_at(shown, position), model=row.judge)


def _by_line(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """Yield the test data with the outputs on the same lines."""
    pairs, outputs = _parted(
        files, lambda first: "output" in first and not first.keys() >= _AUTOJ_PAIR
    )
    if not outputs:
        for _, entries in pairs:
            yield from entries
        return
    if len(pairs) != 1 or len(outputs) > 2:
        raise UsageError(
            f"{plural(len(pairs), 'file')} of test data and {len(outputs)} of outputs do not make one set. Give one "
            f"file of test data and one or two files of its outputs: {_COMMAND}"
        )
    outputs.sort(key=lambda part: "exchange" in PurePath(part[0]).name)
    parts = [*pairs, *outputs]
    if len({len(entries) for _, entries in parts}) > 1:
        counts = ", ".join(f"{file} {len(entries)}" for file, entries in parts)
        raise UsageError(f"autoj joins files by line: {counts}. Give files of equal length.")
    for lines in zip(*(entries for _, entries in parts), strict=True):
        records = list(readable(lines))
        if len(records) < len(lines):
            yield next(line for line in lines if isinstance(line[1], BadFieldError))
            continue
        given = {f"autoj_output_order{k}": r.get("output") for k, r in enumerate(records[1:], 1)}
        yield lines[0][0], {**records[0], **given, "judge": short_name(outputs[0][0])}


AUTOJ: Final = importer(
    "Auto-J pairwise test data with outputs in both orders, as one file or three.",
    _AutoJ,
    _autoj,
    detects=lambda record: record.keys() >= _AUTOJ_PAIR or record.keys() == {"output"},
    left_out=f"test data without outputs (give them: {_COMMAND})",
    join=_by_line,
    answer="autoj_output_order1",
)

# PandaLM: the test set has the pair and three annotators (0 tie, 1 or 2), the result file of a judge only `<judge>_result`
# ("1", "2", "Tie") and its reason; they are joined by `idx`. Response 1 was always shown first, so there is one order and
# nothing is known about its effect. Gold is what most annotators said; without a majority there is none, counted. A result
# "garbage" could not be read: here it is unparsed, in the project's own script it counts as a tie. The instruction's `input`
# stands behind it in the prompt. The test set alone gives items, a result file alone decisions.
# Source: WeOpenML/PandaLM, `data/testset-v1.json`, `data/*-testset-v1.json`.

_PANDALM_PAIR: Final = frozenset({"idx", "response1", "response2"})
_RESULT: Final = "_result"
_VOTES: Final[dict[str, Choice]] = {"0": "tie", "1": 0, "2": 1, "tie": "tie", "garbage": None}

_Bare = str | bool | int | float | None
"""A text; an answer such as `True` or `7` has lost its quotes in the public file."""


class _PandaLm(msgspec.Struct):
    idx: int | str
    instruction: _Bare = None
    input: _Bare = None
    response1: _Bare = None
    response2: _Bare = None
    annotator1: int | str | None = None
    annotator2: int | str | None = None
    annotator3: int | str | None = None
    motivation_app: str | None = None
    cmp_key: str | None = None
    result: int | str | msgspec.UnsetType | None = msgspec.field(
        name="unswayed_result", default=msgspec.UNSET
    )
    judge: str | None = msgspec.field(name="unswayed_judge", default=None)
    reason: str | None = msgspec.field(name="unswayed_reason", default=None)


def _pandalm(row: _PandaLm, source: Source) -> Iterator[Part]:
    name = f"pandalm-{row.idx}"
    if row.response1 is not None and row.response2 is not None:
        gold = _majority(row)
        yield Item(
            id=name,
            prompt="\n\n".join(str(part) for part in (row.instruction, row.input) if part),
            candidates=(str(row.response1), str(row.response2)),
            gold=gold,
            group=row.motivation_app,
            meta={"cmp_key": row.cmp_key},
        )
        if gold is None and row.annotator1 is not None:
            yield "items without gold: no majority of the annotators"
    if not isinstance(row.result, msgspec.UnsetType):
        choice = _vote(row.result, "result")
        yield Decision(
            item_id=name, order=(0, 1), labels=_1_2, choice=choice, text=row.reason, model=row.judge
        )


def _majority(row: _PandaLm) -> Choice:
    given = enumerate((row.annotator1, row.annotator2, row.annotator3), start=1)
    votes = [_vote(vote, f"annotator{k}") for k, vote in given if vote is not None]
    (choice, count), *_ = Counter(votes).most_common() or [(None, 0)]
    return choice if 2 * count > len(votes) else None


def _vote(value: int | str | None, field: str) -> Choice:
    written = str(value).strip().lower()
    if written not in _VOTES:
        raise BadFieldError(field, f"{value!r} is not 1, 2, 0, Tie or garbage")
    return _VOTES[written]


def _by_idx(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """Yield the results of judges beside their pairs, by `idx`."""
    sets, results = _parted(
        files, lambda first: not first.keys() >= _PANDALM_PAIR or _result_field(first) is not None
    )
    if len(sets) > 1:
        names = ", ".join(file for file, _ in sets)
        raise UsageError(f"{names}: two files of pairs do not make one set. Give one of them.")
    own = sets[0][1] if sets else []
    yield from (entry for entry in own if isinstance(entry[1], BadFieldError))
    pairs = {str(record.get("idx")): record for record in readable(own)}
    judged = {str(record.get("idx")) for _, part in results for record in readable(part)}
    for file, part in results:
        yield from changed(part, partial(_beside, pairs, file))
    for source, record in own:
        if not isinstance(record, BadFieldError) and str(record.get("idx")) not in judged:
            yield source, record


def _beside(pairs: Mapping[str, Record], file: str, result: Record) -> Record:
    field = _result_field(result)
    pair = pairs.get(str(result.get("idx")), {})
    reason = result.get(f"{field.removesuffix(_RESULT)}_reason") if field else None
    return {
        **pair,
        **result,
        **({} if field is None else {"unswayed_result": result[field]}),
        "unswayed_reason": reason if isinstance(reason, str) else None,
        "unswayed_judge": short_name(file).removesuffix("-testset-v1"),
    }


def _result_field(record: Record) -> str | None:
    return next((name for name in record if name.endswith(_RESULT)), None)


PANDALM: Final = importer(
    "PandaLM's test set with results of judges, one order; give all files together.",
    _PandaLm,
    _pandalm,
    detects=lambda record: (
        record.keys() >= _PANDALM_PAIR | {"annotator1"}
        or ("idx" in record and _result_field(record) is not None)
    ),
    left_out=None,
    join=_by_idx,
)

# Pairwise judgments of the Position-Bias-Analyzer: one record per order, raw text. The candidates are a reference model
# and another, told apart by name; which of them stood first is in the record. The verdict is the letter in the column
# `extracted` (N: none was read). Without that column it is the first [[A]], [[B]] or [[C]] (tie) of the text, or in
# DevBench the letter after "Choice:", as in the study's own code. There is no gold. The public tables
# (`record_<judge>.tsv`) have the texts and name the judge in the head of the column of its texts; two turns become
# messages. `consistent_cmp.tsv` and `inconsistent_cmp.tsv` hold the same calls, split by consistency. Of files called
# `Repetition<n>` the nth holds sample n - 1. JSON Lines made of the study's pickles (`model_shown_as_A`, `raw`) have no
# texts.
# Source: Slimshilin/Position-Bias-Analyzer, `judgment_data`.

_MT_REFERENCE: Final = "vicuna-13b-v1.3"
"""The model that is candidate 0; without it the first name in the alphabet is."""

_VERDICT: Final = re.compile(r"\[\[([A-D])\]\]")
_CHOSEN: Final = re.compile(r"Choice:\W*([A-D])\b")
"""DevBench's prompt asks for this form."""
_POSITION: Final[Mapping[str, Choice]] = {"A": 0, "B": 1, "C": "tie"}
"""Choice by letter; D gives no verdict."""
_PICKLE: Final = {"question_id", "model_shown_as_A", "model_shown_as_B", "raw"}
_ONE_TURN: Final = {"cmp_index", "A", "B", "question", "answer1", "answer2"}
_TWO_TURNS: Final = {"cmp_index", "A", "B"} | {
    f"{name}_{turn}" for name in ("question", "answer1", "answer2") for turn in (1, 2)
}
_LAYOUTS: Final = (_PICKLE, _ONE_TURN, _TWO_TURNS)
_REFERENCES: Final = ("reference_answer", "reference_answer_1", "reference_answer_2")
_COLUMNS: Final = (
    _ONE_TURN | _TWO_TURNS | {*_REFERENCES, "task", "evaluating_guidance", "extracted"}
)
"""Columns of the public tables; one more has the name of the judge."""
_REPETITION: Final = re.compile(r"repetition(\d+)", re.IGNORECASE)


class _Row(msgspec.Struct):
    question_id: int | str
    model_shown_as_A: str  # noqa: N815 - the study's own field names
    model_shown_as_B: str  # noqa: N815
    raw: str
    judge: str | None = None


def _mt_bench(record: dict[str, Any], source: Source) -> Iterator[Part]:
    if "raw" not in record:
        return _of_table(record, source)
    row = read_as(_Row, record)
    models, letter = (row.model_shown_as_A, row.model_shown_as_B), _letter(_VERDICT, row.raw)
    return _call(row.question_id, models, letter, text=row.raw, model=row.judge)


def _call(
    question: int | str,
    models: tuple[str, str],
    letter: str | None,
    answers: tuple[Text, Text] = ("", ""),
    *,
    prompt: str = "",
    reference: str | None = None,
    group: str | None = None,
    **call: Any,
) -> Iterator[Part]:
    """One call and its pair of models; models and answers by displayed position."""
    names = sorted(models, key=lambda name: (name != _MT_REFERENCE, name))
    shown = X0 if names[0] == models[0] else X2
    item = Item(
        id=f"{question};{names[0]};{names[1]}",
        prompt=prompt,
        candidates=tuple(answers[shown.position_of_candidate(c)] for c in (0, 1)),
        reference=reference,
        group=group,
        meta={"question_id": question},
        unit=str(question),
        candidates_by=tuple(names),
    )
    yield item
    choice = candidate_at(shown, _POSITION.get(letter or ""))
    yield pair_decision(item, shown, ("A", "B"), choice, **call)


def _letter(pattern: re.Pattern[str], text: str) -> str | None:
    verdict = pattern.search(text)
    return verdict[1] if verdict else None


def _of_table(record: Record, source: Source) -> Iterator[Part]:
    row = {name: str(cell) for name, cell in record.items()}
    judge = next((name for name in reversed(row) if name not in _COLUMNS), None)
    if judge is None:
        raise BadFieldError("row", "no column is named after a judge and holds its text")
    turns = "question_2" in row
    needed = _TWO_TURNS if turns else _ONE_TURN
    if not needed <= row.keys():
        raise BadFieldError("row", f"has no column {', '.join(sorted(needed - row.keys()))}")
    references = [row[name] for name in _REFERENCES if row.get(name) not in (None, "", "nan")]
    repetition = _REPETITION.search(source.file)
    return _call(
        row["cmp_index"].partition(";")[0],
        (row["A"], row["B"]),
        row.get("extracted") or _letter(_VERDICT if turns else _CHOSEN, row[judge]),
        (_answer(row, 1), _answer(row, 2)),
        prompt=row["question_1" if turns else "question"],
        reference="\n\n".join(references) or None,
        group=row.get("task") or None,
        text=row[judge],
        model=judge,
        sample=int(repetition[1]) - 1 if repetition else 0,
    )


def _answer(row: Mapping[str, str], place: int) -> Text:
    """Return the answer shown at a place, from 1: one text, or the messages of two turns."""
    if "question_2" not in row:
        return row[f"answer{place}"]
    return (
        Message("assistant", row[f"answer{place}_1"]),
        Message("user", row["question_2"]),
        Message("assistant", row[f"answer{place}_2"]),
    )


MT_BENCH: Final = importer(
    "Position-Bias-Analyzer (MT-Bench, DevBench): pairs in both orders, verdicts read from the text.",
    dict[str, Any],
    _mt_bench,
    detects=lambda record: any(record.keys() >= names for names in _LAYOUTS),
)
