"""Sequential vote: ask one presentation after another and stop when the vote is decided.

`curtail` stops when the leader is further ahead than there are calls left: the verdict is exactly
that of the whole vote, with fewer calls. The other rules stop earlier and may change the verdict:
`lead` stops when the leader is `lead` votes ahead, `agree` after the first balanced block whose
answers all agree. They stop after complete blocks only: inside a block some position has been shown
more often than another, and stopping there would let the bias choose when to stop.
Calls per item: fit 0, judge at most the size of the set. Ties: equal counts are a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import presentation_set
from unswayed.methods.tables import agreement, margin, plurality, verdict_table
from unswayed.methods.voting import count_votes
from unswayed.model.decisions import (
    MISSING,
    BoolArray,
    Decision,
    DecisionTable,
    FloatArray,
    IntArray,
    VerdictTable,
)
from unswayed.model.items import Item, blind
from unswayed.model.presentation import Ask, Presentation

IN_BLOCKS = ("auto", "swap", "cyclic", "balanced")
"""Sets of orders that come as consecutive blocks of n position-balanced presentations."""


@dataclass(frozen=True, slots=True)
class Sequential(Method):
    """A vote that stops early.

    Attributes:
        orders: Set of orders; `auto` is X0, X2, X1, X3 for two candidates and balanced for more.
        rule: Stopping rule: `curtail` keeps the verdict of the whole vote, `lead` and `agree` may
            change it.
        lead: Lead in votes at which `lead` stops.
        samples: Passes through the set; above 1, at a temperature above 0.
        seed: Seed of `random:K` orders.
    """

    orders: str = "auto"
    rule: Literal["curtail", "lead", "agree"] = "curtail"
    lead: int = 3
    samples: int = 1
    seed: int = 0

    name: ClassVar[str] = "sequential"
    about: ClassVar[About] = About(
        title="Sequential vote",
        source="Unswayed (curtailed sampling)",
        idea="Ask one presentation after another and stop once the vote is decided.",
        calls="at most 4 for two candidates, 2n for more",
        equation="stop when the leader's margin > calls left; verdict as in vote",
        helps="you want the verdict of a whole vote with fewer calls",
        cannot="Calls of one item wait for each other, so a run takes longer. `rule=lead` and "
        "`rule=agree` save more but change some verdicts: measure how many on your own "
        "data.",
    )

    def __post_init__(self) -> None:
        if self.samples < 1 or self.lead < 1:
            raise UsageError("sequential: samples and lead must be at least 1.")
        if self.rule != "curtail" and self.orders not in IN_BLOCKS:
            raise UsageError(
                f"sequential:rule={self.rule} stops after balanced blocks only; choose orders from "
                f"{', '.join(IN_BLOCKS)}, not {self.orders!r}."
            )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set, block after block."""
        numbers = (0,) if self.samples == 1 else range(1, self.samples + 1)
        return tuple(Ask(shown, sample=number) for number in numbers for shown in self._shown(n))

    def _shown(self, n: int) -> tuple[Presentation, ...]:
        if self.orders != "auto":
            return presentation_set(self.orders, n, "coupled", self.seed)
        return presentation_set("auto", 2, "all") if n == 2 else presentation_set("balanced", n)

    def stops_after(self, n: int) -> Sequence[int]:
        """After each block; `curtail` stops where the verdict of the whole vote is certain."""
        return () if self.rule == "curtail" else range(n, len(self.asks(n)), n)

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """Return the calls that are certain to be needed, given what was answered."""
        if self.rule != "curtail" or not item.permutable:
            return Method.plan(self, item, seen)
        asks = self.asks(item.n)
        table = DecisionTable.of([blind(item)], seen).select(asks)
        codes = table.choices
        last = int(np.flatnonzero(self._read(table, codes)[0])[-1])
        if codes[0, last] != MISSING:
            return list(asks[: last + 1])  # it stopped there, or everything is answered
        left = len(asks) - last
        counts = _count(codes[:, :last], item.n)
        # the leader cannot be decided before this many more calls, even if it wins them all
        return list(asks[: last + min(left, int((left - margin(counts)[0]) // 2) + 1)])

    def _read(self, table: DecisionTable, codes: IntArray) -> BoolArray:
        """Return the cells read before each row stops, shape (I, T); a missing call ends a row too."""
        cells = table.allowed
        read: BoolArray = np.zeros_like(cells)
        active: BoolArray = np.ones(len(table), dtype=np.bool_)
        counts = np.zeros((len(table), table.n + 1))
        left = cells.sum(axis=1)
        for column in range(len(table.asks)):
            now = cells[:, column] & active
            read[:, column] = now
            left = left - cells[:, column]
            counts += now[:, None] * _count(codes[:, column : column + 1], table.n)
            stop = (now & (codes[:, column] == MISSING)) | self._decided(counts, left, column + 1)
            if self.rule == "agree" and (column + 1) % table.n == 0:
                block = slice(column + 1 - table.n, column + 1)
                stop |= agreement(codes[:, block], cells[:, block]) == 1
            active = active & ~stop
            if not active.any():
                break
        return read

    def _decided(self, counts: FloatArray, left: NDArray[np.intp], done: int) -> BoolArray:
        """Rows that may stop after `done` calls with `left` to go, by the margin of the leader."""
        n = counts.shape[1] - 1
        if self.rule != "curtail" and done % n:
            return np.zeros(len(counts), dtype=np.bool_)
        ahead = margin(counts)
        decided: BoolArray = ahead > left
        return decided | (ahead >= self.lead) if self.rule == "lead" else decided

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the vote over the calls up to each row's stop; later columns are not read."""
        codes = table.choices
        cells = self._read(table, codes)
        counts = count_votes(codes, cells, table.n, np.ones(len(table.asks)))
        choices, tied = plurality(counts)
        scores = counts[:, :-1] / np.maximum(cells.sum(axis=1), 1)[:, None]
        return verdict_table(table, choices, cells=cells, scores=scores, tied=tied)


def _count(codes: IntArray, n: int) -> FloatArray:
    everything: BoolArray = np.ones(codes.shape, dtype=np.bool_)
    return count_votes(codes, everything, n, np.ones(codes.shape[1]))
