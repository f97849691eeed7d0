"""Figures for papers: the report's charts as PDF, SVG and PNG, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import UsageError
from unswayed.registry import require
from unswayed.report.claims import groups_of
from unswayed.report.data import RunData
from unswayed.report.findings import Finding, find
from unswayed.report.frontier import FRAMES, Drawing, panels
from unswayed.report.labels import Label
from unswayed.report.page import run_names
from unswayed.report.plots import PROTOCOLS, rate_name
from unswayed.visible import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unswayed.decisions import Estimate

__all__ = ["write_figures"]

FORMATS = ("pdf", "svg", "png")
ACCENT, GREY, INK = "#1b5e9e", "#8a9198", "#1c2024"
MUTED, GRID = "#59616a", "#e9e6e0"
COLUMN_IN = 3.35
"""Width of one column of a two-column paper, in inches."""
KEY_WIDTH = 130
"""Characters on a line of the frontier's key, over two columns."""

STYLE: dict[Any, Any] = {  # matplotlib types the keys as literals of its own
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "unswayed",
}


def write_figures(runs: Sequence[RunData], directory: Path) -> list[Path]:
    """Write the figures of every run, each as PDF, SVG and PNG (300 dpi).

    Args:
        runs: The runs; with several, file names start with the run's number.
        directory: Made if it does not exist.

    Returns:
        The files written: position, protocols, frontier and groups, as far as they were measured.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        UsageError: If there is no run, or the directory cannot be written.
    """
    require("matplotlib", extra="figures", feature="Figures for papers")
    import matplotlib as mpl

    if not runs:
        raise UsageError("figures need at least one run.")
    findings = [find(run) for run in runs]
    makers: tuple[tuple[str, Callable[[Finding], Figure | None]], ...] = (
        ("position", position_figure),
        ("protocols", protocols_figure),
        ("frontier", frontier_figure),
        ("groups", groups_figure),
    )
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            for number, (found, run_name) in enumerate(
                zip(findings, run_names(findings), strict=True), start=1
            ):
                prefix = f"{number}-" if len(findings) > 1 else ""
                for name, make in makers:
                    figure = make(found)
                    if figure is None:
                        continue
                    if run_name:
                        figure.suptitle(_escaped(run_name), x=0.01, ha="left", fontsize=8)
                    written += _save(figure, directory / f"{prefix}{name}")
    except OSError as error:
        raise UsageError(
            f"cannot write figures to {directory}: {error.strerror or error}."
        ) from None
    return written


def _save(figure: Figure, stem: Path) -> list[Path]:
    made = []
    for kind in FORMATS:
        path = stem.with_name(f"{stem.name}.{kind}")
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[kind]
        figure.savefig(path, dpi=300, bbox_inches="tight", metadata=dated)
        made.append(path)
    return made


def _escaped(text: str) -> str:
    """A name as matplotlib writes it: a dollar would start mathematics."""
    return one_line(text).replace("$", r"\$")


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _errors(estimates: Sequence[Estimate]) -> tuple[list[float], list[list[float]]]:
    """Values and distances to the interval's ends, in percent."""
    values = [100 * (e.value or 0.0) for e in estimates]
    low = [
        v - 100 * (v / 100 if e.low is None else e.low)
        for v, e in zip(values, estimates, strict=True)
    ]
    high = [
        100 * (v / 100 if e.high is None else e.high) - v
        for v, e in zip(values, estimates, strict=True)
    ]
    return values, [[max(0.0, x) for x in low], [max(0.0, x) for x in high]]


