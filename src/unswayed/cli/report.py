"""`unswayed report`: one run, or several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unswayed.auditing.run_directory import write_text
from unswayed.base.errors import UsageError
from unswayed.cli.options import check_out
from unswayed.cli.output import write
from unswayed.report.collect import load_runs
from unswayed.report.page import changes_text, render_report
from unswayed.report.papers import write_figures


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Directory for figures for papers (PDF, SVG, PNG); needs unswayed[figures]."
        ),
    ] = None,
    embed_mb: Annotated[
        float, typer.Option(min=0, help="Largest size of the flipped items in the report, in MB.")
    ] = 4.0,
    name: Annotated[
        list[str] | None, typer.Option(help="Name of a run; give it once for each run, in order.")
    ] = None,
) -> None:
    """Write the report of one or more finished runs."""
    check_out(out)
    if name and len(name) != len(runs):
        raise UsageError(
            f"--name was given {len(name)} times for {len(runs)} runs. Give it once for each run, "
            "in the same order."
        )
    loaded = load_runs(runs, names=name or ())
    write_text(out, render_report(loaded, embed_mb=embed_mb))
    drawn = [] if figures is None else write_figures(loaded, figures)
    for line in (*changes_text(loaded), *map(str, (out, *drawn))):
        write(line)
