"""`unswayed check-table`: cells of a published table that no judge can produce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from unswayed.base.counts import plural
from unswayed.base.errors import GateError, ItemError, UsageError
from unswayed.base.visible import one_line
from unswayed.cli.output import note, write
from unswayed.metrics.printed_table import check_table as check
from unswayed.metrics.printed_table import markdown_rows
from unswayed.model.items import is_table, iter_lines, read_table

MOST: Final = 1_000_000


def check_table(
    file: Annotated[Path, typer.Argument(help="CSV, TSV or Markdown file with the table.")],
    orders: Annotated[
        int | None,
        typer.Option(min=2, max=MOST, help="Orders per item [default: 2 for two candidates]"),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST,
            help="Candidates per item, if neither a column nor the name of a benchmark gives them.",
        ),
    ] = None,
    decided: Annotated[
        bool, typer.Option("--decided", help="Assume no ties and no unparsed answers.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Check only rows or columns whose name has this word; repeatable."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Allowed difference, instead of the table's rounding."),
    ] = None,
) -> None:
    """Find impossible accuracy and consistency figures in a table."""
    checked = check(
        _rows(file),
        tolerance=tolerance,
        views=orders,
        candidates=candidates,
        decided=decided,
        only=only or (),
    )
    unit = " points" if checked.unit > 1 else ""
    for bad in checked.impossible:
        write(
            f"line {bad.row}{f' ({one_line(bad.name)})' if bad.name else ''}: {bad.rule} fails by "
            f"{bad.excess:.4g}{unit}; rounding explains {bad.rounding:.4g}"
        )
    if checked.passed_over:
        lines = ", ".join(map(str, checked.passed_over[:10]))
        more = f" and {n - 10} more" if (n := len(checked.passed_over)) > 10 else ""
        note(f"skipped, because one of the three terms is missing: line {lines}{more}.")
    for kind in checked.kinds:
        number = plural(kind.candidates, "candidate") if kind.candidates else "candidates unknown"
        rules = ", ".join(kind.rules)
        write(f"{number}: {kind.impossible} of {plural(kind.n, 'row')} impossible (rules: {rules})")
        if kind.candidates is None:
            note("To check more rules, add --candidates or a column 'candidates'.")
    cells = sum(kind.impossible for kind in checked.kinds)
    if cells:
        raise GateError(f"{file}: {plural(cells, 'impossible row')}.")


def _rows(file: Path) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the rows of the table with their lines, headings and cells."""
    if not is_table(file):
        try:
            text = _text(file)
        except UnicodeDecodeError:
            raise UsageError(f"{file}: not UTF-8 text. Save it as UTF-8.") from None
        rows = markdown_rows(text)
        if not rows:
            raise UsageError(
                f"{file}: no Markdown table with one of accuracy, consistency and consistent accuracy "
                "(acc, con, ca) as a heading. Add such a heading, or end the name of a CSV in .csv, of a TSV in .tsv."
            )
        return rows
    table: list[tuple[int, list[tuple[str, str]]]] = []
    for number, row in read_table(file):
        if isinstance(row, ItemError):
            raise ItemError(f"{file}:{number}: {row}.")
        table.append((number, list(row.items())))
    return table


def _text(file: Path) -> str:
    """Return the text, its lines numbered as in the file: empty ones are kept."""
    lines: list[str] = []
    for number, line in iter_lines(file):
        lines += [""] * (number - 1 - len(lines))
        lines.append(line.decode().rstrip("\r\n"))
    return "\n".join(lines)
