"""`unswayed export`: the decisions or the items of a run, or items, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from unswayed.auditing.export import decisions_of_run, export_decisions, format_of
from unswayed.auditing.export_items import export_items, items_of_run
from unswayed.base.errors import UsageError
from unswayed.cli.options import check_out, with_options
from unswayed.cli.output import write
from unswayed.sources import DataOptions


@with_options
def export(
    *,
    run: Annotated[
        str, typer.Argument(help="Run directory; with --what items also items, as for audit.")
    ],
    out: Annotated[
        Path, typer.Option(help="File to write: .jsonl, .csv or .parquet; for dataset, a folder.")
    ],
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "dataset"] | None,
        typer.Option("--as", help="Format of the file [default: by the ending of its name]"),
    ] = None,
    what: Annotated[
        Literal["decisions", "items"], typer.Option(help="Content to write.")
    ] = "decisions",
    selection: Annotated[DataOptions, "data_dir", "columns"],
) -> None:
    """Write decisions or items to a file."""
    of_run = what == "decisions" or Path(run).is_dir()
    given = [name for name in ("data_dir", "columns") if getattr(selection, name) is not None]
    if of_run and given:
        option = given[0].replace("_", "-")
        raise UsageError(f"--{option} works only with --what items and data. Remove it for a run.")
    form = form or format_of(out)
    if what == "decisions":
        count = export_decisions(decisions_of_run(run), out, form)
    else:
        if form != "dataset":
            check_out(out, None if run == "-" else run)
        items = items_of_run(run) if of_run else selection.load(run)
        count = export_items(items.items, out, form)
    write(f"{count:,} {what} -> {out}")
