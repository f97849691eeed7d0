"""The frontier chart: what methods are compared in against calls per item, as fixed geometry.

Each panel is drawn for a wide screen, and for a phone or paper; CSS shows one. Dots on the frontier are
filled: nothing cheaper is better. A value that holds by construction is hollow and stays outside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unswayed.base.visible import one_line
from unswayed.metrics.table import compared_metrics
from unswayed.model.decisions import Estimate
from unswayed.report.findings import ACCURACY, ACCURACY_FRACTIONAL, SPEARMAN, Finding
from unswayed.report.labels import Box, Label, LabelBox, Spot, place
from unswayed.report.numerals import calls_text, share
from unswayed.report.table import decisive, marked
from unswayed.report.words import plain, say

LONGEST_NAME = 26
TICK_GAP = 34
NICE_CALLS = (
    0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100, 120, 160, 200,
    240, 300, 400, 500, 720, 1000,
)  # fmt: skip
FRAMES: Final = (
    LabelBox("", 520, 420, Box(34, 16, 506, 380)),
    LabelBox("narrow", 358, 420, Box(34, 16, 344, 380)),
)
Point = tuple[float, float]


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
    def ends(self) -> tuple[float, float] | None:
        """Its interval; None where there is none, and for values by construction."""
        low, high = self.estimate.low, self.estimate.high
        bare = low is None or high is None or self.estimate.by_construction
        return None if bare or low is None or high is None else (low, high)


@dataclass(frozen=True, slots=True)
class ChartScale:
    """Data to px: x is the logarithm of calls per item, y a share."""

    frame: LabelBox
    bottom: float  # the share at the lower edge; 1 is at the upper
    fewest: float
    most: float

    def x(self, calls: float) -> float:
        """Horizontal place of a number of calls."""
        left, right = self.frame.plot.left + 10, self.frame.plot.right - 10
        return left + (right - left) * math.log(calls / self.fewest, self.most / self.fewest)

    def y(self, value: float) -> float:
        """Vertical place of a share."""
        plot = self.frame.plot
        share = max(0.0, value - self.bottom) / (1 - self.bottom)
        return plot.bottom - (plot.bottom - plot.top) * share

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Place and text of the ticks on the axis of calls."""
        ticks: list[tuple[float, str]] = []
        for calls in NICE_CALLS:
            at = self.x(calls)
            inside = self.fewest * 0.999 <= calls <= self.most * 1.001
            if inside and (not ticks or at - ticks[-1][0] >= TICK_GAP):
                ticks.append((at, calls_text(calls)))
        return ticks

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Place and text of the ticks on the axis of shares."""
        span = 1 - self.bottom
        step = next((s for s, least in ((10, 0.5), (5, 0.2), (2, 0.1)) if span >= least), 1)
        first = math.ceil(round(100 * self.bottom / step, 6)) * step
        return [(self.y(tick / 100), str(tick)) for tick in range(first, 101, step)]


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawing of a panel."""

    scale: ChartScale
    dots: tuple[Dot, ...]
    stair: tuple[Point, ...]  # corners of the frontier in px
    labels: tuple[Label, ...] | None  # none where they do not all find a place


@dataclass(frozen=True, slots=True)
class Panel:
    """A metric of one run, drawn for every frame."""

    title: str
    sub: str
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True, slots=True)
class Frontier:
    """All panels; `key` numbers the methods from 1, and is empty where the dots carry names."""

    panels: tuple[Panel, ...]
    key: tuple[Dot, ...] = ()


def dots_of(finding: Finding, metric: str) -> list[Dot]:
    """Return the methods that decide every item, with this metric and a price; the frontier is marked."""
    scored = [
        (name, row.calls, estimate)
        for name, row in decisive(finding).items()
        if row.calls is not None
        and row.calls > 0
        and (estimate := marked(row, metric, row.get(metric))) is not None
    ]
    on_frontier: set[str] = set()
    best = -math.inf
    for name, _, estimate in sorted(scored, key=lambda s: (s[1], -(s[2].value or 0.0))):
        if not estimate.by_construction and (estimate.value or 0.0) > best:
            on_frontier.add(name)
            best = estimate.value or 0.0
    return [
        Dot(name, calls, estimate, name in on_frontier, name == finding.recommended)
        for name, calls, estimate in scored
    ]


