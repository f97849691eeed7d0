"""Where to write the names in a crowded scatter plot.

Every label tries its places in order of preference: beside the dot, diagonal, above or below, then
flags on a vertical leader. A place costs what it covers; the cheapest wins. Important and
uncrowded dots choose first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

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


class Box(NamedTuple):
    """A rectangle in px."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> bool:
        """Whether two rectangles share area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


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


class _Page:
    """What is already on the drawing."""

    def __init__(self, spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> None:
        self.area = area
        self.spots = spots
        self.lines = lines
        self.labels: list[Box] = []
        self.poles: list[Box] = []

    def fits(self, box: Box, anchor: Anchor) -> bool:
        """Whether a label lies inside the drawing, above its axis."""
        area = self.area
        right = area.width + (10 if anchor == "start" else 2)
        return (
            box.left >= area.left - 2
            and box.right <= right
            and box.top >= 2
            and box.bottom <= area.height - area.bottom
        )

    def cost(self, spot: Spot, one: _Try, box: Box) -> float:
        """What a place costs: its preference and everything it covers."""
        others = [other for other in self.spots if other is not spot]
        stems = [Box(o.x - 2, o.high, o.x + 2, o.low) for o in others]
        cost = one.cost
        cost += COVERS_LABEL * sum(box.covers(other) for other in (*self.labels, *self.poles))
        cost += COVERS_DOT * sum(box.covers(other.box) for other in others)
        cost += COVERS_DOT * sum(box.covers(stem) for stem in stems)
        cost += COVERS_LINE * sum(box.covers(line) for line in self.lines)
        if one.pole is not None:
            pole = _pole(spot, one)
            cost += COVERS_LABEL * sum(pole.covers(other) for other in self.labels)
            cost += COVERS_LINE * sum(pole.covers(line) for line in self.lines)
            cost += LEADER_COVERS_DOT * sum(pole.covers(other.box) for other in others)
        return cost


def _pole(spot: Spot, one: _Try) -> Box:
    pole = one.y if one.pole is None else one.pole
    return Box(spot.x - 0.5, min(one.y, pole), spot.x + 0.5, max(one.y, pole))


def place(spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> tuple[Label, ...]:
    """Choose a place for every label.

    Args:
        spots: All dots; those without names are only kept clear of.
        area: The drawing.
        lines: The frontier as boxes.
    """
    page = _Page(spots, area, lines)

    def crowd(spot: Spot) -> int:
        return sum(abs(spot.x - o.x) < 70 and abs(spot.y - o.y) < 34 for o in spots)

    def turn(spot: Spot) -> tuple[bool, bool, float]:
        return (not spot.recommended, crowd(spot) > 2, -spot.x)

    made = []
    for spot in sorted((spot for spot in spots if spot.names), key=turn):
        chosen = _cheapest(spot, page)
        if chosen is None:
            continue  # a name wider than the drawing; the table has it
        one, box = chosen
        page.labels.append(box)
        made.append(_label(spot, one))
        if one.pole is not None:
            page.poles.append(_pole(spot, one)._replace(left=spot.x - 2, right=spot.x + 2))
    return tuple(made)


def _cheapest(spot: Spot, page: _Page) -> tuple[_Try, Box] | None:
    best: tuple[float, _Try, Box] | None = None
    for one in _tries(spot):
        if best is not None and one.cost >= best[0]:
            continue  # its preference alone costs more
        box = _box(spot, one)
        if page.fits(box, one.anchor):
            cost = page.cost(spot, one, box)
            if best is None or cost < best[0]:
                best = (cost, one, box)
    return None if best is None else best[1:]


def _label(spot: Spot, one: _Try) -> Label:
    leader = None
    if one.pole is not None:
        end = one.y - 5 if one.y < spot.y else one.y + 4
        leader = (spot.x, one.pole, end)
    return Label(spot.names, spot.value, one.x, one.y + 4, one.anchor, leader)
