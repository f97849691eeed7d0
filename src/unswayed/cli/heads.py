"""`unswayed heads fit` and `heads show`: mask heads and neurons that push labels."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from unswayed.backends import LOCAL, BackendSettings
from unswayed.backends.head_scales import HeadScales
from unswayed.backends.model_folders import PART
from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.cli.options import Model, check_out, with_options
from unswayed.cli.output import note, write
from unswayed.prompts import AskOptions
from unswayed.sources import DataOptions, model_for
from unswayed.training.unibias import fit_heads

SUPPORT: Final = 40
"""Items of the search, unless told otherwise: 20 per label of a pair, as in the paper, in all orders."""


@with_options
def fit(
    *,
    data: Annotated[
        str,
        typer.Argument(
            help="Items; gold is not used. The first 40 unless --limit or --sample is given."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Mask file to write (.safetensors).")],
    model: Model = None,
    asking: Annotated[AskOptions, "prompt", "template", "labels"],
    selection: DataOptions,
    reach: Annotated[BackendSettings, "recipe", "extra_body", *LOCAL],
) -> None:
    """Mask the label-biased heads and neurons of a local model (UniBias)."""
    check_out(out, None if data == "-" else data)
    if PART.search(str(out)):
        raise UsageError(
            f"{out}: a model name cannot contain this path. Choose --out without +NAME=."
        )
    if selection.limit is None and selection.sample is None:
        selection = replace(selection, limit=SUPPORT)
    name, items = model_for(model, data), selection.load(data)
    fitted = fit_heads(name, items, prompts=asking.prompts(), reach=reach)
    fitted.write(out)
    _describe(fitted)
    note(
        "these figures come from the items that the mask was chosen on, so they are not evidence of a gain. A prior "
        "(`unswayed "
        "calibrate pride`) did better wherever both were measured (docs/evidence/heads.md): audit both."
    )
    masked = shlex.quote(f"{name}+heads={out}")
    write(f"\n{out}\nnext: unswayed audit DATA --model {masked} --methods all")


@with_options
def show(*, file: Annotated[Path, typer.Argument(help="File that `heads fit` wrote.")]) -> None:
    """Show the heads and neurons that a file scales."""
    _describe(HeadScales.read(file))


def _describe(scales: HeadScales) -> None:
    """Print what is scaled, and the figures of the items that were searched."""
    told = scales.record
    counts = ", ".join(plural(told.get(f"{name}s", 0), name) for name in ("item", "order", "mask"))
    write(f"{told['base']}: {told.get('how')}, {counts}")
    for part, values in (("head", scales.heads), ("neuron", scales.neurons)):
        for layer, row in enumerate(() if values is None else values):
            if changed := [f"{place} ({row[place]:g})" for place in (row != 1).nonzero()[0]]:
                named = ", ".join(changed[:10]) + (", ..." if changed[10:] else "")
                write(f"layer {layer}: {plural(len(changed), part)} of {len(row):,}: {named}")
    for name in ("imbalance", "variance_ratio"):
        before, after = told[name]
        write(f"{name.replace('_', ' '):15s} {before:.3f} -> {after:.3f}")
