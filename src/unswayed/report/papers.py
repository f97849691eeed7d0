"""Figures for papers: the report's charts as PDF, SVG and PNG, drawn by matplotlib."""

from __future__ import annotations

import functools
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
from unswayed.report.frontier import FRAMES, Drawing, panels
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
def _colour(name: str) -> str:
    """A colour of the page on white paper."""
    style = (resources.files("unswayed.report") / "templates" / "page.css").read_text("utf-8")
    return style.partition(f"--{name}:")[2][: len("#rrggbb")]


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


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _rows(axes: Axes, table: PlotTable) -> None:
    """A plot table as the page has it, one row below the other."""
    rows = [
        (": ".join(part for part in (block.title, row.label) if part), row.mark)
        for block in table.blocks
        for row in block.rows
        if row.mark is not None
    ]
    for place, (_, mark) in enumerate(rows):
        colour = _colour("accent" if mark.on else "bar" if table.kind == "bar" else "ink")
        value, low, high = (100 * part for part in (mark.value, mark.low, mark.high))
        if table.kind == "bar":
            axes.barh(place, value, color=colour, height=0.55)
            axes.plot([low, high], [place, place], color=_colour("ink"), linewidth=0.9)
        else:
            axes.plot([low, high], [place, place], color=colour, linewidth=1.2)
            axes.plot(value, place, "|", color=colour, markersize=8, markeredgewidth=1.6)
        if mark.expected is not None:
            ends = [place - 0.5, place + 0.5]
            axes.plot(
                [100 * mark.expected] * 2, ends, color=_colour("ink"), linewidth=0.8, dashes=(3, 3)
            )
    axes.set_yticks(range(len(rows)), [_escaped(name) for name, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.grid(axis="x", color=_colour("grid"), linewidth=0.6)
    axes.set_axisbelow(True)


def _tables(tables: Sequence[PlotTable], width: float, height: float, label: str) -> Figure | None:
    """Plot tables side by side; None where there is none."""
    if not tables:
        return None
    rows = max(sum(len(block.rows) for block in table.blocks) for table in tables)
    figure, axes = _figure(width * len(tables), 0.7 + height * rows, len(tables))
    for ax, table in zip(axes, tables, strict=True):
        _rows(ax, table)
        ax.set_xlabel(label)
        if not table.hidden_caption:
            ax.set_title(table.caption)
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
    paper = [frame for frame in FRAMES if frame.kind == "paper"]
    shown = panels([finding], [""], frames=paper)
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
    figure.supxlabel(_escaped(key), fontsize=6.5, color=_colour("ink"), x=0.02, ha="left")
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
    small: dict[str, Any] = {"fontsize": 7, "color": _colour("muted")}
    for tick in drawing.y_ticks:
        ax.plot([frame.left, right], [tick.at, tick.at], color=_colour("grid"), linewidth=0.6)
        ax.text(frame.left - 6, tick.at, tick.text, ha="right", va="center", **small)
    for tick in drawing.x_ticks:
        ax.text(tick.at, drawing.floor + 8, tick.text, ha="center", va="top", **small)
    middle = (frame.left + right) / 2
    ax.text(middle, frame.height, "calls per item, log scale", ha="center", va="bottom", **small)
    _stair(ax, drawing, right)
    for dot in drawing.dots:
        colour = _colour("accent") if dot.accent else _colour("bar")
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
        ax.step(x, y, where="post", color=_colour("accent"), linewidth=0.9, alpha=0.75)


def _label(ax: Axes, label: Label) -> None:
    if label.leader is not None:
        x, start, end = label.leader
        ax.plot([x, x], [start, end], color=_colour("bar"), linewidth=0.5)
    names = _escaped(" and ".join(name for name, _ in label.names))
    chosen = any(chosen for _, chosen in label.names)
    ax.text(
        label.x,
        label.y,
        f"{names} {label.value}",
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        fontsize=6.5,
        color=_colour("accent") if chosen else _colour("ink"),
    )
