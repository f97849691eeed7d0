"""From a finished audit, or its run directory, to what a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.audit import AuditRecord, Exchange, ExchangeSource
from unswayed.auditing.comparison import changes, load_answers
from unswayed.auditing.records import Metrics, Run, read_metrics, read_run
from unswayed.auditing.run_directory import belongs, read_bytes, write_text
from unswayed.decisions import MISSING, UNPARSED, BoolArray, DecisionTable, choice_of
from unswayed.errors import RunDirectoryError
from unswayed.items import Item, blind, text_of
from unswayed.methods import METHODS
from unswayed.presentation import Ask
from unswayed.report.data import FlippedItem, RunData, Shown
from unswayed.runner import Question

__all__ = ["FLIPS_FILE", "load_run", "load_runs", "run_data", "without_items", "write_report"]

FLIPS_FILE: Final = "flipped.json"
MOST_FLIPS: Final = 10_000
ITEMS_AT_ONCE: Final = 250
MOST_SHOWN: Final = 8
MOST_EXAMPLES: Final = 3

BUILT_IN = ("tiny/", "simulated/")
"""Recorded decisions, and runs of earlier versions, tell by their model's name alone."""
PLANTED = (
    "The bias of this model was planted, as a shift of the logits. That favours corrections that "
    "assume such a shift; other judges may need others."
)


class _Flips(msgspec.Struct, frozen=True):
    """What a report needs beyond run.json and metrics.json."""

    n_flipped: int
    flipped: tuple[FlippedItem, ...]
    unparsed_examples: tuple[str, ...]


def run_data(record: AuditRecord) -> RunData:
    """What the report of an audit is made from."""
    return _data(record.metrics, record.run, _collect(record))


def without_items(metrics: Metrics, run: Run) -> RunData:
    """What a summary is made from, which shows no single item."""
    return _data(metrics, run, _Flips(metrics.flips.get("total", 0), (), ()))


def load_run(directory: str | Path) -> RunData:
    """What the report of a finished run is made from.

    Raises:
        RunDirectoryError: If the directory holds no finished run.
    """
    path = Path(directory)
    run, metrics = read_run(path), read_metrics(path)
    flips = path / FLIPS_FILE
    if not belongs(flips):
        return without_items(metrics, run)
    try:
        return _data(metrics, run, msgspec.json.decode(read_bytes(flips), type=_Flips))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirectoryError(f"cannot read {flips}: {error}. Run the audit again.") from None


def write_report(directory: Path, record: AuditRecord) -> RunData:
    """Write `report.html` and what `unswayed report` needs to write it again."""
    from unswayed.report import render_report

    flips = _collect(record)
    data = _data(record.metrics, record.run, flips)
    write_text(directory / FLIPS_FILE, msgspec.json.encode(flips).decode("utf-8"))
    write_text(directory / "report.html", render_report([data]))
    return data


def load_runs(directories: Sequence[str | Path], *, names: Sequence[str] = ()) -> list[RunData]:
    """Finished runs side by side, each with its paired differences to the first.

    Args:
        directories: Of the runs.
        names: What to call them, in order; empty for what tells them apart.

    Raises:
        RunDirectoryError: If a directory holds no finished run.
    """
    runs = [load_run(directory) for directory in directories]
    if names:
        runs = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    if len(runs) < 2:
        return runs
    first, *others = (load_answers(Path(directory)) for directory in directories)
    compared = [
        replace(r, changes=changes(first, o, seed=runs[0].run.seed))
        for r, o in zip(runs[1:], others, strict=True)
    ]
    return [runs[0], *compared]


def _data(metrics: Metrics, run: Run, flips: _Flips) -> RunData:
    return RunData(
        metrics=metrics,
        run=run,
        flipped=flips.flipped,
        n_flipped=flips.n_flipped,
        unparsed_examples=flips.unparsed_examples,
        caveats=(PLANTED,) if run.planted or metrics.model.startswith(BUILT_IN) else (),
        about={name: _phrase(name) for name in metrics.methods},
    )


def _phrase(name: str) -> str:
    """What a method does, in the imperative, without a capital and a full stop."""
    base = name.partition(":")[0]
    if base not in METHODS:
        return ""
    idea = METHODS.load(base).about.idea.rstrip(".")
    return idea[:1].lower() + idea[1:]


