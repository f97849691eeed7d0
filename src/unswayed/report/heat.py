"""Heat tables: counts by row and position, real tables whose cells are shaded by their share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unswayed.report.numerals import count, share

DARKEST = 0.45
"""Opacity of the largest share: text stays readable on it in the light and in the dark."""


class HeatRow(NamedTuple):
    """A row; `total` stands behind its cells."""

    label: str
    cells: tuple[tuple[str, float], ...]  # texts with values, or opacities in `Heat.shaded`
    total: str


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat table with as many positions as rows."""

    title: str
    sub: str
    corner: str  # what the rows are
    last: str  # what the last column counts
    rows: tuple[HeatRow, ...]

    @property
    def shaded(self) -> tuple[HeatRow, ...]:
        """The rows with opacities in the place of values, `DARKEST` for the largest."""
        most = max((value for row in self.rows for _, value in row.cells), default=0.0) or 1.0
        return tuple(
            row._replace(cells=tuple((text, DARKEST * value / most) for text, value in row.cells))
            for row in self.rows
        )


def share_heat(
    title: str, sub: str, labels: Sequence[str], chosen: Sequence[Sequence[int]]
) -> Heat:
    """Return the share of each level's choices at each position, in percent."""
    rows = (
        HeatRow(label, tuple((share(c / n, 0), c / n) if n else ("–", 0.0) for c in row), count(n))
        for label, row in zip(labels, chosen, strict=True)
        for n in [sum(row)]
    )
    return Heat(title, sub, "level", "choices", tuple(rows))


def exposure_heat(title: str, sub: str, noun: str, counts: Sequence[Sequence[int]]) -> Heat:
    """Count how often a set of orders shows each candidate at each position."""
    rows = (
        HeatRow(f"{noun} {candidate}", tuple((str(n), float(n)) for n in row), str(sum(row)))
        for candidate, row in enumerate(counts, start=1)
    )
    return Heat(title, sub, noun, "orders", tuple(rows))
