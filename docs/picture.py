"""Draw what the recommended method of an audit changes: the picture of the README.

    python docs/picture.py RUN [--name "MODEL on SET"] [--command TEXT]

It writes before-after.svg from the `metrics.json` and `run.json` of the run directory.
"""

from __future__ import annotations

import argparse
import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

STYLE = """
  .card{fill:#ffffff;stroke:#d5d9e0}.ink{fill:#1b2330}.soft{fill:#5a6573}
  .track{fill:#eceff3}.before{fill:#c2571a}.after{fill:#1f6f8b}
  .line{stroke:#1b2330;stroke-width:2}.ideal{stroke:#1b2330;stroke-width:1.5}
  text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
  @media (prefers-color-scheme:dark){
    .card{fill:#161b22;stroke:#3a4350}.ink{fill:#e8ecf2}.soft{fill:#a3adba}
    .track{fill:#2a323d}.before{fill:#e8874a}.after{fill:#5bb4d3}
    .line,.ideal{stroke:#ffffff}}
"""
LEFT, WIDTH, ROW, TOP = 30, 500, 82, 104


PLACES = ("first", "second", "third", "fourth", "fifth")


def picture(metrics: Mapping[str, Any], command: str, title: str = "") -> str:
    """An SVG of what the recommended method changes, with 95% intervals.

    Args:
        metrics: The content of a `metrics.json` with a recommendation other than direct.
        command: The command that made it, for the description.
        title: Of the picture; the model's name by default.

    Raises:
        ValueError: If the run recommends nothing to draw.
    """
    name = metrics["recommendation"]["method"]
    if name in {None, "direct"}:
        raise ValueError("this run recommends no method: there is no after to draw.")
    before, after = metrics["methods"]["direct"], metrics["methods"][name]
    n = len(before["position_rate"])
    place = 0 if n == 2 else max(range(n), key=lambda at: before["position_rate"][at]["value"])
    compared = metrics.get("differences", {}).get(f"{name}-direct", {})
    mark = "†" if compared.get("consistency", {}).get("by_construction") else ""
    noun, kept = (
        ("answer", "Keeps its verdict when the answers are swapped")
        if n == 2
        else ("option", f"Gives its most frequent answer, over {n} orders")
    )
    rows: Sequence[tuple[str, Callable[[Mapping[str, Any]], Mapping[str, Any]], float | None]] = (
        (f"Picks the {PLACES[place]} {noun}", lambda row: row["position_rate"][place], 1 / n),
        (kept, lambda row: row["consistency"], None),
        ("Is right", lambda row: row["accuracy"], None),
    )
    calls, model = after["calls_per_item_amortised"], title or metrics["model"].partition("@")[0]
    items = f"{metrics['data']['n_items']:,} items; lines are 95% intervals"
    if mark:
        items += "; † holds for any judge by construction"
    body = [
        text_at(
            LEFT, 34, "ink", 17, model if title else f"{model} before and after correction", 600
        ),
        text_at(LEFT, 56, "soft", 13, items),
        f'<rect class="before" x="{LEFT}" y="70" width="11" height="11" rx="2"/>',
        text_at(LEFT + 17, 80, "soft", 13, "uncorrected, 1 call per item"),
        f'<rect class="after" x="{LEFT + 250}" y="70" width="11" height="11" rx="2"/>',
        text_at(LEFT + 267, 80, "soft", 13, f"{name}, {calls:.1f} calls per item"),
    ]
    for number, (heading, cell, target) in enumerate(rows):
        y = TOP + number * ROW
        body.append(text_at(LEFT, y + 14, "ink", 14, heading))
        body.extend(_bar(y + 22, cell(before), "before"))
        body.extend(_bar(y + 44, cell(after), "after", mark if number < 2 else ""))
        if target is not None:
            x = LEFT + WIDTH * target
            body.append(f'<line class="ideal" x1="{x:g}" x2="{x:g}" y1="{y + 19}" y2="{y + 65}"/>')
            words = f"{100 * target:.0f}% if only content counted"
            body.append(text_at(max(x + 6, LEFT + 250), y + 14, "soft", 12, words))
    height = TOP + len(rows) * ROW + 8
    told = (
        f"{heading}: {_percent(cell(before))}, then {_percent(cell(after))}."
        for heading, cell, _ in rows
    )
    said = f"{model}, before and after correction. {' '.join(told)} Drawn by docs/picture.py from: {command}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 {height}" width="620" '
        f'height="{height}" role="img" aria-labelledby="t d">\n'
        f'<title id="t">Before and after correction</title>\n'
        f'<desc id="d">{html.escape(said)}</desc>\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="card" x=".5" y=".5" width="619" height="{height - 1}" rx="10"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _percent(cell: Mapping[str, Any]) -> str:
    return f"{100 * cell['value']:.1f}%"


def text_at(x: float, y: float, kind: str, size: int, text: str, weight: int = 400) -> str:
    """Return SVG text of a class of `STYLE`, in pixels."""
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}" '
        f'font-weight="{weight}">{html.escape(text)}</text>'
    )


def _bar(y: float, cell: Mapping[str, Any], kind: str, mark: str = "") -> Iterable[str]:
    yield f'<rect class="track" x="{LEFT}" y="{y}" width="{WIDTH}" height="18" rx="3"/>'
    width = WIDTH * cell["value"]
    yield f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="18" rx="3"/>'
    low, high = cell.get("low"), cell.get("high")
    if low is not None and high is not None:
        x1, x2, middle = LEFT + WIDTH * low, LEFT + WIDTH * high, y + 9
        yield f'<line class="line" x1="{x1:.1f}" x2="{x2:.1f}" y1="{middle}" y2="{middle}"/>'
    yield text_at(LEFT + WIDTH + 10, y + 14, "ink", 14, _percent(cell) + mark, 600)


def main() -> None:
    """Draw a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="run directory to draw from")
    parser.add_argument("--name", default="", help="what was asked, in place of the model's name")
    parser.add_argument("--command", default="", help="in place of the command that was typed")
    given = parser.parse_args()
    folder = given.run
    run, metrics = (
        json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("run", "metrics")
    )
    Path(__file__).with_name("before-after.svg").write_text(
        picture(metrics, given.command or run["command"], given.name), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
