"""Where to write the names in a crowded scatter plot, so that no two texts ever touch.

One label after the other, the recommended one first, takes its nearest free place: beside the dot,
diagonal, above or below, then as a flag on a vertical leader. A place that covers another label or
a dot is never taken; one that crosses a line counts as further away. A label that finds no place
goes first in the next try; where no try succeeds, the caller writes numbers instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["CHARACTER", "Box", "Frame", "Label", "Spot", "covers", "place"]

Anchor = Literal["start", "middle", "end"]

CHARACTER = 7.4
"""Assumed width of a character at 12 px: the mean of method names in DejaVu Sans, the widest face
of the page's fonts."""

HALF_LINE = 7.5
CROSSING = 18
"""Places further down the list that are taken rather than crossing one line."""

TRIES = 12
FLAG_STEP = 14
FLAGS = 22


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing's size and margins in px."""

    kind: str
    width: int
    height: int
    top: int
    left: int = 34
    right: int = 14
    bottom: int = 40


class Box(NamedTuple):
    """A rectangle in px."""

    left: float
    top: float
    right: float
    bottom: float


def covers(first: Box, second: Box) -> bool:
    """Whether two rectangles share area."""
    return (
        first.left < second.right
        and second.left < first.right
        and first.top < second.bottom
        and second.top < first.bottom
    )


def _free(box: Box, boxes: Sequence[Box]) -> bool:
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
    def width(self) -> float:
        """Assumed width of its text in px."""
        text = " and ".join(name for name, _ in self.names)
        return len(f"{text} {self.value}".strip()) * CHARACTER

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
    """A placed label; with a leader (x, from, to) where it stands away from its dot."""

    names: tuple[tuple[str, bool], ...]
    value: str
    x: float
    y: float
    anchor: Anchor
    leader: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A place for a label: what its text and its leader cover; `pole` is where a leader starts."""

    anchor: Anchor
    x: float
    y: float
    text: Box
    pole: float | None
    leader: Box | None

    def inside(self, frame: Frame) -> bool:
        """Whether the label lies inside the drawing, above its axis."""
        right = frame.width + (10 if self.anchor == "start" else 2)
        return (
            self.text.left >= frame.left - 2
            and self.text.right <= right
            and self.text.top >= 2
            and self.text.bottom <= frame.height - frame.bottom
        )

    def label(self, spot: Spot) -> Label:
        """The label as it is drawn."""
        leader = None
        if self.pole is not None:
            leader = (spot.x, self.pole, self.y - 5 if self.y < spot.y else self.y + 4)
        return Label(spot.names, spot.value, self.x, self.y + 4, self.anchor, leader)


def _place(spot: Spot, anchor: Anchor, x: float, y: float, pole: float | None = None) -> _Place:
    left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * spot.width
    text = Box(left - 1, y - HALF_LINE, left + spot.width + 1, y + HALF_LINE)
    leader = None
    if pole is not None:
        leader = Box(spot.x - 1, min(y, pole), spot.x + 1, max(y, pole))
    return _Place(anchor, x, y, text, pole, leader)


def _places(spot: Spot) -> Iterator[_Place]:
    """Places in order of preference."""
    x, y = spot.x, spot.y
    gap = 12 if spot.recommended else 8
    over, under = min(spot.high, y - gap), max(spot.low, y + gap)
    yield _place(spot, "start", x + gap, y)
    yield _place(spot, "end", x - gap, y)
    for side in (y - 12, y + 12):
        yield _place(spot, "start", x + 7, side)
        yield _place(spot, "end", x - 7, side)
    for side in (over - 9, under + 9):
        yield _place(spot, "middle", x, side)
        yield _place(spot, "start", x - 6, side)
        yield _place(spot, "end", x + 6, side)
    for step in range(1, FLAGS):
        away = 3 + step * FLAG_STEP
        for flag, pole in ((over - away, over + 2), (under + away, under - 2)):
            yield _place(spot, "start", x + 4, flag, pole)
            yield _place(spot, "end", x - 4, flag, pole)


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
        labels, stuck = _placed(order, places, lines)
        if stuck is None:
            return labels
        order = [stuck, *(spot for spot in order if spot is not stuck)]
    return None


def _placed(
    spots: Sequence[Spot], places: Mapping[int, Sequence[_Place]], lines: Sequence[Box]
) -> tuple[tuple[Label, ...], Spot | None]:
    """Labels placed in turn, each at its nearest free place, and the spot that found none."""
    labels: list[Label] = []
    texts: list[Box] = []
    leaders: list[Box] = []
    for spot in spots:
        others = [other for other in spots if other is not spot]
        solid = [*texts, *(other.dot for other in others)]
        crossed = [*lines, *(other.stem for other in others)]
        free = [
            (rank + CROSSING * sum(covers(option.text, line) for line in crossed), rank, option)
            for rank, option in enumerate(places[id(spot)])
            if _free(option.text, [*solid, *leaders])
            and (option.leader is None or _free(option.leader, solid))
        ]
        if not free:
            return (), spot
        best = min(free, key=lambda triple: triple[:2])[2]
        texts.append(best.text)
        leaders += [] if best.leader is None else [best.leader]
        labels.append(best.label(spot))
    return tuple(labels), None
