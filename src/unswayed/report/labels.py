"""Where to write the names in a crowded scatter plot, so that no two texts ever touch.

Every label tries its places in order of preference: beside the dot, diagonal, above or below, then
flags on a vertical leader. A place that covers another label or a dot is never taken; one that
crosses the frontier or an interval is taken late. Where some name finds no place, the caller writes
numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

__all__ = ["Box", "Label", "Spot", "place"]

Anchor = Literal["start", "middle", "end"]

CHARACTER = 7.4
"""Assumed width of a character at 12 px: the mean of method names in DejaVu Sans, the widest face
of the page's fonts."""

HALF_LINE = 7.5
COVERS_LINE = 70
FLAG_STEP = 14
FLAGS = 22


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


def covers(first: Box, second: Box) -> bool:
    """Whether two rectangles share area."""
    return (
        first.left < second.right
        and second.left < first.right
        and first.top < second.bottom
        and second.top < first.bottom
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
        return len(f"{text} {self.value}".strip()) * CHARACTER

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


def _pole(spot: Spot, one: _Try) -> Box | None:
    if one.pole is None:
        return None
    return Box(spot.x - 1, min(one.y, one.pole), spot.x + 1, max(one.y, one.pole))


@dataclass(frozen=True, slots=True)
class _Taken:
    """What labels must not cover, and what they had better not cross."""

    texts: tuple[Box, ...]
    poles: tuple[Box, ...]
    lines: tuple[Box, ...]

    def cost(self, spot: Spot, one: _Try, others: Sequence[Spot]) -> float | None:
        """What a place costs; None if it is not free."""
        box, pole = _box(spot, one), _pole(spot, one)
        dots = [other.box for other in others]
        if any(covers(box, taken) for taken in (*self.texts, *self.poles, *dots)):
            return None
        if pole is not None and any(covers(pole, taken) for taken in (*self.texts, *dots)):
            return None
        stems = [Box(o.x - 2, o.high, o.x + 2, o.low) for o in others]
        crossed = sum(covers(box, line) for line in (*self.lines, *stems))
        crossed += sum(pole is not None and covers(pole, line) for line in self.lines)
        return one.cost + COVERS_LINE * crossed


def place(spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> tuple[Label, ...] | None:
    """Choose a place for every label.

    Args:
        spots: All dots.
        area: The drawing.
        lines: The frontier as boxes.

    Returns:
        One label per spot that has names; None if they do not all find a free place.
    """
    turns: Iterable[Callable[[Spot], tuple[float, ...]]] = (
        lambda spot: (not spot.recommended, -spot.x, spot.y),
        lambda spot: (spot.x, spot.y),
        lambda spot: (-spot.y, -spot.x),
        lambda spot: (-spot.width, spot.x),
    )
    for turn in turns:
        labels = _placed(sorted(spots, key=turn), area, lines)
        if labels is not None:
            return labels
    return None


def _placed(spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> tuple[Label, ...] | None:
    """Labels placed in turn, each at its cheapest free place."""
    labels: list[Label] = []
    taken = _Taken((), (), tuple(lines))
    for spot in spots:
        if not spot.names:
            continue
        others = [other for other in spots if other is not spot]
        free = [
            (cost, one)
            for one in _tries(spot)
            if _fits(_box(spot, one), one.anchor, area)
            and (cost := taken.cost(spot, one, others)) is not None
        ]
        if not free:
            return None
        _, best = min(free, key=lambda pair: pair[0])
        pole = _pole(spot, best)
        taken = _Taken(
            (*taken.texts, _box(spot, best)),
            taken.poles if pole is None else (*taken.poles, pole),
            taken.lines,
        )
        labels.append(_label(spot, best))
    return tuple(labels)


def _label(spot: Spot, one: _Try) -> Label:
    leader = None
    if one.pole is not None:
        end = one.y - 5 if one.y < spot.y else one.y + 4
        leader = (spot.x, one.pole, end)
    return Label(spot.names, spot.value, one.x, one.y + 4, one.anchor, leader)
