"""Render the measured tables and figures of the pages from the data.

    python docs/evidence.py    # rewrite the marked blocks of every page

`evidence/data/PAGE.json` holds `tables` (each with `command`, `measured`, `columns` and `rows`), `figures`
and `views`. The block between `<!-- NAME: begin -->` and `<!-- NAME: end -->` in `evidence/PAGE.md` shows
the table, figure or view of that name. Any page shows that of another with `<!-- PAGE.NAME: begin -->`,
without the command below a table.

A figure is a text, `[table, match, column]`, the cell in that column of the first row that matches the
expression, or `{"sum": [table, column]}`. A view is `{"table": …, "match": …, "heading": …}`: the rows of a
table of rates whose "statement | setting" matches the expression; its groups `row` and `column`, if it has
them, place a rate in the view. A view with `columns` shows only these columns of the rows that match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
EVIDENCE = DOCS / "evidence"
BLOCK = re.compile(
    r"(<!--\s+((?:([\w-]+)\.)?(\w[\w-]*)):\s+begin\s+-->)(.*?)(<!--\s+\2:\s+end\s+-->)", re.DOTALL
)
CAPTION = re.compile(r"\n`[^`]*`\n$")


def load(page: str, folder: Path = EVIDENCE) -> dict[str, Any]:
    """Load the data of a page; empty data if it has none."""
    path = folder / "data" / f"{page}.json"
    empty: dict[str, Any] = {"tables": {}, "figures": {}, "views": {}}
    return {**empty, **json.loads(path.read_text(encoding="utf-8"))} if path.exists() else empty


def save(page: str, data: Mapping[str, Any], folder: Path = EVIDENCE) -> None:
    """Save the data of a page, one row of a table per line."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    text = re.sub(r"\n {5,}|\n {4}(?=\])", " ", text)
    path = folder / "data" / f"{page}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def written(cell: object) -> str:
    """Return the text of a cell, whole numbers with a comma between thousands."""
    text = str(cell)
    return f"{int(text):,}" if re.fullmatch(r"[1-9]\d{3,}", text) else text


def line(cells: Iterable[object]) -> str:
    """Format one row of a Markdown table."""
    escaped = (written(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table."""
    return "\n".join([line(columns), f"|{'---|' * len(columns)}", *map(line, rows)])


def table_block(table: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """Format a table and, below it, its command, its date and remarks."""
    told = "; ".join(part for part in (table.get("measured"), *remarks) if part)
    caption = "  # ".join(part for part in (table.get("command"), told) if part)
    below = f"\n\n`{caption}`" if caption else ""
    return f"\n{markdown(table['columns'], table['rows'])}{below}\n"


def view_block(table: Mapping[str, Any], match: str, heading: str = "setting") -> str:
    """Format the rates that match: by row and column if the expression has such groups."""
    rates = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    found = [(re.search(match, f"{one['statement']} | {one['setting']}"), one) for one in rates]
    kept = [(hit.groupdict(), one) for hit, one in found if hit]
    if not kept:
        raise ValueError(f"no rate matches {match}")
    if "column" not in kept[0][0]:
        return table_block({**table, "rows": [list(one.values()) for _, one in kept]})
    cells: dict[str, dict[str, str]] = {}
    bounds: dict[str, set[str]] = {}
    for place, one in kept:
        cells.setdefault(place["row"], {})[place["column"]] = one["rate"]
        bounds.setdefault(place["column"], set()).add(one["bound"])
    numbers = [int(one["trials"].replace(",", "")) for _, one in kept]
    fewest, most = f"{min(numbers):,}", f"{max(numbers):,}"
    remarks = [f"{most} trials" if fewest == most else f"{fewest} to {most} trials"]
    same = {head: min(told) for head, told in bounds.items() if len(told) == 1 and "–" not in told}
    heads = {head: f" ({same[head]})" if head in same else "" for head in bounds}
    if len(same) == len(bounds) and len({*same.values()}) == 1:
        remarks.append(f"bound {same.popitem()[1]}")
        heads = dict.fromkeys(heads, "")
    columns = [heading, *(head + told for head, told in heads.items())]
    rows = [[row, *(rates.get(head, "–") for head in heads)] for row, rates in cells.items()]
    return table_block({**table, "columns": columns, "rows": rows}, remarks)


def columns_block(table: Mapping[str, Any], columns: Sequence[str], match: str = "") -> str:
    """Format some columns of the rows that match."""
    places = [table["columns"].index(name) for name in columns]
    rows = [row for row in table["rows"] if re.search(match, " | ".join(row))]
    kept = [[row[place] for place in places] for row in rows]
    return table_block({**table, "columns": columns, "rows": kept})


def block(data: Mapping[str, Any], name: str) -> str:
    """Format what a marked block shows; a `KeyError` if the data has nothing of that name."""
    if name in data["views"]:
        view = data["views"][name]
        show = columns_block if "columns" in view else view_block
        return show(**{**view, "table": data["tables"][view["table"]]})
    if name in data["tables"]:
        return table_block(data["tables"][name])
    figure = data["figures"][name]
    if isinstance(figure, str):
        return figure
    if isinstance(figure, dict):
        table, column = figure["sum"]
        place = data["tables"][table]["columns"].index(column)
        return written(sum(int(row[place]) for row in data["tables"][table]["rows"]))
    table, match, column = figure
    of = data["tables"][table]
    row = next(row for row in of["rows"] if re.search(match, " | ".join(row)))
    return written(row[of["columns"].index(column)])


def page_text(text: str, own: Mapping[str, Any] | None = None, folder: Path = EVIDENCE) -> str:
    """Rewrite the marked blocks of a page; those without the name of a page only from data of its own."""

    def rewritten(found: re.Match[str]) -> str:
        opening, _, page, name, _, closing = found.groups()
        data = load(page, folder) if page else own
        if data is None:
            return found[0]
        shown = block(data, name)
        return f"{opening}{CAPTION.sub('', shown) if page else shown}{closing}"

    return BLOCK.sub(rewritten, text)


def pages() -> dict[Path, str]:
    """Return every page of the documentation as the data makes it."""
    own = {EVIDENCE / f"{path.stem}.md": load(path.stem) for path in EVIDENCE.glob("data/*.json")}
    found = sorted(DOCS.rglob("*.md"))
    return {page: page_text(page.read_text(encoding="utf-8"), own.get(page)) for page in found}


def main() -> None:
    """Rewrite the pages whose data have changed and print their names."""
    for page, made in pages().items():
        if made != page.read_text(encoding="utf-8"):
            page.write_text(made, encoding="utf-8")
            print(page.relative_to(DOCS))


if __name__ == "__main__":
    main()
