"""Find the questions that recorded decisions answer, and read the decisions of a few of them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from operator import lt

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.design import Stratum, asked_rows, stratum_asks
from unswayed.auditing.planning import AnsweredPart, AuditPlan
from unswayed.calls import Question
from unswayed.data.importers import line_of
from unswayed.metrics.patterns import unique_rows
from unswayed.model.decisions import Decision, Recording
from unswayed.model.items import suffix
from unswayed.model.presentation import Ask

QUESTIONS_AT_ONCE = 1024
ITEMS_AT_ONCE = 128
"""Whose lines are copied at once: they stay in the processor's caches."""


@dataclass(frozen=True, eq=False)
class AnswerSource:
    """Reads recorded decisions again where they lie; what was never asked is left out."""

    recording: Recording  # the decisions; the last one for a question is its answer

    @cached_property
    def _item_codes(self) -> Mapping[str, int]:
        return {name: code for code, name in enumerate(self.recording.item_ids)}

    @cached_property
    def _answers(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The cells that are answered, sorted, and the row of each."""
        cells = self.recording.cells
        if (cells[1:] > cells[:-1]).all():  # as files are written, item by item
            return cells, np.arange(len(cells))
        order = cells.argsort(kind="stable")
        last = np.append(np.diff(cells[order]) != 0, True)
        return cells[order][last], order[last]

    def __call__(self, questions: Iterable[Question]) -> Iterator[Decision]:
        """Yield the decisions of questions."""
        return (decision for _, decision in self.answers(questions))

    def answers(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Decision]]:
        """Questions that were answered, each with its decision."""
        stream = iter(questions)
        while some := list(islice(stream, QUESTIONS_AT_ONCE)):
            rows = self._rows(some)
            asked = [
                question for question, row in zip(some, rows.tolist(), strict=True) if row >= 0
            ]
            yield from zip(asked, self.recording.decisions(rows[rows >= 0]), strict=True)

    def _rows(self, questions: Sequence[Question]) -> NDArray[np.intp]:
        """Return the rows that answer questions, -1 where there is none; shape (Q,)."""
        items, asks = self._item_codes, self.recording.ask_codes
        item = np.array([items.get(question.item.id, -1) for question in questions], dtype=np.int64)
        asked = np.array([asks.get(question.ask, -1) for question in questions], dtype=np.int64)
        cells = np.where((item < 0) | (asked < 0), -1, item * len(asks) + asked)
        answered, rows = self._answers
        at = np.minimum(np.searchsorted(answered, cells), len(answered) - 1)
        return np.where(answered[at] == cells, rows[at], -1)

    def lines(self, plan: AuditPlan) -> Iterator[list[bytes]]:
        """Yield the decisions that answer the questions of a plan, as sorted lines of a file, in blocks.

        Lines of a file are copied as they stand, a few items at a time, unless they are asked
        otherwise here than there.
        """
        recording, rows = self.recording, self._answering(plan)
        rank = _ranks(recording)[recording.item[rows]]
        if (rank[1:] < rank[:-1]).any():
            order = rank.argsort(kind="stable")
            rows, rank = rows[order], rank[order]
        ends = np.searchsorted(rank, np.arange(0, len(recording.item_ids), ITEMS_AT_ONCE))
        for first, last in pairwise([*ends.tolist(), len(rows)]):
            yield sorted(self._lines(rows[first:last]))

    def _lines(self, rows: NDArray[np.intp]) -> list[bytes]:
        recording = self.recording
        if recording.originals is None or recording.is_changed:
            return list(map(line_of, recording.decisions(rows)))
        return recording.originals.lines(recording.places[rows].tolist())

    def _answering(self, plan: AuditPlan) -> NDArray[np.intp]:
        """Return the rows that answer questions of a plan, each once."""
        cells, rows = self._answers
        codes = self.recording.ask_codes
        wanted = np.zeros(len(rows), dtype=np.bool_)
        item, asked = np.divmod(cells, max(len(codes), 1))
        for stratum in plan.strata:
            row_of_item = self.recording.places_among([item.id for item in stratum.items])
            for ask, about in asked_rows(stratum, stratum_asks(stratum, plan.methods.values())):
                if ask in codes:
                    answers = np.flatnonzero(asked == codes[ask])
                    is_asked = np.zeros(len(stratum.items) + 1, dtype=np.bool_)
                    is_asked[about] = True
                    wanted[answers] |= is_asked[row_of_item[item[answers]]]
        fitting = self._rows(plan.estimation)
        chosen = np.zeros(len(self.recording), dtype=np.bool_)
        chosen[rows[wanted]] = chosen[fitting[fitting >= 0]] = True
        return np.flatnonzero(chosen)


def _ranks(recording: Recording) -> NDArray[np.intp]:
    """Return the place of each item among the sorted lines of a file; the criteria of one are together."""
    criteria = np.zeros(len(recording.item_ids), dtype=np.int32)
    criteria[recording.item] = recording.kind
    names: Sequence[str] = recording.item_ids
    if any(kind.criterion is not None for kind in recording.kinds):
        kinds = [recording.kinds[code] for code in criteria.tolist()]
        names = [
            name if kind.criterion is None else name.removesuffix(suffix(kind.criterion))
            for name, kind in zip(names, kinds, strict=True)
        ]
    keys = msgspec.json.Encoder().encode_lines(names).splitlines()
    if all(map(lt, keys, keys[1:])):  # as files are written
        return np.arange(len(keys), dtype=np.intp)
    ranks = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([ranks[key] for key in keys], dtype=np.intp)


def answered_part(recording: Recording, stratum: Stratum) -> AnsweredPart:
    """Return the questions that the items of a stratum answer."""
    codes = recording.ask_codes
    asks = [ask for ask in codes if ask.presentation.n == stratum.n and ask.substitute is None]
    row_of_item = recording.places_among([item.id for item in stratum.items])
    columns_of_asks = np.full(len(codes), -1, dtype=np.intp)
    columns_of_asks[[codes[ask] for ask in asks]] = np.arange(len(asks))
    of_kind = np.array([codes[ask] for ask in recording.asks], dtype=np.intp)
    rows, asked = row_of_item[recording.item], of_kind[recording.kind]
    columns = columns_of_asks[asked]
    cells = np.zeros((len(stratum.items), -(-max(len(asks), 1) // 64) * 64), dtype=np.bool_)
    about_content = (rows >= 0) & (columns >= 0)
    cells[rows[about_content], columns[about_content]] = True
    first, of_item = unique_rows(np.packbits(cells, axis=1).view(np.int64))
    sets = {
        frozenset(asks[column] for column in np.flatnonzero(cells[row]).tolist()): number
        for number, row in enumerate(first.tolist())
    }
    distinct = list(sets)
    content_free: dict[int, set[Ask]] = {}
    by_code = list(codes)
    probes = np.array([ask.substitute is not None for ask in codes], dtype=np.bool_)
    for at in np.flatnonzero((rows >= 0) & probes[asked]).tolist():
        content_free.setdefault(int(rows[at]), set()).add(by_code[asked[at]])
    for row, own in content_free.items():
        of_item[row] = sets.setdefault(distinct[of_item[row]] | own, len(sets))
    return AnsweredPart(tuple(sets), of_item)
