"""The plot of docs/evidence/stability.md: flips of each judge with their interval."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import evidence_table  # noqa: F401 - puts docs on the path

# isort: split
from picture import STYLE, text_at

if TYPE_CHECKING:
    from stability import Stability

LEFT, WIDTH, ROW, TOP = 590, 300, 26, 84


def drawn(rows: Sequence[Stability]) -> str:
    """An SVG of flips in percent, a row for each judge in the order given.

    Args:
        rows: Judges whose flips are known.
    """
    height = TOP + ROW * len(rows) + 34
    body = [
        text_at(20, 34, "ink", 17, "Verdicts that change when two answers change places", 600),
        text_at(20, 56, "soft", 13, "Share of pairs, in percent; lines are 95% intervals."),
    ]
    for tick in range(0, 101, 25):
        x = LEFT + WIDTH * tick / 100
        body.append(f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="{TOP - 8}" y2="{height - 28}"/>')
        body.append(text_at(x - 8, height - 12, "soft", 12, f"{tick}"))
    told = []
    for number, row in enumerate(rows):
        own, y = row.flips, TOP + ROW * number + 8
        assert own is not None
        assert own.value is not None
        x = LEFT + WIDTH * own.value
        body.append(text_at(20, y + 4, "ink", 13, f"{row.judge}, {row.data}"))
        if own.low is not None and own.high is not None:
            x1, x2 = LEFT + WIDTH * own.low, LEFT + WIDTH * own.high
            body.append(f'<line class="line" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y}" y2="{y}"/>')
        body.append(f'<circle class="before" cx="{x:.1f}" cy="{y}" r="4.5"/>')
        body.append(text_at(LEFT + WIDTH + 14, y + 4, "ink", 13, f"{100 * own.value:.1f}", 600))
        told.append(f"{row.judge}, {row.data}: {100 * own.value:.1f}%.")
    width = LEFT + WIDTH + 70
    said = f"Share of pairs whose verdict changes with the order. {' '.join(told)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="t d">\n'
        f'<title id="t">Flips by judge</title>\n<desc id="d">{html.escape(said)}</desc>\n'
        f"<style>{STYLE}  .grid{{stroke:#8a94a3;stroke-width:.5}}\n</style>\n"
        f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )
