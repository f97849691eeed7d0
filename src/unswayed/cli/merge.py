"""`unswayed merge`: the calls of all shards become one audit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Final, TypeVar

import msgspec
import typer

from unswayed.auditing.shard_files import VERDICTS, ShardFolder, ShardPlan, count_missing
from unswayed.audits import RunArguments
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.base.files import whole_file
from unswayed.cli.arrivals import arriving
from unswayed.cli.command import command_line, without_shard
from unswayed.cli.options import ShardTasks
from unswayed.cli.output import aside, note, write
from unswayed.cli.results import finish, tell_shard
from unswayed.integrations.ray import on_ray
from unswayed.model.decisions import Verdict
from unswayed.model.items import Item, Shard, by_criterion, fingerprint, shard_of
from unswayed.sharded import ShardAsked, merge_audit
from unswayed.sources import DataOptions

R = TypeVar("R", bound=RunArguments)

READ_BYTES: Final = 1 << 15


def merge(
    *,
    directory: Annotated[Path, typer.Argument(help="Run directory of the shards.", metavar="DIR")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Merge even if shards are missing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print metrics.json and nothing else.")
    ] = False,
) -> int:
    """Merge the shards that commands with --shard wrote, without a call."""
    plan = ShardFolder(directory).plan()
    if plan.kind == "judge":
        if json:
            raise UsageError(
                f"{directory} holds verdicts, and --json prints figures. Leave out --json."
            )
        _merge_verdicts(ShardFolder(directory), plan, is_partial=partial)
        return 0
    result = merge_audit(directory, plan, partial=partial)
    return finish(result, json=json, max_flip_rate=None)


class _Verdicts:
    """Verdicts of a shard, a few lines in memory, so that very many shards can be read side by side."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        self._lines: deque[bytes] = deque()

    def next(self) -> bytes:
        """Return the next line; empty at the end."""
        if not self._lines:
            with self._path.open("rb") as file:
                file.seek(self._place)
                self._lines.extend(file.readlines(READ_BYTES))
                self._place = file.tell()
        return self._lines.popleft() if self._lines else b""


def _merge_verdicts(folder: ShardFolder, plan: ShardPlan, *, is_partial: bool) -> None:
    """Write the verdicts of all shards in the order of the data."""
    gathered = folder.gather(plan, partial=is_partial)
    n_written, n_lost = 0, 0
    shards = [Shard(number, plan.shards) for number in range(plan.shards)]
    lines = {s: _Verdicts(folder.path(s, "jsonl")) for s in shards if s not in gathered.missing}
    path, selection = folder.directory / VERDICTS, DataOptions.of(plan.asked)

    def copied(file: IO[bytes]) -> Iterator[Item]:
        nonlocal n_written, n_lost
        for item in chain.from_iterable(arriving(plan.asked["data"], selection)):
            shard = shards[shard_of(item.asked_as, plan.shards)]
            for part in by_criterion([item]):
                if shard in gathered.missing:
                    n_lost += 1
                    continue
                line = lines[shard].next()
                if not line or msgspec.json.decode(line, type=Verdict).item_id != part.id:
                    raise RunDirectoryError(
                        f"{folder.path(shard, 'jsonl')} has no verdict on {part.id} in its place: the "
                        "data have changed. Restore the data of the shards."
                    )
                file.write(line)
                n_written += 1
            yield item

    try:
        with whole_file(path) as file:
            whole = fingerprint(copied(file))
            folder.check(plan.with_facts(plan.model, plan.data, whole, plan.prompt))
    except OSError as error:
        raise RunDirectoryError.cannot(
            f"write {path}", error, "Make it writable or free some space."
        ) from None
    if gathered.missing:
        note(f"{count_missing(gathered.missing)}: {plural(n_lost, 'verdict')} left out.")
    write(f"{path}: {plural(n_written, 'verdict')}")


def ask_shards(
    ask: Callable[[R, Shard], ShardAsked],
    run: R,
    tasks: ShardTasks,
    shard: Shard,
    *,
    json: bool = False,
) -> int:
    """Ask one shard, or all of them as tasks and merge them; returns the exit code."""
    run, directory = replace(run, command=without_shard(command_line())), run.directory
    assert directory is not None
    if tasks.shards is None:
        return tell_shard(ask(run, shard))
    if run.budget is not None:
        run = replace(run, budget=run.budget / tasks.shards)
        note(f"each shard may spend ${run.budget:g}.")
    count, local = tasks.shards, str(run.model).startswith(("hf/", "vllm/"))
    gpus = tasks.gpus_per_shard if local or tasks.gpus_per_shard else 0
    incomplete = []
    for number, asked in enumerate(on_ray(partial(ask, run), count, directory, gpus=gpus), 1):
        aside(f"{number:,} of {plural(count, 'shard')}")
        incomplete += [asked] if asked.exit_code else []
    if not incomplete:
        return merge(directory=directory, json=json)
    note(
        f"{len(incomplete):,} of {plural(count, 'shard')} {agrees(len(incomplete), 'is', 'are')} incomplete. One "
        f"of them:"
    )
    worst = max(incomplete, key=lambda asked: asked.needed_usd or 0)
    return tell_shard(worst._replace(needed_usd=worst.needed_usd and worst.needed_usd * count))
