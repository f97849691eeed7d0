"""The frontier chart: accuracy or consistency against calls per item, as fixed geometry.

Each panel is drawn for a wide screen, a phone and paper; CSS shows one. Dots on the frontier are
filled: nothing cheaper is better. A value that holds by construction is hollow and stays outside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unswayed.decisions import Estimate
from unswayed.report.findings import Finding
from unswayed.report.labels import Box, Frame, Label, Spot, place
from unswayed.report.numerals import calls_text, share
from unswayed.report.reading import Audit
from unswayed.visible import one_line

__all__ = [
    "Dot",
    "Drawing",
    "Frontier",
    "KeyEntry",
    "Panel",
    "Scale",
    "dots_of",
    "panels",
    "scale_of",
]

LONGEST_NAME = 26
DOT, DOT_RECOMMENDED, RING = 4.5, 5.5, 9.5


@dataclass(frozen=True, slots=True)
class Dot:
    """A method in one panel."""

    name: str
    calls: float
    estimate: Estimate
    on_frontier: bool
    recommended: bool

    @property
    def value(self) -> float:
        """The estimate's value."""
        return self.estimate.value or 0.0

    @property
    def by_construction(self) -> bool:
        """Whether the value is no evidence."""
        return self.estimate.by_construction


FRAMES: Final = (
    Frame("", 520, 420, 16),
    Frame("narrow", 358, 490, 46),
    Frame("paper", 358, 420, 16),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """Data to px: x is the logarithm of calls per item, y a share.

    Attributes:
        bottom: The share at the lower edge; 1 is at the upper.
    """

    frame: Frame
    bottom: float
    fewest: float
    most: float

    def x(self, calls: float) -> float:
        """Horizontal place of a number of calls."""
        frame = self.frame
        inner = frame.width - frame.left - frame.right - 20
        span = math.log(self.most / self.fewest)
        part = math.log(calls / self.fewest) / span
        return frame.left + 10 + inner * part

    def y(self, value: float) -> float:
        """Vertical place of a share."""
        frame = self.frame
        inner = frame.height - frame.top - frame.bottom
        return frame.top + inner * (1 - (value - self.bottom) / (1 - self.bottom))


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick with its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class DrawnDot:
    """A dot ready to draw; high and low are absent for values by construction."""

    x: float
    y: float
    high: float | None
    low: float | None
    radius: float
    filled: bool
    accent: bool
    recommended: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawing of a panel."""

    frame: Frame
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    path: str
    dots: tuple[DrawnDot, ...]
    labels: tuple[Label, ...]
    description: str

    @property
    def floor(self) -> int:
        """Lower edge of the plot in px."""
        return self.frame.height - self.frame.bottom


@dataclass(frozen=True, slots=True)
class Panel:
    """A metric of one run, drawn for every frame."""

    title: str
    sub: str
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A number in the drawing and the method it stands for."""

    number: int
    name: str
    recommended: bool


@dataclass(frozen=True, slots=True)
class Frontier:
    """All panels; `key` is empty where the dots carry names."""

    panels: tuple[Panel, ...]
    key: tuple[KeyEntry, ...] = ()


def dots_of(audit: Audit, metric: str, recommended: str | None) -> list[Dot]:
    """The methods that have this metric and a price, with the frontier marked."""
    scored = [
        (name, row.calls, estimate)
        for name, row in audit.metrics.methods.items()
        if row.calls is not None and row.calls > 0 and (estimate := row.get(metric)) is not None
    ]
    measured = [triple for triple in scored if not triple[2].by_construction]
    on_frontier: set[str] = set()
    best = -math.inf
    for name, _, estimate in sorted(
        measured, key=lambda triple: (triple[1], -(triple[2].value or 0.0))
    ):
        if (estimate.value or 0.0) > best:
            on_frontier.add(name)
            best = estimate.value or 0.0
    return [
        Dot(name, calls, estimate, name in on_frontier, name == recommended)
        for name, calls, estimate in scored
    ]


def scale_of(frame: Frame, dots: Iterable[Dot]) -> Scale:
    """The scale that all panels share: down to the lowest interval end, floored to fives."""
    every = list(dots)
    lowest = min(dot.estimate.low if dot.estimate.low is not None else dot.value for dot in every)
    bottom = min(0.95, math.floor(round(lowest * 20, 6)) / 20)
    fewest = min(dot.calls for dot in every)
    most = max(dot.calls for dot in every)
    if most / fewest < 1.25:
        most = fewest * 2
    return Scale(frame, max(0.0, bottom), fewest, most)


_NICE_CALLS = (
    0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100, 120, 160, 200,
    240, 300, 400, 500, 720, 1000,
)  # fmt: skip
_TICK_GAP = 34


def _x_ticks(scale: Scale) -> tuple[Tick, ...]:
    ticks: list[Tick] = []
    for calls in _NICE_CALLS:
        if not scale.fewest * 0.999 <= calls <= scale.most * 1.001:
            continue
        at = scale.x(calls)
        if not ticks or at - ticks[-1].at >= _TICK_GAP:
            ticks.append(Tick(at, calls_text(calls)))
    return tuple(ticks)


def _y_ticks(scale: Scale) -> tuple[Tick, ...]:
    span = 1 - scale.bottom
    step = next((s for s, least in ((10, 0.5), (5, 0.2), (2, 0.1)) if span >= least), 1)
    first = math.ceil(round(100 * scale.bottom / step, 6)) * step
    return tuple(Tick(scale.y(t / 100), str(t)) for t in range(first, 101, step))


def _path(dots: Sequence[Dot], scale: Scale) -> tuple[str, list[Box]]:
    """The frontier as a stair, and the boxes that labels should keep clear of."""
    steps = sorted((dot for dot in dots if dot.on_frontier), key=lambda dot: dot.calls)
    if not steps:
        return "", []
    right = float(scale.frame.width - scale.frame.right)
    path, boxes = "", []
    before: tuple[float, float] | None = None
    for dot in steps:
        x, y = scale.x(dot.calls), scale.y(dot.value)
        if before is None:
            path = f"M{x:.1f} {y:.1f}"
        else:
            path += f"H{x:.1f}V{y:.1f}"
            boxes.append(Box(before[0], before[1] - 2, x, before[1] + 2))
            boxes.append(Box(x - 2, min(before[1], y), x + 2, max(before[1], y)))
        before = (x, y)
    if before is not None:
        boxes.append(Box(before[0], before[1] - 2, right, before[1] + 2))
    return f"{path}H{right:.0f}", boxes


def _spots(
    dots: Sequence[Dot], scale: Scale, key: Mapping[str, int] | None, cell: int = 1
) -> list[Spot]:
    """Dots in one cell of so many px share a label: names with the value, or numbers of the key."""
    together: dict[tuple[int, int], list[Dot]] = {}
    for dot in dots:
        place_px = (round(scale.x(dot.calls) / cell), round(scale.y(dot.value) / cell))
        together.setdefault(place_px, []).append(dot)
    spots = []
    for dots_here in together.values():
        first = dots_here[0]
        mark = "\u2009†" if first.by_construction else ""
        whole = first.by_construction and first.value == 1
        value = mark if key is not None else f"{'100' if whole else share(first.value)}{mark}"
        spots.append(
            Spot(
                names=tuple(
                    (shortened(dot.name) if key is None else str(key[dot.name]), dot.recommended)
                    for dot in dots_here
                ),
                value=value.strip(),
                x=scale.x(first.calls),
                y=scale.y(first.value),
                high=scale.y(_end(first, high=True)),
                low=scale.y(_end(first, high=False)),
            )
        )
    return spots


def shortened(name: str) -> str:
    """A name that fits beside a dot; the table has it in full."""
    text = one_line(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def _end(dot: Dot, *, high: bool) -> float:
    end = dot.estimate.high if high else dot.estimate.low
    return dot.value if end is None or dot.by_construction else end


def _drawn(dot: Dot, scale: Scale) -> DrawnDot:
    bare = dot.by_construction or dot.estimate.low is None or dot.estimate.high is None
    return DrawnDot(
        x=scale.x(dot.calls),
        y=scale.y(dot.value),
        high=None if bare else scale.y(_end(dot, high=True)),
        low=None if bare else scale.y(_end(dot, high=False)),
        radius=DOT_RECOMMENDED if dot.recommended else DOT,
        filled=dot.on_frontier,
        accent=dot.on_frontier or dot.recommended,
        recommended=dot.recommended,
    )


def _description(title: str, dots: Sequence[Dot]) -> str:
    values = "; ".join(
        f"{one_line(dot.name)}: {calls_text(dot.calls)} calls, {share(dot.value)} percent"
        + (" by construction" if dot.by_construction else "")
        for dot in sorted(dots, key=lambda dot: dot.calls)
    )
    chosen = "".join(f" Recommended: {one_line(dot.name)}." for dot in dots if dot.recommended)
    return f"{title} against calls per item. {values}.{chosen}"


def _draw(
    title: str, dots: Sequence[Dot], scale: Scale, key: Mapping[str, int] | None
) -> Drawing | None:
    """One drawing; None if its labels do not all find a place."""
    path, line_boxes = _path(dots, scale)
    labels = None
    for cell in (1,) if key is None else (1, 12, 24, 48):
        labels = labels or place(_spots(dots, scale, key, cell), scale.frame, line_boxes)
    if labels is None and key is None:
        return None
    return Drawing(
        frame=scale.frame,
        y_ticks=_y_ticks(scale),
        x_ticks=_x_ticks(scale),
        path=path,
        dots=tuple(_drawn(dot, scale) for dot in dots),
        labels=labels or (),
        description=_description(title, dots),
    )


def panels(
    findings: Sequence[Finding], names: Sequence[str], *, frames: Sequence[Frame] = FRAMES
) -> Frontier:
    """A panel per metric and run, all on one scale; none with fewer than two methods.

    Accuracy where there is gold, else the criterion of the recommendation where it was measured.
    Dots carry names where all of them find room in every frame, else the numbers of a key.
    """
    wanted: list[tuple[Finding, str, str, list[Dot]]] = []
    for finding, run_name in zip(findings, names, strict=True):
        for metric, title in (
            ("accuracy", "Accuracy"),
            ("agreement", "Agreement with every order"),
            ("consistency", "Consistency"),
        ):
            if metric == "agreement" and finding.audit.has_gold:
                continue
            dots = dots_of(finding.audit, metric, finding.recommended)
            if len(dots) > 1:
                wanted.append(
                    (finding, metric, f"{title}, {run_name}" if run_name else title, dots)
                )
    every = [dot for *_, dots in wanted for dot in dots]
    by_calls = sorted(every, key=lambda dot: dot.calls)
    numbers = {name: k + 1 for k, name in enumerate(dict.fromkeys(dot.name for dot in by_calls))}

    def drawn(key: Mapping[str, int] | None) -> list[Panel] | None:
        shown = []
        for finding, metric, title, dots in wanted:
            drawings = [_draw(title, dots, scale_of(frame, every), key) for frame in frames]
            if None in drawings:
                return None
            whole = tuple(drawing for drawing in drawings if drawing is not None)
            shown.append(Panel(title, _sub(metric, finding.n), whole))
        return shown

    named = drawn(None)
    if named is not None:
        return Frontier(tuple(named))
    advised = {dot.name for dot in every if dot.recommended}
    key = tuple(KeyEntry(number, name, name in advised) for name, number in numbers.items())
    return Frontier(tuple(drawn(numbers) or ()), key)


def _sub(metric: str, n: int) -> str:
    orders = "both orders" if n == 2 else "every order"
    if metric == "accuracy":
        return f"% right, mean of {orders}; ties count as wrong"
    if metric == "agreement":
        return "% of verdicts like those of the average over every order"
    if n == 2:
        return "% of items with the same verdict in both orders"
    return "% of an item's orders that agree, mean over items"
