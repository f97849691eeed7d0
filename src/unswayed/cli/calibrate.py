"""`unswayed calibrate`: fit on unlabelled items, write a file for production."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unswayed.backends import BackendSettings
from unswayed.cli.options import (
    DEFAULTS,
    DataDir,
    Labels,
    Limit,
    Model,
    NoReask,
    OnBadItem,
    Prompt,
    Shots,
    TaskName,
    Template,
    check_out,
    model_for,
    shots_from,
    with_reach,
)
from unswayed.cli.output import note, show, write

if TYPE_CHECKING:
    from unswayed.calibration import Calibration


@with_reach
def calibrate(
    method: Annotated[str, typer.Argument(help="A method that learns, such as pride.")],
    data: Annotated[str, typer.Argument(help="Items; gold is not looked at.")],
    out: Annotated[Path, typer.Option(help="JSON file to write.")],
    model: Model = None,
    prompt: Prompt = None,
    template: Template = None,
    labels: Labels = None,
    shots: Shots = None,
    task: TaskName = None,
    on_bad_item: OnBadItem = "stop",
    limit: Limit = None,
    data_dir: DataDir = None,
    reach: BackendSettings = DEFAULTS,
    no_reask: NoReask = False,
    calls: Annotated[
        Path | None, typer.Option(help="Directory of recorded calls [default: beside --out]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the file even if it corrects nothing.")
    ] = False,
) -> int:
    """Fit a method on unlabelled items and write a JSON file that `judge` loads."""
    from unswayed.api import calibrate as fit

    check_out(out, None if data == "-" else data)
    fitted = fit(
        method,
        data,
        model_for(model, data),
        out=out,
        prompt=prompt,
        template=template,
        labels=labels,
        shots=shots_from(shots),
        task=task,
        on_bad_item=on_bad_item,
        limit=limit,
        data_dir=data_dir,
        backend=reach,
        reask=not no_reask,
        calls=calls,
        force=force,
    )
    for warning in fitted.warnings:
        note(warning)
    _show(fitted)
    write(f"\n{out}")
    return 0


def _show(fitted: Calibration) -> None:
    """What was learned, with intervals."""
    from rich.table import Table

    from unswayed.methods.intervals import FEWEST

    resampled = fitted.method.resamples > 0
    table = Table("learned", "value", "95% interval", box=None, pad_edge=False)
    for name, estimate in fitted.diagnostics["estimates"].items():
        value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
        few = (estimate.get("n_units") or estimate["n"]) < FEWEST
        missing = f"needs {FEWEST} items" if resampled and few else ""
        between = missing if low is None or high is None else f"{low:.3f} to {high:.3f}"
        table.add_row(name, "" if value is None else f"{value:.3f}", between)
    if table.row_count:
        show(table)
    counted = fitted.diagnostics
    write(
        f"{counted['estimation_items']:,} items, {counted['decisions']:,} decisions, "
        f"{counted['unparsed']:,} unparsed, {counted['without_probabilities']:,} without "
        "probabilities"
    )
