"""Where to write the names in a crowded scatter plot.

Every label tries its places in order of preference: beside the dot, diagonal, above or below, then
flags on a vertical leader. A place costs what it covers; the cheapest arrangement wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
PASSES = 3
TRIED = 20


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


class _Choice(NamedTuple):
    """A place with what it covers of the drawing, whatever the other labels do."""

    cost: float
    one: _Try
    box: Box
    pole: Box | None


def _fits(box: Box, anchor: Anchor, area: Area) -> bool:
    """Whether a label lies inside the drawing, above its axis."""
    right = area.width + (10 if anchor == "start" else 2)
    return (
        box.left >= area.left - 2
        and box.right <= right
        and box.top >= 2
        and box.bottom <= area.height - area.bottom
    )


def _choices(spot: Spot, spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> list[_Choice]:
    """The places that fit, cheapest first."""
    others = [other for other in spots if other is not spot]
    dots = [other.box for other in others]
    stems = [Box(other.x - 2, other.high, other.x + 2, other.low) for other in others]
    made = []
    for one in _tries(spot):
        box = _box(spot, one)
        if not _fits(box, one.anchor, area):
            continue
        cost = one.cost
        cost += COVERS_DOT * sum(box.covers(dot) for dot in dots)
        cost += COVERS_DOT * sum(box.covers(stem) for stem in stems)
        cost += COVERS_LINE * sum(box.covers(line) for line in lines)
        pole = None
        if one.pole is not None:
            pole = Box(spot.x - 0.5, min(one.y, one.pole), spot.x + 0.5, max(one.y, one.pole))
            cost += COVERS_LINE * sum(pole.covers(line) for line in lines)
            cost += LEADER_COVERS_DOT * sum(pole.covers(dot) for dot in dots)
            pole = pole._replace(left=spot.x - 2, right=spot.x + 2)
        made.append(_Choice(cost, one, box, pole))
    return sorted(made, key=lambda choice: choice.cost)


def _clash(a: _Choice, b: _Choice) -> int:
    """How often two labels with their leaders are in each other's way."""
    return (
        a.box.covers(b.box)
        + (a.pole is not None and a.pole.covers(b.box))
        + (b.pole is not None and b.pole.covers(a.box))
    )


def _best(choices: Sequence[_Choice], others: Sequence[_Choice]) -> _Choice:
    """The cheapest place beside labels that are already there."""
    best: tuple[float, _Choice] | None = None
    for choice in choices:
        if best is not None and choice.cost >= best[0]:
            break  # sorted: nothing that follows can be cheaper
        cost = choice.cost + COVERS_LABEL * sum(_clash(choice, other) for other in others)
        if best is None or cost < best[0]:
            best = (cost, choice)
    return choices[0] if best is None else best[1]


Chosen = dict[int, _Choice]


def _arranged(turns: Sequence[int], choices: Mapping[int, Sequence[_Choice]]) -> Chosen:
    """Place the labels one after the other, then let each look again with all others in place."""
    chosen: Chosen = {}
    for _ in range(PASSES):
        for index in turns:
            chosen[index] = _best(choices[index], _others(chosen, index))
    return chosen


def _others(chosen: Chosen, index: int) -> list[_Choice]:
    return [choice for other, choice in chosen.items() if other != index]


def _total(chosen: Chosen) -> float:
    """What an arrangement costs: every place, and every pair in each other's way."""
    made = list(chosen.values())
    clashes = sum(_clash(a, b) for k, a in enumerate(made) for b in made[:k])
    return sum(choice.cost for choice in made) + COVERS_LABEL * clashes


def _improved(chosen: Chosen, choices: Mapping[int, Sequence[_Choice]]) -> Chosen:
    """Give each badly placed label a better place by moving those that stand there."""
    best, cost = chosen, _total(chosen)
    for index in sorted(chosen, key=lambda i: -chosen[i].cost):
        for choice in choices[index][:TRIED]:
            if choice.cost >= best[index].cost:
                break
            tried = {**best, index: choice}
            for other in [k for k in tried if k != index and _clash(choice, tried[k])]:
                tried[other] = _best(choices[other], _others(tried, other))
            if _total(tried) < cost:
                best, cost = tried, _total(tried)
                break
    return best


def place(spots: Sequence[Spot], area: Area, lines: Sequence[Box]) -> tuple[Label, ...]:
    """Choose a place for every label.

    Several turns are tried, the first with recommended and uncrowded dots ahead; the cheapest
    arrangement wins. A name wider than the drawing is left out: the table has it.

    Args:
        spots: All dots; those without names are only kept clear of.
        area: The drawing.
        lines: The frontier as boxes.
    """

    def crowd(spot: Spot) -> int:
        return sum(abs(spot.x - o.x) < 70 and abs(spot.y - o.y) < 34 for o in spots)

    choices = {
        index: found
        for index, spot in enumerate(spots)
        if spot.names and (found := _choices(spot, spots, area, lines))
    }
    ranked = sorted(
        choices,
        key=lambda i: (not spots[i].recommended, crowd(spots[i]) > 2, -spots[i].x, spots[i].y),
    )
    others = (
        sorted(choices, key=lambda i: spots[i].x),
        sorted(choices, key=lambda i: spots[i].y),
        sorted(choices, key=lambda i: -choices[i][0].cost),
    )
    arrangements = [_improved(_arranged(turns, choices), choices) for turns in (ranked, *others)]
    chosen = min(arrangements, key=_total)
    return tuple(_label(spots[index], choice.one) for index, choice in sorted(chosen.items()))


def _label(spot: Spot, one: _Try) -> Label:
    leader = None
    if one.pole is not None:
        end = one.y - 5 if one.y < spot.y else one.y + 4
        leader = (spot.x, one.pole, end)
    return Label(spot.names, spot.value, one.x, one.y + 4, one.anchor, leader)
