"""Figures for papers: the report's charts as PDF, SVG and PNG, drawn by matplotlib."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.base.errors import UsageError
from unswayed.base.registry import require
from unswayed.base.visible import one_line
from unswayed.report.claims import groups_of
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.frontier import FRAMES, Drawing, Frontier, panels
from unswayed.report.heat import Heat
from unswayed.report.page import named
from unswayed.report.plots import PERCENT, PlotTable, bias_tables, cause_table, group_tables
from unswayed.report.scores import level_heats, points_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    """Write the figures of every run, each as PDF, SVG and PNG (300 dpi), and return the files:
    position, protocols, points (of lists), levels (of scales), frontier and groups, as far as they
    were measured. With several runs, file names start with the run's number.
    """
    require("matplotlib", extra="figures", feature="Figures for papers")
    import matplotlib as mpl

    if not runs:
        raise UsageError("figures need at least one run.")
    findings = named(runs)
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            for number, finding in enumerate(findings, start=1):
                prefix = f"{number}-" if len(findings) > 1 else ""
                for name, figure in _figures(finding).items():
                    if figure is None:
                        continue
                    if finding.name:
                        figure.suptitle(_escaped(finding.name), x=0.01, ha="left", fontsize=8)
                    written += _save(figure, directory / f"{prefix}{name}")
    except OSError as error:
        raise UsageError.cannot(
            f"write figures to {directory}", error, "Choose another --figures."
        ) from None
    return written


@functools.cache
def _colours() -> dict[str, str]:
    """Return the colours of the page in the light, by name: the first table of its style sheet."""
    style = (resources.files("unswayed.report") / "templates" / "page.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+):(#\w+)", style.partition("@media")[0]))


def _figures(finding: Finding) -> dict[str, Figure | None]:
    """Return the figures by name; None where nothing was measured, or there is nothing to compare."""
    own = [replace(finding, name="")]
    cause = cause_table(own)
    groups, _ = group_tables(own)
    paper = [frame for frame in FRAMES if frame.kind == "narrow"]
    several = len(groups_of(finding).rows) > 1
    dashed = "consistency, %; dashed: all items"
    return {
        "position": _tables(bias_tables(own), 2.3, 0.24, "% of choices"),
        "protocols": _tables(
            [cause] if len(cause.blocks) > 1 else [], COLUMN_IN, 0.3, "consistency, %"
        ),
        "points": _tables(points_tables(own), COLUMN_IN, 0.24, "points"),
        "levels": _heat(level_heats(finding)[:1]),
        "frontier": _frontier(panels(own, frames=paper)),
        "groups": _tables(groups[:1] if several else [], COLUMN_IN, 0.17, dashed),
    }


def _save(figure: Figure, stem: Path) -> list[Path]:
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in dated]
    for path, metadata in zip(paths, dated.values(), strict=True):
        figure.savefig(path, dpi=300, bbox_inches="tight", metadata=metadata)
    return paths


def _escaped(text: str) -> str:
    """Return a name as matplotlib writes it: a dollar would start mathematics."""
    return one_line(text).replace("$", r"\$")


def _figure(width: float, height: float, columns: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


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


def _rows(ax: Axes, table: PlotTable) -> None:
    """Draw a plot table as the page has it, one row below the other."""
    colours, bars = _colours(), table.kind == "shares"
    names: list[str] = []
    for block in table.blocks:
        for row in block.rows:
            if row.marks is None:
                continue
            place = len(names)
            names.append(_escaped(": ".join(part for part in (block.title, row.label) if part)))
            colour = colours["accent" if row.on else "bar" if bars else "ink"]
            low, value, high = (100 * part for part in row.marks)
            if bars:
                ax.barh(place, value, color=colour, height=0.55)
                ax.plot([low, high], [place, place], color=colours["ink"], linewidth=0.9)
            else:
                ax.plot([low, high], [place, place], color=colour, linewidth=1.2)
                ax.plot(value, place, "|", color=colour, markersize=8, markeredgewidth=1.6)
            if row.line is not None:
                x, y = [100 * row.line] * 2, [place - 0.5, place + 0.5]
                ax.plot(x, y, color=colours["ink"], linewidth=0.8, dashes=(3, 3))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    if table.axis != PERCENT:
        ax.set_xticks([0, 50, 100], [table.axis.tick_at(place) for place in (0, 0.5, 1)])
    ax.grid(axis="x", color=colours["grid"], linewidth=0.6)
    ax.set_axisbelow(True)


def _heat(heats: Sequence[Heat]) -> Figure | None:
    """Return a heat table; None where there is none."""
    if not heats:
        return None
    from matplotlib.colors import LinearSegmentedColormap

    (heat,) = heats
    figure, (ax,) = _figure(COLUMN_IN, 0.7 + 0.26 * len(heat.rows), 1)
    shades = [[shade for _, shade in row.cells] for row in heat.shaded]
    ground = LinearSegmentedColormap.from_list("", ["white", _colours()["accent"]])
    ax.imshow(shades, cmap=ground, vmin=0, vmax=1, aspect="auto")
    for place, row in enumerate(heat.rows):
        for position, (text, _) in enumerate(row.cells):
            ax.text(position, place, text, ha="center", va="center", fontsize=7)
    places = range(len(heat.rows))
    ax.set_xticks(places, [str(position + 1) for position in places])
    ax.set_yticks(places, [_escaped(row.label) for row in heat.rows])
    ax.set_xlabel(heat.sub)
    ax.set_ylabel(heat.corner)
    ax.set_title(heat.title)
    return figure


def _frontier(shown: Frontier) -> Figure | None:
    """Return the frontier as the page prints it, with the key over all panels."""
    if not shown.panels:
        return None
    frame = shown.panels[0].drawings[0].scale.frame
    entries = (f"{number}\u00a0{_escaped(dot.name)}" for number, dot in enumerate(shown.key, 1))
    key = textwrap.wrap("   ".join(entries), KEY_WIDTH)
    height = COLUMN_IN * frame.height / frame.width + 0.25 + 0.13 * len(key)
    figure, axes = _figure(COLUMN_IN, height, len(shown.panels))
    figure.supxlabel("\n".join(key), fontsize=6.5, color=_colours()["ink"], x=0.02, ha="left")
    for ax, panel in zip(axes, shown.panels, strict=True):
        ax.set_title(panel.title)
        _drawing(ax, panel.drawings[0])
    return figure


def _drawing(ax: Axes, drawing: Drawing) -> None:
    """Draw a drawing in its own px, y downwards."""
    colours, scale, frame = _colours(), drawing.scale, drawing.scale.frame
    plot = frame.plot
    ax.set_xlim(0, frame.width)
    ax.set_ylim(frame.height, 0)
    ax.axis("off")
    small: dict[str, Any] = {"fontsize": 7, "color": colours["muted"]}
    for at, text in scale.y_ticks:
        ax.plot([plot.left, plot.right], [at, at], color=colours["grid"], linewidth=0.6)
        ax.text(plot.left - 6, at, text, ha="right", va="center", **small)
    for at, text in scale.x_ticks:
        ax.text(at, plot.bottom + 8, text, ha="center", va="top", **small)
    middle = (plot.left + plot.right) / 2
    ax.text(middle, frame.height, "calls per item, log scale", ha="center", va="bottom", **small)
    corners = zip(*drawing.stair, strict=True)
    ax.plot(*corners, color=colours["accent"], linewidth=0.9, alpha=0.75)
    for dot in drawing.dots:
        x, y = scale.x(dot.calls), scale.y(dot.value)
        colour = colours["accent" if dot.on_frontier or dot.recommended else "bar"]
        if dot.ends is not None:
            ax.plot([x, x], [scale.y(end) for end in dot.ends], color=colour, linewidth=0.9)
        face = colour if dot.on_frontier else "white"
        ax.plot(x, y, "o", color=colour, markersize=4.2, markerfacecolor=face)
        if dot.recommended:
            ax.plot(x, y, "o", color=colour, markersize=9, markerfacecolor="none")
    for label in drawing.labels or ():
        side = {"start": "left", "middle": "center", "end": "right"}[label.anchor]
        colour = colours["accent" if label.spot.recommended else "ink"]
        words = _escaped(label.spot.text)
        ax.text(label.x, label.y, words, ha=side, va="baseline", fontsize=6.5, color=colour)
