"""Heat tables: counts by row and position, real tables whose cells are shaded by their share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unswayed.report.numerals import count, share

DARKEST = 0.45
"""Opacity of the largest share: text stays readable on it in the light and in the dark."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A text, and how strongly its ground is coloured, from 0 to `DARKEST`."""

    text: str
    shade: float


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row; `total` stands behind its cells."""

    label: str
    cells: tuple[HeatCell, ...]
    total: str


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat table."""

    title: str
    sub: str
    corner: str  # what the rows are
    columns: tuple[str, ...]  # names of the positions
    last: str  # what the last column counts
    rows: tuple[HeatRow, ...]


def _rows(
    labels: Sequence[str], cells: Sequence[Sequence[tuple[str, float]]], totals: Sequence[str]
) -> tuple[HeatRow, ...]:
    """Rows of texts and values; the largest of all values is the darkest."""
    most = max((value for row in cells for _, value in row), default=0.0) or 1.0
    return tuple(
        HeatRow(label, tuple(HeatCell(text, DARKEST * value / most) for text, value in row), total)
        for label, row, total in zip(labels, cells, totals, strict=True)
    )


def _columns(n: int) -> tuple[str, ...]:
    return tuple(str(position + 1) for position in range(n))


def share_heat(
    title: str, sub: str, labels: Sequence[str], chosen: Sequence[Sequence[int]]
) -> Heat:
    """Return the share of each level's choices at each position, in percent."""
    totals = [sum(row) for row in chosen]
    cells = [
        [(share(c / n, 0), c / n) if n else ("–", 0.0) for c in row]
        for row, n in zip(chosen, totals, strict=True)
    ]
    rows = _rows(labels, cells, [count(n) for n in totals])
    return Heat(title, sub, "level", _columns(len(labels)), "choices", rows)


def exposure_heat(title: str, sub: str, noun: str, counts: Sequence[Sequence[int]]) -> Heat:
    """Count how often a set of orders shows each candidate at each position."""
    labels = [f"{noun} {candidate + 1}" for candidate in range(len(counts))]
    cells = [[(str(number), float(number)) for number in row] for row in counts]
    rows = _rows(labels, cells, [str(sum(row)) for row in counts])
    return Heat(title, sub, noun, _columns(len(counts)), "orders", rows)
