"""Where to write the names in a crowded scatter plot.

Every label tries its places in order of preference: beside the dot, diagonal, above or below, then
flags on a vertical leader. A place costs what it covers; the cheapest arrangement wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "Label", "Spot", "place"]

Anchor = Literal["start", "middle", "end"]

CHARACTER = 6.2
"""Assumed width of a character at 12 px."""

HALF_LINE = 7.5
COVERS_LABEL = 300
COVERS_DOT = 60
LEADER_COVERS_DOT = 90
COVERS_LINE = 70
FLAG_STEP = 13
FLAGS = 14
PLACES = 30
"""Places of a label that are looked at, the cheapest ones."""

PASSES = 3
KICKS = 60
KICKED, NEAR = 3, 10
"""How many labels are moved at once, and among how many of their places."""

GOOD_ENOUGH = 8
"""Cost per label below which nothing more is tried."""


class Area(Protocol):
    """The drawing's size and margins."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def left(self) -> int: ...
    @property
    def bottom(self) -> int: ...


Places = NDArray[np.intp]
Boxes = NDArray[np.float64]
"""Rectangles in px, shape (K, 4): left, top, right, bottom. NaN covers nothing."""


class Box(NamedTuple):
    """A rectangle in px."""

    left: float
    top: float
    right: float
    bottom: float


def boxes_of(boxes: Sequence[Box]) -> Boxes:
    """Rectangles as an array, shape (K, 4)."""
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


def covered(a: Boxes, b: Boxes) -> NDArray[np.bool_]:
    """Which rectangles share area, shape (len(a), len(b))."""
    first, second = a[:, None, :], b[None, :, :]
    shared: NDArray[np.bool_] = (
        (first[..., 0] < second[..., 2])
        & (second[..., 0] < first[..., 2])
        & (first[..., 1] < second[..., 3])
        & (second[..., 1] < first[..., 3])
    )
    return shared


@dataclass(frozen=True, slots=True)
class Spot:
    """A dot, or several that coincide.

    Attributes:
        names: Names to write with whether each is recommended; empty for a dot without label.
        high, low: Ends of the interval in px (high is further up).
    """

    names: tuple[tuple[str, bool], ...]
    value: str
    x: float
    y: float
    high: float
    low: float

    @property
    def recommended(self) -> bool:
        """Whether it holds the recommended method."""
        return any(chosen for _, chosen in self.names)

    @property
    def width(self) -> float:
        """Assumed width of its text in px."""
        text = " and ".join(name for name, _ in self.names)
        return (len(text) + 1 + len(self.value)) * CHARACTER

    @property
    def box(self) -> Box:
        """The dot itself."""
        return Box(self.x - 6.5, self.y - 6.5, self.x + 6.5, self.y + 6.5)


@dataclass(frozen=True, slots=True)
class Label:
    """A placed label; with a leader where it stands away from its dot."""

    names: tuple[tuple[str, bool], ...]
    value: str
    x: float
    y: float
    anchor: Anchor
    leader: tuple[float, float, float] | None


class _Try(NamedTuple):
    anchor: Anchor
    x: float
    y: float
    cost: float
    pole: float | None = None


def _tries(spot: Spot) -> list[_Try]:
    """Places in order of preference; `pole` is where a leader starts."""
    x, y = spot.x, spot.y
    gap = 12 if spot.recommended else 8
    over, under = min(spot.high, y - gap), max(spot.low, y + gap)
    made = [
        _Try("start", x + gap, y, 0),
        _Try("end", x - gap, y, 2),
        _Try("middle", x, over - 9, 4),
        _Try("middle", x, under + 9, 5),
        _Try("start", x + 7, y - 12, 3),
        _Try("start", x + 7, y + 12, 3),
        _Try("end", x - 7, y - 12, 4),
        _Try("end", x - 7, y + 12, 4),
        _Try("start", x - 6, over - 9, 5),
        _Try("end", x + 6, over - 9, 5),
        _Try("start", x - 6, under + 9, 6),
        _Try("end", x + 6, under + 9, 6),
    ]
    for step in range(1, FLAGS):
        up, down = over - 3 - step * FLAG_STEP, under + 3 + step * FLAG_STEP
        for flag, pole in ((up, over + 2), (down, under - 2)):
            made.append(_Try("start", x + 4, flag, 10 + 4 * step, pole))
            made.append(_Try("end", x - 4, flag, 13 + 4 * step, pole))
    return made


def _box(spot: Spot, one: _Try) -> Box:
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[one.anchor] * spot.width
    left = one.x - shift
    return Box(left - 1, one.y - HALF_LINE, left + spot.width + 1, one.y + HALF_LINE)