def _rows(axes: Axes, names: Sequence[str], estimates: Sequence[Estimate]) -> None:
    """Estimates with intervals, one row each, the first at the top."""
    values, errors = _errors(estimates)
    places = list(range(len(values)))
    axes.errorbar(
        values, places, xerr=errors, fmt="|", color=ACCENT, ecolor=ACCENT, elinewidth=1.2,
        markersize=8, markeredgewidth=1.6,
    )  # fmt: skip
    axes.set_yticks(places, [_escaped(name) for name in names])
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def position_figure(found: Finding) -> Figure | None:
    """Shares by position and by label with their intervals."""
    panels = [
        (title, protocol, what, rates)
        for title, protocol, what in (
            ("As normally asked", "coupled", "position"),
            ("Position alone", "order", "position"),
            ("Label alone", "label", "label"),
        )
        if (rates := found.audit.rates(protocol, what))
    ]
    if not panels:
        return None
    figure, axes = _figure(2.3 * len(panels), 0.7 + 0.24 * found.n, len(panels))
    for ax, (title, protocol, what, rates) in zip(axes, panels, strict=True):
        names = [rate_name(found.labels, i, found.n, protocol, what) for i in range(len(rates))]
        values, errors = _errors(rates)
        expected = 100 / len(rates)
        colours = [
            ACCENT if v - e > expected else GREY for v, e in zip(values, errors[0], strict=True)
        ]
        places = list(range(len(rates)))
        ax.barh(places, values, color=colours, height=0.55)
        ax.errorbar(values, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=0.9)
        ax.axvline(expected, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
        ax.set_yticks(places, [_escaped(name) for name in names])
        ax.invert_yaxis()
        ax.set_xlim(0, 100)
        ax.set_title(title)
        ax.set_xlabel("% of choices")
    return figure


def protocols_figure(found: Finding) -> Figure | None:
    """Consistency by protocol."""
    rows = [
        (title, estimate)
        for protocol, title in PROTOCOLS
        if (row := found.audit.protocols.get(protocol)) is not None
        and (estimate := row.get("consistency")) is not None
    ]
    if len(rows) < 2:
        return None
    figure, (ax,) = _figure(COLUMN_IN, 0.7 + 0.3 * len(rows))
    _rows(ax, [title for title, _ in rows], [estimate for _, estimate in rows])
    ax.set_xlabel("consistency, %")
    return figure


def frontier_figure(found: Finding) -> Figure | None:
    """Accuracy and consistency against calls per item, laid out as on the page's paper version."""
    paper = [frame for frame in FRAMES if frame.kind == "paper"]
    shown = panels([found], [""], frames=paper)
    drawings = [(panel.title, panel.drawings[0]) for panel in shown.panels]
    if not drawings:
        return None
    frame = drawings[0][1].frame
    height = COLUMN_IN * frame.height / frame.width + 0.25
    key = "\n".join(
        textwrap.wrap(
            "   ".join(f"{e.number}\u00a0{one_line(e.name)}" for e in shown.key), KEY_WIDTH
        )
    )
    height += 0.13 * len(key.splitlines())
    figure, axes = _figure(COLUMN_IN * len(drawings), height, len(drawings))
    figure.supxlabel(_escaped(key), fontsize=6.5, color=INK, x=0.02, ha="left")
    for ax, (title, drawing) in zip(axes, drawings, strict=True):
        ax.set_title(title)
        _frontier(ax, drawing)
    return figure


def _frontier(ax: Axes, drawing: Drawing) -> None:
    """A drawing in its own px, y downwards."""
    frame = drawing.frame
    ax.set_xlim(0, frame.width)
    ax.set_ylim(frame.height, 0)
    ax.axis("off")
    right = frame.width - frame.right
    small: dict[str, Any] = {"fontsize": 7, "color": MUTED}
    for tick in drawing.y_ticks:
        ax.plot([frame.left, right], [tick.at, tick.at], color=GRID, linewidth=0.6)
        ax.text(frame.left - 6, tick.at, tick.text, ha="right", va="center", **small)
    for tick in drawing.x_ticks:
        ax.text(tick.at, drawing.floor + 8, tick.text, ha="center", va="top", **small)
    middle = (frame.left + right) / 2
    ax.text(middle, frame.height, "calls per item, log scale", ha="center", va="bottom", **small)
    _stair(ax, drawing, right)
    for dot in drawing.dots:
        colour = ACCENT if dot.accent else GREY
        if dot.low is not None and dot.high is not None:
            ax.plot([dot.x, dot.x], [dot.low, dot.high], color=colour, linewidth=0.9)
        face = colour if dot.filled else "white"
        ax.plot(dot.x, dot.y, "o", color=colour, markersize=4.2, markerfacecolor=face)
        if dot.recommended:
            ax.plot(dot.x, dot.y, "o", color=colour, markersize=9, markerfacecolor="none")
    for label in drawing.labels:
        _label(ax, label)


def _stair(ax: Axes, drawing: Drawing, right: float) -> None:
    steps = sorted((dot for dot in drawing.dots if dot.filled), key=lambda dot: dot.x)
    if steps:
        x = [*(dot.x for dot in steps), right]
        y = [*(dot.y for dot in steps), steps[-1].y]
        ax.step(x, y, where="post", color=ACCENT, linewidth=0.9, alpha=0.75)


def _label(ax: Axes, label: Label) -> None:
    if label.leader is not None:
        x, start, end = label.leader
        ax.plot([x, x], [start, end], color=GREY, linewidth=0.5)
    names = _escaped(" and ".join(name for name, _ in label.names))
    chosen = any(chosen for _, chosen in label.names)
    ax.text(
        label.x,
        label.y,
        f"{names} {label.value}",
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        fontsize=6.5,
        color=ACCENT if chosen else INK,
    )


def groups_figure(found: Finding) -> Figure | None:
    """Consistency by group, the worst at the top."""
    rows = groups_of(found)
    if len(rows) < 2:
        return None
    figure, (ax,) = _figure(COLUMN_IN, 0.7 + 0.17 * len(rows))
    _rows(ax, [group for group, _ in rows], [row.estimates["consistency"] for _, row in rows])
    overall = found.audit.base_row.get("consistency")
    if overall is not None and overall.value is not None:
        ax.axvline(100 * overall.value, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    ax.set_xlabel("consistency, %; dashed: all items")
    return figure
