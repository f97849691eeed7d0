"""Collect decisions, one by one, into the columns of a `Recording`."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import ItemError, ShapeError
from unswayed.model.decisions.codes import Choice, FloatArray, IntArray, code_of
from unswayed.model.decisions.decision import MOST_COUNT, Decision, has_sound_presentation
from unswayed.model.decisions.recording import ByCandidate, Originals, Recording
from unswayed.model.items import BadLine

SHARED: Final = (
    "order",
    "labels",
    "label_set",
    "sample",
    "prompt_id",
    "model",
    "criterion",
    "criteria_order",
    "substitute",
    "substitute_prompt",
)
"""What a decision says of its question, apart from the item."""
_shared: Final = attrgetter(*SHARED)
AT_ONCE: Final = 4096
SURE: Final = 9e-4
"""Sums of probabilities nearer to 1 than this pass the check, however they are rounded."""
MOST_CANDIDATE: Final = int(np.iinfo(np.int16).max)
CODES: Final[dict[Choice, int]] = {
    None: -1,
    "tie": -2,
    **{candidate: candidate for candidate in range(256)},
}


class AnswerColumns(NamedTuple):
    """Columns of a few decisions; shapes (B,)."""

    choices: IntArray
    label_mass: FloatArray
    marks: IntArray
    probs: ByCandidate
    ratings: Mapping[str, ByCandidate]

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> AnswerColumns:
        """Return the columns of decisions, in their order."""
        mass: list[float | None] = [decision.label_mass for decision in decisions]
        rated = [decision.ratings for decision in decisions] if _is_any_rated(decisions) else []
        names = dict.fromkeys(name for ratings in rated for name in ratings)
        return cls(
            choices=np.array(codes_of(decisions), dtype=np.int16),
            label_mass=np.array(mass, dtype=np.float64),  # None becomes NaN
            marks=np.array([decision.marks for decision in decisions], dtype=np.int16),
            probs=_by_candidate([decision.probs for decision in decisions]),
            ratings={name: _by_candidate([own.get(name) for own in rated]) for name in names},
        )


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """A few decisions as columns, by the numbers that their `Recorder` gave; shapes (B,)."""

    kind: NDArray[np.int32]
    item: NDArray[np.int32]
    finish: NDArray[np.int32]
    answers: AnswerColumns


class Recorder:
    """Collects decisions as columns, a block at a time; what they share is numbered as it comes."""

    def __init__(self) -> None:
        self._kinds: defaultdict[tuple[object, ...], int] = defaultdict(count().__next__)
        self._items: defaultdict[str, int] = defaultdict(count().__next__)
        self._finish: defaultdict[str | None, int] = defaultdict(count().__next__)
        self._units: dict[str, str] = {}
        self._sizes = np.empty(0, dtype=np.int64)
        self._blocks: list[Block] = []
        self._places: list[NDArray[np.int64]] = []

    def block(self, decisions: Sequence[Decision], item_ids: Sequence[str]) -> Block:
        """Decisions as columns, with the ids that their items have in memory."""
        kinds, items, finish = self._kinds, self._items, self._finish
        for name, d in zip(item_ids, decisions, strict=True):
            if d.unit is not None and d.unit != (own := self._units.setdefault(name, d.unit)):
                raise ItemError(
                    f"{name}: unit is {d.unit!r}, but {own!r} in an earlier decision. Give each item "
                    f"one unit."
                )
        return Block(
            kind=np.array([kinds[_shared(d)] for d in decisions], dtype=np.int32),
            item=np.array([items[item_id] for item_id in item_ids], dtype=np.int32),
            finish=np.array([finish[d.finish_reason] for d in decisions], dtype=np.int32),
            answers=AnswerColumns.of(decisions),
        )

    def is_surely_right(self, block: Block) -> bool:
        """Return True if `check_decision` has nothing to say about any decision of a block without ratings.

        It decides about blocks with a decision near a limit of the rules.
        """
        if len(self._sizes) < len(self._kinds):
            new = itertools.islice(self._kinds, len(self._sizes), None)
            sizes = [len(own.order) if _is_plain(own) else 0 for own in map(_kind_of, new)]
            self._sizes = np.append(self._sizes, sizes)
        n, mass = self._sizes[block.kind], block.answers.label_mass
        shares = np.isnan(mass) | ((mass > 0) & (mass <= 1))
        if not (n.all() and (block.answers.choices < n).all() and shares.all()):
            return False
        start, values = block.answers.probs.start, block.answers.probs.values
        held = start >= 0
        if not held.all():
            start, n = start[held], n[held]
        if not np.array_equal(np.append(start[1:], len(values)) - start, n):
            return False
        if not len(start):
            return True
        totals = np.add.reduceat(values, start)
        return bool(values.min() >= 0 and (np.abs(totals - 1) < SURE).all())

    def add(self, block: Block, places: NDArray[np.int64]) -> None:
        """Take a block of decisions that lie at some places."""
        self._blocks.append(block)
        self._places.append(places)

    def recording(
        self, originals: Originals | None = None, *, bad_lines: Iterable[BadLine] = ()
    ) -> Recording:
        """Return the decisions collected so far."""
        blocks = self._blocks or [self.block((), ())]
        answers = [block.answers for block in blocks]
        names = dict.fromkeys(name for own in answers for name in own.ratings)
        return Recording(
            kinds=tuple(map(_kind_of, self._kinds)),
            item_ids=tuple(self._items),
            kind=np.concatenate([block.kind for block in blocks]),
            item=np.concatenate([block.item for block in blocks]),
            choices=np.concatenate([own.choices for own in answers]),
            finish=np.concatenate([block.finish for block in blocks]),
            label_mass=np.concatenate([own.label_mass for own in answers]),
            marks=np.concatenate([own.marks for own in answers]),
            probs=_joined([own.probs for own in answers]),
            ratings={
                name: _joined(
                    [
                        own.ratings.get(name) or _by_candidate([None] * len(own.choices))
                        for own in answers
                    ]
                )
                for name in names
            },
            places=np.concatenate([np.empty(0, dtype=np.int64), *self._places]),
            finish_reasons=tuple(self._finish),
            units=self._units,
            originals=originals,
            bad_lines=tuple(bad_lines),
        )


def record(
    decisions: Iterable[Decision],
    *,
    originals: Originals | None = None,
    bad_lines: Iterable[BadLine] = (),
) -> Recording:
    """Decisions of any source as columns; none is kept."""
    recorder, before = Recorder(), 0
    stream = iter(decisions)
    while some := list(itertools.islice(stream, AT_ONCE)):
        ids = [decision.item_id for decision in some]
        recorder.add(recorder.block(some, ids), np.arange(before, before + len(some)))
        before += len(some)
    return recorder.recording(originals, bad_lines=bad_lines)


def are_usual(decisions: Sequence[Decision]) -> bool:
    """Return True if each has no ratings, counts tokens, and names one of the first candidates, a tie or
    nothing.
    """
    chosen = {own.choice for own in decisions}
    tokens = {own.input_tokens for own in decisions} | {own.output_tokens for own in decisions}
    counted = not tokens or (min(tokens) >= 0 and max(tokens) < MOST_COUNT)
    named = "" not in {own.unit for own in decisions}
    return counted and named and chosen <= CODES.keys() and not _is_any_rated(decisions)


def _is_any_rated(decisions: Sequence[Decision]) -> bool:
    rated = [
        own.scores is not None or own.ranking is not None or own.flags is not None
        for own in decisions
    ]
    return any(rated)


def _kind_of(shared: tuple[object, ...]) -> Decision:
    given: dict[str, Any] = dict(zip(SHARED, shared, strict=True))  # Any: of several types
    return Decision(item_id="", **given)


def _is_plain(kind: Decision) -> bool:
    counted = 0 <= kind.sample < MOST_COUNT
    return counted and kind.criteria_order is None and has_sound_presentation(kind)


def codes_of(decisions: Sequence[Decision]) -> list[int]:
    """Return the column codes of what decisions chose; a `ShapeError` for a number that no column holds."""
    try:
        codes = [CODES[decision.choice] for decision in decisions]
    except KeyError:
        codes = [code_of(decision.choice) for decision in decisions]
    if max(codes, default=0) > MOST_CANDIDATE:
        raise ShapeError(f"a choice is {max(codes):,}: at most {MOST_CANDIDATE:,} can be counted.")
    return codes


def _by_candidate(given: Sequence[Sequence[float | None] | None]) -> ByCandidate:
    starts: list[int] = []
    flat: list[float | None] = []
    for values in given:
        starts.append(-1 if values is None else len(flat))
        flat += values or ()
    # None becomes NaN
    return ByCandidate(np.array(starts, dtype=np.int64), np.array(flat, dtype=np.float64))


def _joined(parts: Sequence[ByCandidate]) -> ByCandidate:
    starts, before = [np.empty(0, dtype=np.int64)], 0
    for part in parts:
        starts.append(np.where(part.start < 0, -1, part.start + before))
        before += len(part.values)
    values = np.concatenate([np.empty(0), *(part.values for part in parts)])
    return ByCandidate(np.concatenate(starts), values)