def _fits(box: Box, anchor: Anchor, area: Area) -> bool:
    """Whether a label lies inside the drawing, above its axis."""
    right = area.width + (10 if anchor == "start" else 2)
    return (
        box.left >= area.left - 2
        and box.right <= right
        and box.top >= 2
        and box.bottom <= area.height - area.bottom
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """The places of one label that fit, cheapest first.

    Attributes:
        tries: The K places.
        cost: Preference and what a place covers of the drawing, whatever other labels do; (K,).
        box: The label's rectangle, shape (K, 4).
        pole: Its leader's, NaN where it has none; shape (K, 4).
    """

    tries: tuple[_Try, ...]
    cost: NDArray[np.float64]
    box: Boxes
    pole: Boxes


NO_POLE = Box(math.nan, math.nan, math.nan, math.nan)


def _pole(spot: Spot, one: _Try, half: float) -> Box:
    if one.pole is None:
        return NO_POLE
    return Box(spot.x - half, min(one.y, one.pole), spot.x + half, max(one.y, one.pole))


def _choices(
    spot: Spot, spots: Sequence[Spot], area: Area, lines: Sequence[Box]
) -> _Choices | None:
    """What each place costs on an empty drawing; None if no place fits."""
    tries = [one for one in _tries(spot) if _fits(_box(spot, one), one.anchor, area)]
    if not tries:
        return None
    others = [other for other in spots if other is not spot]
    dots = boxes_of([other.box for other in others])
    stems = boxes_of([Box(o.x - 2, o.high, o.x + 2, o.low) for o in others])
    line = boxes_of(lines)
    box = boxes_of([_box(spot, one) for one in tries])
    thin = boxes_of([_pole(spot, one, 0.5) for one in tries])
    cost = (
        np.array([one.cost for one in tries])
        + COVERS_DOT * covered(box, dots).sum(axis=1)
        + COVERS_DOT * covered(box, stems).sum(axis=1)
        + COVERS_LINE * covered(box, line).sum(axis=1)
        + COVERS_LINE * covered(thin, line).sum(axis=1)
        + LEADER_COVERS_DOT * covered(thin, dots).sum(axis=1)
    )
    ranked = np.argsort(cost, kind="stable")[:PLACES]
    pole = boxes_of([_pole(spot, one, 2.0) for one in tries])
    return _Choices(tuple(tries[k] for k in ranked), cost[ranked], box[ranked], pole[ranked])


class _Table:
    """All places of all labels, and which of them are in each other's way.

    A place is a row number; `rows[label]` are those of one label.
    """

    def __init__(self, choices: Sequence[_Choices]) -> None:
        self.cost = np.concatenate([found.cost for found in choices])
        ends = np.cumsum([len(found.cost) for found in choices])
        starts = np.concatenate([[0], ends[:-1]])
        self.rows = [slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
        box = np.concatenate([found.box for found in choices])
        pole = np.concatenate([found.pole for found in choices])
        leaders = covered(pole, box)
        self.clash = covered(box, box).astype(np.int64) + leaders + leaders.T
        for rows in self.rows:
            self.clash[rows, rows] = 0

    def total(self, chosen: Places) -> float:
        """What an arrangement costs: every place, and every pair in each other's way."""
        pairs = self.clash[np.ix_(chosen, chosen)].sum() / 2
        return float(self.cost[chosen].sum() + COVERS_LABEL * pairs)

    def best(self, label: int, others: Places) -> int:
        """The cheapest place of a label beside others that are already there."""
        rows = self.rows[label]
        values = self.cost[rows] + COVERS_LABEL * self.clash[rows][:, others].sum(axis=1)
        return rows.start + int(np.argmin(values))

    def settled(self, chosen: Places) -> Places:
        """Let each label look again with all others in place, until none moves."""
        chosen = chosen.copy()
        for _ in range(PASSES):
            before = chosen.copy()
            for label in range(len(chosen)):
                chosen[label] = self.best(label, np.delete(chosen, label))
            if (chosen == before).all():
                break
        return chosen

    def arranged(self, turns: Sequence[int]) -> Places:
        """Labels placed in turn, then moved about at random as long as that makes it cheaper."""
        placed: dict[int, int] = {}
        for label in turns:
            placed[label] = self.best(label, np.array(list(placed.values()), dtype=np.intp))
        best = self.settled(np.array([placed[label] for label in range(len(self.rows))]))
        cost = self.total(best)
        rng = np.random.default_rng(0)  # the same chart for the same numbers
        for _ in range(KICKS):
            if cost <= GOOD_ENOUGH * len(best):
                break
            tried = best.copy()
            for label in rng.choice(len(best), size=min(KICKED, len(best)), replace=False):
                rows = self.rows[label]
                tried[label] = rows.start + rng.integers(min(NEAR, rows.stop - rows.start))
            tried = self.settled(tried)
            total = self.total(tried)
            if total < cost:
                best, cost = tried, total
        return best


def place(spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> tuple[Label, ...]:
    """Choose a place for every label.

    Recommended and uncrowded dots choose first, then right to left; then the labels make room for
    each other. A name wider than the drawing is left out: the table has it.

    Args:
        spots: All dots; those without names are only kept clear of.
        area: The drawing.
        lines: The frontier as boxes.
    """

    def crowd(spot: Spot) -> int:
        return sum(abs(spot.x - o.x) < 70 and abs(spot.y - o.y) < 34 for o in spots)

    found = [
        (spot, made)
        for spot in spots
        if spot.names and (made := _choices(spot, spots, area, lines)) is not None
    ]
    if not found:
        return ()
    table = _Table([made for _, made in found])
    turns = sorted(
        range(len(found)),
        key=lambda i: (not found[i][0].recommended, crowd(found[i][0]) > 2, -found[i][0].x),
    )
    chosen = table.arranged(turns)
    return tuple(
        _label(spot, made.tries[int(row) - rows.start])
        for (spot, made), rows, row in zip(found, table.rows, chosen, strict=True)
    )


def _label(spot: Spot, one: _Try) -> Label:
    leader = None
    if one.pole is not None:
        end = one.y - 5 if one.y < spot.y else one.y + 4
        leader = (spot.x, one.pole, end)
    return Label(spot.names, spot.value, one.x, one.y + 4, one.anchor, leader)