def scale_of(frame: LabelBox, dots: Sequence[Dot]) -> ChartScale:
    """Return the scale that all panels share: down to the lowest interval end, floored to fives."""
    lowest = min(dot.value if dot.estimate.low is None else dot.estimate.low for dot in dots)
    bottom = min(0.95, math.floor(round(lowest * 20, 6)) / 20)
    fewest, most = min(dot.calls for dot in dots), max(dot.calls for dot in dots)
    return ChartScale(
        frame, max(0.0, bottom), fewest, most if most / fewest >= 1.25 else fewest * 2
    )


def panels(findings: Sequence[Finding], *, frames: Sequence[LabelBox] = FRAMES) -> Frontier:
    """Return a panel per metric and run, all on one scale; none with fewer than two methods.

    The metrics are the shares in which methods are compared jointly and more is better; where they
    are compared by human scores, that rank correlation in the place of accuracy. Dots carry names where all of them find room in every frame, else the numbers of a key.
    """
    metrics = [
        (key, metric)
        for key, metric in compared_metrics().items()
        if metric.compared == "jointly"
        and (metric.percent or key == SPEARMAN)
        and metric.better > 0
    ]
    shown = []
    for finding in findings:
        others = {ACCURACY, ACCURACY_FRACTIONAL, SPEARMAN} - {finding.criterion}
        for key, metric in sorted(metrics, key=lambda pair: pair[0] != finding.criterion):
            if key in others:
                continue
            words = tuple(plain(text) for text in say("figures.panel", key, finding))
            title, sub = words or (metric.title, metric.meaning)
            dots = dots_of(finding, key)
            if len(dots) > 1:
                shown.append((f"{title}, {finding.name}" if finding.name else title, sub, dots))
    every = sorted((dot for *_, dots in shown for dot in dots), key=lambda dot: dot.calls)
    key_of: dict[str, Dot] = {}
    for dot in every:
        if dot.name not in key_of or dot.recommended:
            key_of[dot.name] = dot
    scales = [scale_of(frame, every) for frame in frames] if every else []
    for numbers in ({}, {name: str(number) for number, name in enumerate(key_of, start=1)}):
        drawn = tuple(
            Panel(title, sub, tuple(_drawing(dots, scale, numbers) for scale in scales))
            for title, sub, dots in shown
        )
        if all(drawing.labels for panel in drawn for drawing in panel.drawings):
            break
    return Frontier(drawn, tuple(key_of.values()) if numbers else ())


def _drawing(dots: Sequence[Dot], scale: ChartScale, numbers: Mapping[str, str]) -> Drawing:
    stair = tuple(_stair(dots, scale))
    lines = [
        Box(min(x, to_x) - 2, min(y, to_y) - 2, max(x, to_x) + 2, max(y, to_y) + 2)
        for (x, y), (to_x, to_y) in itertools.pairwise(stair)
    ]
    labels = None
    for cell in (1, 12, 24, 48) if numbers else (1,):
        labels = labels or place(list(_spots(dots, scale, numbers, cell)), scale.frame, lines)
    return Drawing(scale, tuple(dots), stair, labels)


def _stair(dots: Sequence[Dot], scale: ChartScale) -> Iterator[Point]:
    """Yield the corners of the frontier."""
    height = None
    for dot in sorted((dot for dot in dots if dot.on_frontier), key=lambda dot: dot.calls):
        x = scale.x(dot.calls)
        if height is not None:
            yield x, height
        yield x, (height := scale.y(dot.value))
    if height is not None:
        yield scale.frame.plot.right, height


def _spots(
    dots: Sequence[Dot], scale: ChartScale, numbers: Mapping[str, str], cell: int
) -> Iterator[Spot]:
    """Dots in one cell of so many px share a label: names with the value, or numbers of the key."""
    together: dict[Point, list[Dot]] = {}
    for dot in dots:
        in_cell = round(scale.x(dot.calls) / cell), round(scale.y(dot.value) / cell)
        together.setdefault(in_cell, []).append(dot)
    for first, *more in together.values():
        low, high = first.ends or (first.value, first.value)
        yield Spot(
            names=tuple(
                (numbers.get(d.name) or shortened(d.name), d.recommended)
                for d in sorted((first, *more), key=lambda d: int(numbers.get(d.name, 0)))
            ),
            value=_value(first, bare=bool(numbers)),
            x=scale.x(first.calls),
            y=scale.y(first.value),
            high=scale.y(high),
            low=scale.y(low),
        )


def _value(dot: Dot, *, bare: bool) -> str:
    text = (
        ""
        if bare
        else share(dot.value, 0 if dot.estimate.by_construction and dot.value == 1 else 1)
    )
    return f"{text}\u2009†".strip() if dot.estimate.by_construction else text


def shortened(name: str) -> str:
    """Return a name that fits beside a dot; the table has it in full."""
    text = one_line(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
