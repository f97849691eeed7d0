"""Figures for papers: the report's charts as PDF, SVG and PNG, drawn by matplotlib."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import UsageError
from unswayed.registry import require
from unswayed.report.claims import groups_of
from unswayed.report.data import RunData
from unswayed.report.findings import Finding, find
from unswayed.report.frontier import FRAMES, Dot, Drawing, Scale, panels
from unswayed.report.labels import Label
from unswayed.report.page import run_names
from unswayed.report.plots import PlotTable, bias_tables, cause_table, group_tables
from unswayed.visible import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["write_figures"]

FORMATS = ("pdf", "svg", "png")
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
            for number, (finding, run_name) in enumerate(
                zip(findings, run_names(findings), strict=True), start=1
            ):
                prefix = f"{number}-" if len(findings) > 1 else ""
                for name, make in makers:
                    figure = make(finding)
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


@functools.cache
def _colours() -> dict[str, str]:
    """The colours of the page in the light, by name: the first table of its style sheet."""
    style = (resources.files("unswayed.report") / "templates" / "page.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+):(#\w+)", style.partition("@media")[0]))


def _save(figure: Figure, stem: Path) -> list[Path]:
    paths = []
    for kind in FORMATS:
        path = stem.with_name(f"{stem.name}.{kind}")
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[kind]
        figure.savefig(path, dpi=300, bbox_inches="tight", metadata=dated)
        paths.append(path)
    return paths


def _escaped(text: str) -> str:
    """A name as matplotlib writes it: a dollar would start mathematics."""
    return one_line(text).replace("$", r"\$")


def _figure(width: float, height: float, columns: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _line(ax: Axes, x: Sequence[float], y: Sequence[float], colour: str, width: float) -> None:
    ax.plot(x, y, color=_colours()[colour], linewidth=width)


def _rows(ax: Axes, table: PlotTable) -> None:
    """A plot table as the page has it, one row below the other."""
    rows = [
        (": ".join(part for part in (block.title, row.label) if part), row, row.marks)
        for block in table.blocks
        for row in block.rows
        if row.marks is not None
    ]
    bars = table.kind == "shares"
    for place, (_, row, marks) in enumerate(rows):
        name = "accent" if row.on else "bar" if bars else "ink"
        low, value, high = (100 * part for part in marks)
        if bars:
            ax.barh(place, value, color=_colours()[name], height=0.55)
            _line(ax, [low, high], [place, place], "ink", 0.9)
        else:
            _line(ax, [low, high], [place, place], name, 1.2)
            ax.plot(value, place, "|", color=_colours()[name], markersize=8, markeredgewidth=1.6)
        if row.expected is not None:
            at, ends = 100 * row.expected, (place - 0.5, place + 0.5)
            ax.plot([at, at], ends, color=_colours()["ink"], linewidth=0.8, dashes=(3, 3))
    ax.set_yticks(range(len(rows)), [_escaped(name) for name, *_ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.grid(axis="x", color=_colours()["grid"], linewidth=0.6)
    ax.set_axisbelow(True)


def _tables(tables: Sequence[PlotTable], width: float, height: float, label: str) -> Figure | None:
    """Plot tables side by side; None where there is none."""
    if not tables:
        return None
    rows = max(sum(len(block.rows) for block in table.blocks) for table in tables)
    figure, axes = _figure(width, 0.7 + height * rows, len(tables))
    for ax, table in zip(axes, tables, strict=True):
        _rows(ax, table)
        ax.set_xlabel(label)
        ax.set_title(table.caption if table.captioned else "")
    return figure


def position_figure(finding: Finding) -> Figure | None:
    """Shares by position and by label with their intervals."""
    return _tables(bias_tables([finding], [""]), 2.3, 0.24, "% of choices")


def protocols_figure(finding: Finding) -> Figure | None:
    """Consistency by protocol."""
    table = cause_table([finding], [""])
    return _tables([table] if len(table.blocks) > 1 else [], COLUMN_IN, 0.3, "consistency, %")


def groups_figure(finding: Finding) -> Figure | None:
    """Consistency by group, the worst at the top."""
    if len(groups_of(finding).rows) < 2:
        return None
    tables, _ = group_tables([finding], [""])
    return _tables(tables[:1], COLUMN_IN, 0.17, "consistency, %; dashed: all items")


def frontier_figure(finding: Finding) -> Figure | None:
    """Accuracy and consistency against calls per item, laid out as on the page's paper version."""
    shown = panels([finding], [""], frames=[frame for frame in FRAMES if frame.kind == "paper"])
    if not shown.panels:
        return None
    frame = shown.panels[0].drawings[0].scale.frame
    entries = (f"{number}\u00a0{one_line(dot.name)}" for number, dot in enumerate(shown.key, 1))
    key = textwrap.wrap("   ".join(entries), KEY_WIDTH)
    height = COLUMN_IN * frame.height / frame.width + 0.25 + 0.13 * len(key)
    figure, axes = _figure(COLUMN_IN, height, len(shown.panels))
    words = _escaped("\n".join(key))
    figure.supxlabel(words, fontsize=6.5, color=_colours()["ink"], x=0.02, ha="left")
    for ax, panel in zip(axes, shown.panels, strict=True):
        ax.set_title(panel.title)
        _frontier(ax, panel.drawings[0])
    return figure


def _frontier(ax: Axes, drawing: Drawing) -> None:
    """A drawing in its own px, y downwards."""
    scale, frame = drawing.scale, drawing.scale.frame
    ax.set_xlim(0, frame.width)
    ax.set_ylim(frame.height, 0)
    ax.axis("off")
    small: dict[str, Any] = {"fontsize": 7, "color": _colours()["muted"]}
    for at, text in scale.y_ticks:
        _line(ax, [frame.plot.left, frame.plot.right], [at, at], "grid", 0.6)
        ax.text(frame.plot.left - 6, at, text, ha="right", va="center", **small)
    for at, text in scale.x_ticks:
        ax.text(at, frame.plot.bottom + 8, text, ha="center", va="top", **small)
    middle = (frame.plot.left + frame.plot.right) / 2
    ax.text(middle, frame.height, "calls per item, log scale", ha="center", va="bottom", **small)
    if drawing.stair:
        x, y = zip(*drawing.stair, strict=True)
        ax.plot(x, y, color=_colours()["accent"], linewidth=0.9, alpha=0.75)
    for dot in drawing.dots:
        _dot(ax, dot, scale)
    for label in drawing.labels or ():
        _label(ax, label)


def _dot(ax: Axes, dot: Dot, scale: Scale) -> None:
    x, y = scale.x(dot.calls), scale.y(dot.value)
    name = "accent" if dot.on_frontier or dot.recommended else "bar"
    colour = _colours()[name]
    if dot.ends is not None:
        _line(ax, [x, x], [scale.y(end) for end in dot.ends], name, 0.9)
    face = colour if dot.on_frontier else "white"
    ax.plot(x, y, "o", color=colour, markersize=4.2, markerfacecolor=face)
    if dot.recommended:
        ax.plot(x, y, "o", color=colour, markersize=9, markerfacecolor="none")


def _label(ax: Axes, label: Label) -> None:
    spot = label.spot
    if label.leader is not None:
        _line(ax, [spot.x, spot.x], [label.leader.top, label.leader.bottom], "bar", 0.5)
    ax.text(
        label.x,
        label.y,
        _escaped(spot.text),
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        fontsize=6.5,
        color=_colours()["accent" if spot.recommended else "ink"],
    )
