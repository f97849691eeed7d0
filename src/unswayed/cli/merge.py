"""`unswayed merge`: the calls of all shards become one audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unswayed.auditing.shard_files import ShardFolder
from unswayed.cli.results import finish
from unswayed.sharded import merge_audit


def merge(
    *,
    directory: Annotated[Path, typer.Argument(help="Run directory of the shards.", metavar="DIR")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Merge although shards are missing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print metrics.json and nothing else.")
    ] = False,
) -> int:
    """Merge what commands with --shard asked; makes no call."""
    plan = ShardFolder(directory).plan()
    result = merge_audit(directory, plan, partial=partial)
    return finish(result, json=json, max_flip_rate=None)
