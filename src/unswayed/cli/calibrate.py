"""`unswayed calibrate`: fit on items, write a file for production."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from unswayed.api import calibrate as fit
from unswayed.backends import BackendSettings
from unswayed.base.counts import plural
from unswayed.calls.calibration import Calibration
from unswayed.cli.options import Calls, Model, Shots, check_out, with_options
from unswayed.cli.output import note, show, write
from unswayed.methods.intervals import FEWEST
from unswayed.prompts import AskOptions
from unswayed.sources import DataOptions, examples_of, model_for


@with_options
def calibrate(
    *,
    method: Annotated[
        str, typer.Argument(help="Method to fit, such as pride or pride:prior=group.")
    ],
    data: Annotated[str, typer.Argument(help="Items to fit on; only selective uses gold.")],
    out: Annotated[Path, typer.Option(help="Calibration file to write (JSON).")],
    model: Model = None,
    asking: AskOptions,
    shots: Shots = None,
    selection: DataOptions,
    reach: BackendSettings,
    calls: Calls = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the file even if it corrects nothing.")
    ] = False,
) -> int:
    """Fit a method on items, for `judge`."""
    check_out(out, None if data == "-" else data)
    fitted = fit(
        method,
        selection.load(data),
        model_for(model, data),
        out=out,
        prompt=asking.prompts(examples_of(shots)),
        reask=asking.reask,
        backend=reach,
        calls=calls,
        force=force,
    )
    for warning in fitted.warnings:
        note(warning)
    _show(fitted)
    write(f"\n{out}")
    return 0


def _show(fitted: Calibration) -> None:
    """Print the learned values with their intervals."""
    resampled = fitted.method.resamples > 0
    table = Table("learned", "value", "95% interval or bound", box=None, pad_edge=False)
    for name, estimate in fitted.diagnostics["estimates"].items():
        value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
        few = (estimate.get("n_units") or estimate["n"]) < FEWEST
        counted = "questions" if estimate.get("n_units") else "items"
        missing = f"needs {FEWEST} {counted}" if resampled and few else ""
        between = missing if low is None or high is None else f"{low:.3f} to {high:.3f}"
        table.add_row(name, "" if value is None else f"{value:.3f}", between)
    if table.row_count:
        show(table)
    told = fitted.diagnostics
    write(
        f"{plural(told['estimation_items'], 'item')}, {plural(told['decisions'], 'decision')}, "
        f"{told['unparsed']:,} unparsed, {told['without_probabilities']:,} without "
        "probabilities"
    )
