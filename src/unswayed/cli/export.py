"""`unswayed export`: the decisions of a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    form: Annotated[
        Literal["jsonl", "csv", "parquet"], typer.Option("--as", help="Format of the file.")
    ] = "jsonl",
) -> None:
    """Write the decisions of a run, one line or row per judge call."""
    from unswayed.auditing.export import decisions_of_run, export_decisions

    count = export_decisions(decisions_of_run(run), out, form)
    typer.echo(f"{count:,} decisions -> {out}")
