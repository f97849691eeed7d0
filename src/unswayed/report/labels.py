"""Where to write the names in a crowded scatter plot, so that no two texts ever touch.

One label after the other, the recommended one first, takes its nearest free place: beside the dot,
diagonal, above or below, then as a flag on a vertical leader. A place that covers another label or
a dot is never taken; one that crosses a line counts as further away. A label that finds no place
goes first in the next try; where no try succeeds, the caller writes numbers instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, NamedTuple

__all__ = ["CHARACTER", "Box", "Frame", "Label", "Spot", "covers", "place"]

CHARACTER = 7.4
"""Assumed width of a character at 12 px: the mean of method names in DejaVu Sans, the widest face
of the page's fonts."""

HALF_LINE = 7.5
CROSSING = 18
"""Places further down the list that are taken rather than crossing one line."""

TRIES = 12
FLAG_STEP = 14
FLAGS = 22


class Box(NamedTuple):
    """A rectangle in px."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing's size in px, and the rectangle between its axes."""

    kind: str
    width: int
    height: int
    plot: Box


def covers(first: Box, second: Box) -> bool:
    """Whether two rectangles share area."""
    return (
        first.left < second.right
        and second.left < first.right
        and first.top < second.bottom
        and second.top < first.bottom
    )


def _free(box: Box, boxes: Iterable[Box]) -> bool:
    return not any(covers(box, other) for other in boxes)


@dataclass(frozen=True, slots=True)
class Spot:
    """A dot, or several that coincide.

    Attributes:
        names: Names to write with whether each is recommended.
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
    def text(self) -> str:
        """What is written beside it."""
        return f"{' and '.join(name for name, _ in self.names)} {self.value}".strip()

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
    """A spot's text at a place, y at its baseline; with a leader where it stands away."""

    spot: Spot
    anchor: Literal["start", "middle", "end"]
    x: float
    y: float
    box: Box
    leader: Box | None

    def inside(self, frame: Frame) -> bool:
        """Whether it lies inside the drawing, above its axis."""
        right = frame.width + (10 if self.anchor == "start" else 2)
        left, top, end, bottom = self.box
        return (left >= frame.plot.left - 2 and end <= right) and (
            top >= 2 and bottom <= frame.plot.bottom
        )


def _label(
    spot: Spot,
    anchor: Literal["start", "middle", "end"],
    x: float,
    y: float,
    pole: float | None = None,
) -> Label:
    """The label with its middle line at y, on a leader from `pole`."""
    width = len(spot.text) * CHARACTER
    left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
    box = Box(left - 1, y - HALF_LINE, left + width + 1, y + HALF_LINE)
    leader = None
    if pole is not None:
        leader = Box(spot.x - 1, min(pole, y - 5), spot.x + 1, max(pole, y + 4))
    return Label(spot, anchor, x, y + 4, box, leader)


def _places(spot: Spot) -> Iterator[Label]:
    """Places in order of preference."""
    x, y = spot.x, spot.y
    gap = 12 if spot.recommended else 8
    over, under = min(spot.high, y - gap), max(spot.low, y + gap)
    yield _label(spot, "start", x + gap, y)
    yield _label(spot, "end", x - gap, y)
    for side in (y - 12, y + 12):
        yield _label(spot, "start", x + 7, side)
        yield _label(spot, "end", x - 7, side)
    for side in (over - 9, under + 9):
        yield _label(spot, "middle", x, side)
        yield _label(spot, "start", x - 6, side)
        yield _label(spot, "end", x + 6, side)
    for away in range(FLAG_STEP + 3, FLAGS * FLAG_STEP + 3, FLAG_STEP):
        for flag, pole in ((over - away, over + 2), (under + away, under - 2)):
            yield _label(spot, "start", x + 4, flag, pole)
            yield _label(spot, "end", x - 4, flag, pole)


def place(spots: Sequence[Spot], frame: Frame, lines: Sequence[Box]) -> tuple[Label, ...] | None:
    """Choose a place for every label.

    Args:
        spots: All dots.
        frame: The drawing.
        lines: The frontier as boxes.

    Returns:
        One label per spot; None if they do not all find a free place.
    """
    places = {id(spot): [p for p in _places(spot) if p.inside(frame)] for spot in spots}
    order = sorted(spots, key=lambda spot: (not spot.recommended, -spot.x, spot.y))
    for _ in range(TRIES):
        labels = _placed(order, places, lines)
        if len(labels) == len(order):
            return tuple(labels)
        order.insert(0, order.pop(len(labels)))
    return None


def _placed(
    spots: Sequence[Spot], places: Mapping[int, Sequence[Label]], lines: Sequence[Box]
) -> list[Label]:
    """Labels in turn, each at its nearest free place, up to the spot that finds none."""
    labels: list[Label] = []
    for spot in spots:
        others = [other for other in spots if other is not spot]
        solid = [*(label.box for label in labels), *(other.dot for other in others)]
        leaders = [label.leader for label in labels if label.leader is not None]
        crossed = [*lines, *(other.stem for other in others)]
        free = [
            (rank + CROSSING * sum(covers(option.box, line) for line in crossed), option)
            for rank, option in enumerate(places[id(spot)])
            if _free(option.box, [*solid, *leaders])
            and (option.leader is None or _free(option.leader, solid))
        ]
        if not free:
            break
        labels.append(min(free, key=itemgetter(0))[1])
    return labels
