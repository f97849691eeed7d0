"""From a finished audit, or its run directory, to what a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.comparison import changes, load_answers
from unswayed.auditing.records import Metrics, Run, read_metrics, read_run
from unswayed.auditing.run import AuditRecord
from unswayed.auditing.run_directory import belongs, read_bytes, write_sums, write_text
from unswayed.decisions import MISSING, UNPARSED, BoolArray, Decision, DecisionTable
from unswayed.errors import RunDirectoryError
from unswayed.items import Item, Message, blind, text_of
from unswayed.methods import METHODS
from unswayed.presentation import Ask, Presentation
from unswayed.prompts import PromptSettings, render
from unswayed.report.data import FlippedItem, RunData, Shown
from unswayed.runner import Question

__all__ = ["FLIPS_FILE", "load_run", "load_runs", "run_data", "without_items", "write_report"]

FLIPS_FILE: Final = "flipped.json"
MOST_FLIPS: Final = 10_000
ITEMS_AT_ONCE: Final = 250
MOST_SHOWN: Final = 8
MOST_EXAMPLES: Final = 3

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

    found = _collect(record)
    data = _data(record.metrics, record.run, found)
    write_text(directory / FLIPS_FILE, msgspec.json.encode(found).decode("utf-8"))
    write_text(directory / "report.html", render_report([data]))
    write_sums(directory)
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


def _data(metrics: Metrics, run: Run, found: _Flips) -> RunData:
    return RunData(
        metrics=metrics,
        run=run,
        flipped=found.flipped,
        n_flipped=found.n_flipped,
        unparsed_examples=found.unparsed_examples,
        caveats=(PLANTED,) if metrics.model.startswith(("tiny/", "simulated/")) else (),
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
    for place, table in enumerate(record.tables):
        views = record.plan.strata[place].views
        seen = table.select([Ask(view) for view in views])
        rows = _flipped_rows(seen, record.plan.strata[place].permutable)
        sure = _least_sure(seen, rows).tolist()
        flipped.extend((p, place, row) for p, row in zip(sure, rows.tolist(), strict=True))
    flipped.sort(key=lambda one: (-one[0], one[1], one[2]))  # ties and unknown: last
    kept = flipped[:MOST_FLIPS]
    wanted = [
        (record.plan.strata[place].items[row], record.plan.strata[place].views)
        for _, place, row in kept
    ]
    return _Flips(
        n_flipped=len(flipped),
        flipped=tuple(
            _describe(item, decisions, record.prompts)
            for item, decisions in _with_decisions(record, wanted)
        ),
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


def _with_decisions(
    record: AuditRecord, wanted: Sequence[tuple[Item, tuple[Presentation, ...]]]
) -> Iterator[tuple[Item, list[Decision]]]:
    """Items with their decisions in the order of the views, read many items at a time."""
    for start in range(0, len(wanted), ITEMS_AT_ONCE):
        part = wanted[start : start + ITEMS_AT_ONCE]
        questions = [Question(blind(item), Ask(view)) for item, views in part for view in views]
        found: dict[str, dict[Ask, Decision]] = {item.id: {} for item, _ in part}
        for decision in record.source(questions):
            found[decision.item_id][decision.ask] = decision
        for item, views in part:
            answers = found[item.id]
            yield item, [answers[Ask(view)] for view in views if Ask(view) in answers]


def _describe(item: Item, decisions: list[Decision], prompts: PromptSettings | None) -> FlippedItem:
    gold = item.gold
    return FlippedItem(
        item_id=item.id,
        group=item.group,
        gold=None if isinstance(gold, float | dict) else _choice(gold),
        candidates=tuple(text_of(candidate) for candidate in item.candidates),
        shown=tuple(_shown(item, one, prompts) for one in _most_telling(decisions)),
    )


def _choice(gold: int | str | tuple[int, ...] | None) -> Any:
    return gold


def _most_telling(decisions: list[Decision]) -> list[Decision]:
    """The item's own order first, then one presentation for each further answer, then the rest."""
    first: dict[object, Decision] = {}
    for decision in decisions:
        first.setdefault(decision.choice, decision)
    chosen = list(first.values())
    chosen.extend(decision for decision in decisions if decision not in chosen)
    return chosen[:MOST_SHOWN]


def _shown(item: Item, decision: Decision, prompts: PromptSettings | None) -> Shown:
    label = None
    prob = None
    if isinstance(decision.choice, int):
        label = decision.labels[decision.order.index(decision.choice)]
        prob = None if decision.probs is None else decision.probs[decision.choice]
    answer, reasoning = _split(decision.text)
    return Shown(
        order=decision.order,
        labels=decision.labels,
        messages=_messages(item, decision, prompts),
        choice=decision.choice,
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


def _messages(
    item: Item, decision: Decision, prompts: PromptSettings | None
) -> tuple[Message, ...]:
    """The prompt as it was sent; for recorded decisions, whose prompt is not known, the layout."""
    if prompts is not None:
        ask = decision.ask._replace(sample=0)
        return render(blind(item), ask, prompts).messages
    texts = [text_of(item.candidates[candidate]) for candidate in decision.order]
    if not any(texts):
        return ()
    shown = [f"{label}: {text}" for label, text in zip(decision.labels, texts, strict=True)]
    return (Message("shown", "\n\n".join([text_of(item.prompt), *shown])),)


def _unparsed(record: AuditRecord) -> Iterator[str]:
    """Raw text of a few answers that could not be read."""
    found = 0
    for stratum, table in zip(record.plan.strata, record.tables, strict=True):
        for row, column in np.argwhere(table.choices == UNPARSED)[:50]:
            question = Question(blind(stratum.items[row]), table.asks[column])
            for decision in record.source([question]):
                if decision.text:
                    yield decision.text[:2000]
                    found += 1
            if found >= MOST_EXAMPLES:
                return
