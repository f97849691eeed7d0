"""`unswayed merge`: the calls of all shards become one audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from unswayed.auditing.shard_files import ShardFolder
from unswayed.base.counts import plural
from unswayed.cli.options import ShardTasks
from unswayed.cli.output import aside, note
from unswayed.cli.results import finish, tell_shard
from unswayed.integrations.ray import on_ray
from unswayed.model.items import Shard
from unswayed.sharded import ShardAsked, merge_audit


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


def ask_and_merge(
    ask: Callable[[Shard], ShardAsked],
    tasks: ShardTasks,
    directory: Path,
    *,
    model: str | None,
    budget: float | None,
    json: bool = False,
) -> int:
    """Ask all shards as tasks, each with its `budget`, then merge them; returns the exit code."""
    if budget is not None:
        note(f"each shard may spend ${budget:g}.")
    count, local = tasks.shards or 1, (model or "").startswith(("hf/", "vllm/"))
    gpus = tasks.gpus_per_shard if local or tasks.gpus_per_shard else 0
    incomplete = []
    for number, asked in enumerate(on_ray(ask, count, directory, gpus=gpus), 1):
        aside(f"{number:,} of {plural(count, 'shard')}")
        incomplete += [asked] if asked.exit_code else []
    if not incomplete:
        return merge(directory=directory, json=json)
    note(f"{len(incomplete):,} of {plural(count, 'shard')} are incomplete. One of them:")
    return tell_shard(incomplete[0])
