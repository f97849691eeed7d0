"""Where to write the names in a crowded scatter plot, so that no two texts ever touch.

One label after the other, the recommended one first, takes its nearest free place: beside the dot,
diagonal, above or below, then as a flag on a vertical leader. A place that covers another label or
a dot is never taken; one that crosses a line counts as further away. A label that finds no place
goes first in the next try; where no try succeeds, the caller writes numbers instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """A place for a label; `pole` is where a leader starts."""

    spot: Spot
    anchor: Anchor
    x: float
    y: float
    pole: float | None = None

    @property
    def text(self) -> Box:
        """What the label covers."""
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * self.spot.width
        left = self.x - shift
        width = self.spot.width
        return Box(left - 1, self.y - HALF_LINE, left + width + 1, self.y + HALF_LINE)

    @property
    def leader(self) -> Box | None:
        """What its leader covers."""
        if self.pole is None:
            return None
        x = self.spot.x
        return Box(x - 1, min(self.y, self.pole), x + 1, max(self.y, self.pole))

    def inside(self, frame: Frame) -> bool:
        """Whether the label lies inside the drawing, above its axis."""
        box, right = self.text, frame.width + (10 if self.anchor == "start" else 2)
        return (
            box.left >= frame.left - 2
            and box.right <= right
            and box.top >= 2
            and box.bottom <= frame.height - frame.bottom
        )

    def label(self) -> Label:
        """The label as it is drawn."""
        spot, leader = self.spot, None
        if self.pole is not None:
            leader = (spot.x, self.pole, self.y - 5 if self.y < spot.y else self.y + 4)
        return Label(spot.names, spot.value, self.x, self.y + 4, self.anchor, leader)


def _places(spot: Spot) -> Iterator[_Place]:
    """Places in order of preference."""
    x, y = spot.x, spot.y
    gap = 12 if spot.recommended else 8
    over, under = min(spot.high, y - gap), max(spot.low, y + gap)
    yield _Place(spot, "start", x + gap, y)
    yield _Place(spot, "end", x - gap, y)
    for side in (y - 12, y + 12):
        yield _Place(spot, "start", x + 7, side)
        yield _Place(spot, "end", x - 7, side)
    for side in (over - 9, under + 9):
        yield _Place(spot, "middle", x, side)
        yield _Place(spot, "start", x - 6, side)
        yield _Place(spot, "end", x + 6, side)
    for step in range(1, FLAGS):
        away = 3 + step * FLAG_STEP
        for flag, pole in ((over - away, over + 2), (under + away, under - 2)):
            yield _Place(spot, "start", x + 4, flag, pole)
            yield _Place(spot, "end", x - 4, flag, pole)


def place(spots: Sequence[Spot], frame: Frame, lines: Sequence[Box]) -> tuple[Label, ...] | None:
    """Choose a place for every label.

    Args:
        spots: All dots.
        frame: The drawing.
        lines: The frontier as boxes.

    Returns:
        One label per spot; None if they do not all find a free place.
    """
    order = sorted(spots, key=lambda spot: (not spot.recommended, -spot.x, spot.y))
    for _ in range(TRIES):
        labels, stuck = _placed(order, frame, lines)
        if stuck is None:
            return labels
        order = [stuck, *(spot for spot in order if spot is not stuck)]
    return None


def _placed(
    spots: Sequence[Spot], frame: Frame, lines: Sequence[Box]
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
            for rank, option in enumerate(_places(spot))
            if option.inside(frame)
            and _free(option.text, [*solid, *leaders])
            and (option.leader is None or _free(option.leader, solid))
        ]
        if not free:
            return (), spot
        best = min(free, key=lambda triple: triple[:2])[2]
        texts.append(best.text)
        leaders += [] if best.leader is None else [best.leader]
        labels.append(best.label())
    return tuple(labels), None
