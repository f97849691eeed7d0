"""`unswayed train merge`: a trained adapter as a whole model, and its upload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unswayed.base.errors import UsageError
from unswayed.cli.options import with_options
from unswayed.cli.output import write


@with_options
def merge(
    *,
    result: Annotated[Path, typer.Argument(help="Folder that `unswayed train` wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="New folder for the adapter merged into its base.")
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option("--push", help="Upload the (merged) model to this private hub id."),
    ] = None,
) -> None:
    """Merge a trained adapter into its base, or upload a result.

    The merged model has the precision of the base, and keeps prompt, card and record of the training.
    """
    from unswayed.training.merging import merge as merge_adapter
    from unswayed.training.merging import push

    if out is None and repository is None:
        raise UsageError("nothing to do. Add --out DIR to merge, or --push ID to upload.")
    if out is not None:
        gap = merge_adapter(result, out)
        write(f"label log-probabilities agree within {gap:.1g}\n\nhf/{out}")
    if repository is not None:
        write(push(out or result, repository))
