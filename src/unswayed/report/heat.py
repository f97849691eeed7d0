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


def _heat_rows(
    labels: Sequence[str],
    shares: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    totals: Sequence[str],
) -> tuple[HeatRow, ...]:
    most = max((value for row in shares for value in row), default=0.0) or 1.0
    return tuple(
        HeatRow(
            label,
            tuple(
                HeatCell(text, DARKEST * value / most)
                for text, value in zip(said, row, strict=True)
            ),
            total,
        )
        for label, row, said, total in zip(labels, shares, texts, totals, strict=True)
    )


def _columns(n: int) -> tuple[str, ...]:
    return tuple(str(position + 1) for position in range(n))


def share_heat(
    title: str, sub: str, labels: Sequence[str], chosen: Sequence[Sequence[int]]
) -> Heat:
    """Of the choices of each level, the share at each position, in percent."""
    totals = [sum(row) for row in chosen]
    shares = [[c / (n or 1) for c in row] for row, n in zip(chosen, totals, strict=True)]
    texts = [
        [share(value, 0) if n else "–" for value in row]
        for row, n in zip(shares, totals, strict=True)
    ]
    rows = _heat_rows(labels, shares, texts, [count(n) for n in totals])
    return Heat(title, sub, "level", _columns(len(labels)), "choices", rows)


def exposure_heat(title: str, sub: str, noun: str, counts: Sequence[Sequence[int]]) -> Heat:
    """How often a set of orders shows each candidate at each position."""
    labels = [f"{noun} {candidate + 1}" for candidate in range(len(counts))]
    shares = [[float(number) for number in row] for row in counts]
    texts = [[str(number) for number in row] for row in counts]
    rows = _heat_rows(labels, shares, texts, [str(sum(row)) for row in counts])
    return Heat(title, sub, noun, _columns(len(counts)), "orders", rows)