def _collect(record: AuditRecord) -> _Flips:
    flipped: list[tuple[float, int, int]] = []
    tables = []
    for place, table in enumerate(record.tables):
        stratum = record.plan.strata[place]
        seen = table.select([Ask(view) for view in stratum.views])
        tables.append(seen)
        rows = _flipped_rows(seen, stratum.permutable)
        sure = _least_sure(seen, rows).tolist()
        flipped.extend((p, place, row) for p, row in zip(sure, rows.tolist(), strict=True))
    flipped.sort(key=lambda item: (-item[0], *item[1:]))  # ties and unknown: last
    kept = [
        (record.plan.strata[place].items[row], tables[place], row)
        for _, place, row in flipped[:MOST_FLIPS]
    ]
    return _Flips(
        n_flipped=len(flipped),
        flipped=tuple(_described(kept, record.exchanges)),
        unparsed_examples=tuple(_unparsed(record)),
    )


def _flipped_rows(seen: DecisionTable, permutable: BoolArray) -> NDArray[np.intp]:
    """Items that are not consistent: an answer that could not be read agrees with nothing."""
    if len(seen.asks) < 2:
        return np.zeros(0, dtype=np.intp)
    complete = (seen.choices != MISSING).all(axis=1)
    differ = (seen.choices != seen.choices[:, :1]).any(axis=1)
    unread = (seen.choices == UNPARSED).any(axis=1)
    return np.flatnonzero(complete & (differ | unread) & permutable)


def _least_sure(seen: DecisionTable, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The lowest probability among the choices of each item; 0 where there are none, and below
    that where a choice is a tie: a change of sides comes first.
    """
    choices = seen.choices[rows]
    least = np.zeros(len(rows))
    if seen.probs is not None:
        named = np.maximum(choices, 0).astype(np.intp)[:, :, None]
        chosen = np.take_along_axis(seen.probs[rows], named, axis=2)[:, :, 0].min(axis=1)
        least = np.where(np.isnan(chosen), 0.0, chosen)
    return np.where((choices < 0).any(axis=1), -1.0, least)


def _described(
    flipped: Sequence[tuple[Item, DecisionTable, int]], read: ExchangeSource
) -> Iterator[FlippedItem]:
    """Items with what was said about them, read many items at a time."""
    for start in range(0, len(flipped), ITEMS_AT_ONCE):
        part = [
            (item, seen, row, _most_telling(seen.choices[row].tolist()))
            for item, seen, row in flipped[start : start + ITEMS_AT_ONCE]
        ]
        questions = [
            Question(blind(item), seen.asks[view])
            for item, seen, _, views in part
            for view in views
        ]
        words = {(said.question.item.id, said.question.ask): said for said in read(questions)}
        for item, seen, row, views in part:
            told = ((view, words.get((item.id, seen.asks[view]))) for view in views)
            yield FlippedItem(
                item_id=item.id,
                group=item.group,
                gold=None if isinstance(item.gold, float | dict) else _choice(item.gold),
                candidates=tuple(text_of(candidate) for candidate in item.candidates),
                shown=tuple(_shown(seen, row, view, said) for view, said in told if said),
            )


def _choice(gold: int | str | tuple[int, ...] | None) -> Any:
    return gold


def _most_telling(choices: Sequence[int]) -> list[int]:
    """The item's own order first, then one presentation for each further answer, then the rest."""
    telling = {choice: view for view, choice in reversed(list(enumerate(choices)))}
    first = sorted(telling.values())
    return [*first, *(view for view in range(len(choices)) if view not in first)][:MOST_SHOWN]


def _shown(seen: DecisionTable, row: int, view: int, words: Exchange) -> Shown:
    shown, choice = seen.asks[view].presentation, choice_of(int(seen.choices[row, view]))
    labels = shown.symbols(seen.label_set)
    label = prob = None
    if isinstance(choice, int):
        label = labels[shown.order.index(choice)]
        share = np.nan if seen.probs is None else float(seen.probs[row, view, choice])
        prob = None if np.isnan(share) else share
    answer, reasoning = _split(words.text)
    return Shown(
        order=shown.order,
        labels=labels,
        messages=words.messages,
        spans=words.spans,
        choice=choice,
        label=label,
        prob=prob,
        text=answer,
        reasoning=reasoning,
    )


def _split(text: str | None) -> tuple[str | None, str | None]:
    """The answer, and the reasoning before it where it is marked."""
    if text is None or "</think>" not in text:
        return text, None
    reasoning, _, answer = text.rpartition("</think>")
    return answer.strip(), reasoning.removeprefix("<think>").strip() or None


def _unparsed(record: AuditRecord) -> Iterator[str]:
    """Raw text of a few answers that could not be read."""
    told = 0
    for stratum, table in zip(record.plan.strata, record.tables, strict=True):
        for row, column in np.argwhere(table.choices == UNPARSED)[:50]:
            question = Question(blind(stratum.items[row]), table.asks[column])
            for said in record.exchanges([question]):
                if said.text:
                    yield said.text[:2000]
                    told += 1
            if told >= MOST_EXAMPLES:
                return
