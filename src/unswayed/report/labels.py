"""Place the names in a crowded scatter plot, so that no two texts ever touch.

One label after the other, the recommended one first, takes its nearest free place: beside the dot,
diagonal, above or below. A place that covers another label or a dot is never taken; one that
crosses a line counts as further away. A label that finds no place goes first in the next try; where
no try succeeds, the caller writes numbers instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, NamedTuple

CHARACTER = 7.4
"""Assumed width of a character at 12 px: the mean of method names in DejaVu Sans, the widest face
of the page's fonts."""

HALF_LINE = 7.5
CROSSING = 18
"""Places further down the list that are taken rather than crossing one line."""

TRIES = 12


class Box(NamedTuple):
    """A rectangle in px."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class LabelBox:
    """A drawing's size in px, and the rectangle between its axes."""

    kind: str
    width: int
    height: int
    plot: Box


def covers(first: Box, second: Box) -> bool:
    """Return True if two rectangles share area."""
    return (
        first.left < second.right
        and second.left < first.right
        and first.top < second.bottom
        and second.top < first.bottom
    )


@dataclass(frozen=True, slots=True)
class Spot:
    """A dot, or several that coincide."""

    names: tuple[tuple[str, bool], ...]  # names to write with whether each is recommended
    value: str
    x: float
    y: float
    # high, low: ends of the interval in px (high is further up)
    high: float
    low: float

    @property
    def recommended(self) -> bool:
        """True if it holds the recommended method."""
        return any(chosen for _, chosen in self.names)

    @property
    def text(self) -> str:
        """Text beside the dot."""
        return f"{', '.join(name for name, _ in self.names)} {self.value}".strip()

    @property
    def dot(self) -> Box:
        """The dot itself."""
        return Box(self.x - 6.5, self.y - 6.5, self.x + 6.5, self.y + 6.5)

    @property
    def stem(self) -> Box:
        """Its interval."""
        return Box(self.x - 2, self.high, self.x + 2, self.low)


@dataclass(frozen=True, slots=True)
class Label:
    """A spot's text at a place, y at its baseline."""

    spot: Spot
    anchor: Literal["start", "middle", "end"]
    x: float
    y: float

    @property
    def box(self) -> Box:
        """The rectangle that the text covers."""
        width = len(self.spot.text) * CHARACTER
        left = self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * width
        middle = self.y - 4
        return Box(left - 1, middle - HALF_LINE, left + width + 1, middle + HALF_LINE)

    def inside(self, frame: LabelBox) -> bool:
        """Return True if it lies inside the drawing, above its axis."""
        right = frame.width + (10 if self.anchor == "start" else 2)
        left, top, end, bottom = self.box
        return (left >= frame.plot.left - 2 and end <= right) and (
            top >= 2 and bottom <= frame.plot.bottom
        )


def _places(spot: Spot) -> Iterator[Label]:
    """Places in order of preference."""
    x, y = spot.x, spot.y + 4
    gap = 12 if spot.recommended else 8
    yield Label(spot, "start", x + gap, y)
    yield Label(spot, "end", x - gap, y)
    for side in (y - 12, y + 12):
        yield Label(spot, "start", x + 7, side)
        yield Label(spot, "end", x - 7, side)
    for side in (min(spot.high + 4, y - gap) - 9, max(spot.low + 4, y + gap) + 9):
        yield Label(spot, "middle", x, side)
        yield Label(spot, "start", x - 6, side)
        yield Label(spot, "end", x + 6, side)


def place(spots: Sequence[Spot], frame: LabelBox, lines: Sequence[Box]) -> tuple[Label, ...] | None:
    """One label per spot, beside the frontier's `lines` as boxes; None if they do not all find a
    free place.
    """
    order = sorted(spots, key=lambda spot: (not spot.recommended, -spot.x, spot.y))
    for _ in range(TRIES):
        labels: list[Label] = []
        for spot in order:
            others = [other for other in order if other is not spot]
            solid = [*(label.box for label in labels), *(other.dot for other in others)]
            crossed = [*lines, *(other.stem for other in others)]
            free = [
                (rank + CROSSING * sum(covers(label.box, line) for line in crossed), label)
                for rank, label in enumerate(_places(spot))
                if label.inside(frame) and not any(covers(label.box, other) for other in solid)
            ]
            if not free:
                break
            labels.append(min(free, key=itemgetter(0))[1])
        else:
            return tuple(labels)
        order.insert(0, order.pop(len(labels)))
    return None
