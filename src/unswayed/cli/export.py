"""`unswayed export`: the decisions of a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from unswayed.cli.output import write


def export(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    out: Annotated[Path, typer.Option(help="File to write: .jsonl, .csv or .parquet.")],
    form: Annotated[
        Literal["jsonl", "csv", "parquet"] | None,
        typer.Option("--as", help="Format of the file; by default what its name ends in."),
    ] = None,
) -> None:
    """Write the decisions of a run, one line or row per judge call."""
    from unswayed.auditing.export import decisions_of_run, export_decisions, format_of

    count = export_decisions(decisions_of_run(run), out, form or format_of(out))
    write(f"{count:,} decisions -> {out}")
