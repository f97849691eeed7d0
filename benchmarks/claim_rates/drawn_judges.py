"""Judges drawn at random, with their recorded decisions: place, label, noise, groups and quirks differ.

Every bias shifts logits. A judge is audited from its decisions, so that one draw serves samples of
several sizes and a truth on further items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed import Decision, Item, Task
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.records import Metrics
from unswayed.auditing.settings import AuditSettings
from unswayed.model.decisions import FloatArray
from unswayed.model.items import ItemSet
from unswayed.model.permutations import cyclic

Whole = NDArray[np.int64]

SURER_WHEN_WRONG: Final = 2.5
"""Factor on the logits of a wrong verdict, of a judge that is confident when wrong."""

SURER_BY_LOT: Final = 1.5
"""Standard deviation of the log of a factor on the logits that has nothing to do with the item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnJudge:
    """A judge and its items; effects are in logits.

    Attributes:
        candidates: Of every item.
        place, label: Lead of the first position, and of the first label, over the last.
        spread: Standard deviation of what a candidate is worth.
        taste: Standard deviation of what the judge sees in a candidate beside its worth.
        noise: Standard deviation of each call's own noise, between two candidates.
        uneven: Standard deviation of the log of an item's factor on the noise.
        groups, group_place: Number of groups, and how much their preference for a place differs.
        first_right: Share of items in which the first candidate is right in any case; None for gold
            by worth.
        quirks: Standard deviation of an item's own preference for a place.
        ties: Without probabilities, a lead below this share is a tie.
        coin: Items whose gold is drawn by lot, so that no method can be more accurate: "all", those
            that are "contested" because the orders disagree, or "" for none.
        surer: "when wrong", "by lot", or "" for logits as they are.
    """

    candidates: int = 2
    place: float = 0.0
    label: float = 0.0
    spread: float = 1.5
    taste: float = 0.5
    noise: float = 0.6
    uneven: float = 0.0
    groups: int = 0
    group_place: float = 0.0
    first_right: float | None = None
    quirks: float = 0.0
    ties: float = 0.0
    coin: str = ""
    surer: str = ""


def drawn_judge(rng: np.random.Generator, candidates: int) -> DrawnJudge:
    """A judge whose effects, noise and items are drawn from a few levels each."""

    def one_of(*levels: float) -> float:
        return float(rng.choice(levels))

    groups = int(one_of(0, 5))
    return DrawnJudge(
        candidates=candidates,
        place=one_of(0, 0.3, 0.6, 1, 1.5, 2.5),
        label=one_of(0, 0, 0.5),
        spread=one_of(0.4, 0.8, 1.5, 2.5),
        taste=one_of(0.2, 1),
        noise=one_of(0.1, 0.5, 1.2, 2),
        uneven=one_of(0, 0.8),
        groups=groups,
        group_place=one_of(0, 1) if groups else 0.0,
        first_right=0.9 if rng.random() < 0.25 else None,
        quirks=one_of(0, 0, 0.8),
        ties=one_of(0, 0, 0.1, 0.3) if candidates == 2 else 0.0,
    )


@dataclass(frozen=True, eq=False)
class Recorded:
    """The items of a judge and what it answered, by item and order.

    Attributes:
        probs: By candidate; shape (I, orders, n).
    """

    judge: DrawnJudge
    items: tuple[Item, ...]
    orders: tuple[tuple[int, ...], ...]
    probs: FloatArray

    def audit(
        self,
        start: int,
        end: int,
        *,
        probs: bool,
        seed: int,
        methods: tuple[str, ...] = ("all",),
    ) -> Metrics:
        """Audit some of the items with all methods, from probabilities or from labels only."""
        settings = AuditSettings(methods=methods, resamples=1, seed=seed)
        decisions = list(self._decisions(start, end, probs=probs))
        items = ItemSet.of(self.items[start:end], name="drawn")
        return audit_decisions(decisions, items, settings, command="benchmarks/claims.py").metrics

    def _decisions(self, start: int, end: int, *, probs: bool) -> Iterator[Decision]:
        labels = tuple("ABCD"[: self.judge.candidates])
        ordered = np.sort(self.probs, axis=2)
        tie = (ordered[:, :, -1] - ordered[:, :, -2] < self.judge.ties) & (not probs)
        leaders = self.probs.argmax(axis=2)
        for row in range(start, end):
            for column, order in enumerate(self.orders):
                yield Decision(
                    item_id=self.items[row].id,
                    order=order,
                    labels=labels,
                    label_set=labels,
                    choice="tie" if tie[row, column] else int(leaders[row, column]),
                    probs=tuple(self.probs[row, column].tolist()) if probs else None,
                )


def recorded(judge: DrawnJudge, size: int, seed: int) -> Recorded:
    """Draw the items of a judge and its answers in every cyclic order."""
    rng = np.random.default_rng(seed)
    n = judge.candidates
    worth = rng.normal(0, judge.spread, (size, n))
    gold = _gold(judge, worth, rng)
    if judge.first_right is not None:
        worth[np.arange(size), gold] += 1.2 * judge.spread
    group = np.arange(size) % judge.groups if judge.groups else None
    orders = tuple(cyclic(n))
    logits = _logits(judge, worth, group, orders, rng)
    if judge.surer == "when wrong":
        wrong = logits.argmax(axis=2) != gold[:, None]
        logits *= np.where(wrong, SURER_WHEN_WRONG, 1.0)[:, :, None]
    elif judge.surer == "by lot":
        logits *= np.exp(rng.normal(0, SURER_BY_LOT, logits.shape[:2]))[:, :, None]
    leaders = logits.argmax(axis=2)
    contested = (leaders != leaders[:, :1]).any(axis=1)
    by_lot = contested if judge.coin == "contested" else np.full(size, judge.coin == "all")
    gold = np.where(by_lot, rng.integers(0, n, size=(size,)), gold)
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    items = tuple(
        Item(
            id=f"drawn-{row}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt=f"question {row}",
            candidates=tuple(f"answer {row}.{candidate}" for candidate in range(n)),
            gold=int(gold[row]),
            group=None if group is None else f"g{group[row]}",
        )
        for row in range(size)
    )
    probs /= probs.sum(axis=2, keepdims=True)
    return Recorded(judge, items, orders, probs)


def _gold(judge: DrawnJudge, worth: FloatArray, rng: np.random.Generator) -> Whole:
    size, n = worth.shape
    drawn: Whole = (worth + rng.gumbel(size=worth.shape)).argmax(axis=1)
    if judge.first_right is not None:
        drawn = np.where(rng.random(size) < judge.first_right, 0, rng.integers(1, n, (size,)))
    return drawn


def _logits(
    judge: DrawnJudge,
    worth: FloatArray,
    group: Whole | None,
    orders: Sequence[tuple[int, ...]],
    rng: np.random.Generator,
) -> FloatArray:
    """Logits of every candidate in every order, shape (I, orders, n)."""
    size, n = worth.shape
    tilt = np.linspace(0.5, -0.5, n)
    seen = worth + rng.normal(0, judge.taste, worth.shape)
    by_place = (judge.place + judge.label) * tilt + rng.normal(0, judge.quirks, (size, n))
    if group is not None:
        by_place = by_place + rng.normal(0, judge.group_place, judge.groups)[group, None] * tilt
    noise = judge.noise / np.sqrt(2) * np.exp(rng.normal(0, judge.uneven, size))
    logits: FloatArray = rng.normal(0, 1, (size, len(orders), n)) * noise[:, None, None]
    for column, order in enumerate(orders):
        logits[:, column] += seen
        logits[:, column, list(order)] += by_place
    return logits
