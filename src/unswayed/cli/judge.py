"""`unswayed judge`: streaming, one item in, one verdict out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import msgspec
import typer

from unswayed.auditing.opening import recorded_calls
from unswayed.auditing.shard_files import VERDICTS, ShardFolder
from unswayed.audits import RunArguments
from unswayed.backends import BackendSettings
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import UnswayedError, UsageError
from unswayed.base.registry import require
from unswayed.calls import Progress
from unswayed.calls.judge import Judge
from unswayed.calls.judging import JudgeFailure
from unswayed.cli.arrivals import arriving
from unswayed.cli.command import command_line, with_budget
from unswayed.cli.merge import ask_shards
from unswayed.cli.options import (
    Budget,
    Calls,
    DryRun,
    Model,
    ShardOption,
    ShardTasks,
    Shots,
    check_out,
    shard_of_options,
    with_options,
)
from unswayed.cli.output import aside, note, write_bytes
from unswayed.cli.results import show_price
from unswayed.cli.verdict_file import VerdictFile
from unswayed.methods import BASE, JUDGING, Method
from unswayed.methods.fitted_file import FittedFile, load_method
from unswayed.model.calls import REPLAYED
from unswayed.model.decisions import Verdict
from unswayed.model.items import Item, Shard, by_criterion, fingerprint
from unswayed.prompts import AskOptions, prompt_fingerprint
from unswayed.sharded import ShardAsked, plan_of
from unswayed.sources import DataOptions, examples_of, model_for
from unswayed.store import CallStore

Shadow = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Share of questions to ask again in all orders, to detect drift."
    ),
]


@with_options
def judge(
    *,
    data: Annotated[str, typer.Argument(help="Items, one per line; - for standard input.")],
    method: Annotated[
        str | None,
        typer.Option(help=f"Method, or the file that calibrate wrote [default: {JUDGING}]"),
    ] = None,
    model: Model = None,
    order: Annotated[
        Literal["given", "canonical"],
        typer.Option(help="With canonical: one call, candidates sorted by a hash of their text."),
    ] = "given",
    out: Annotated[
        Path | None, typer.Option(help="Verdicts file to write [default: standard output]")
    ] = None,
    shard: ShardOption = None,
    tasks: ShardTasks,
    shadow: Shadow = 0.0,
    asking: AskOptions,
    shots: Shots = None,
    selection: Annotated[DataOptions, "task", "on_bad_item", "data_dir", "columns"],
    reach: BackendSettings,
    budget: Budget = None,
    dry_run: DryRun = False,
    calls: Calls = None,
) -> int:
    """Judge items: one line in, one verdict out, in order.

    With --out, calls are recorded and the same command resumes.
    """
    part = shard_of_options(
        tasks.first(shard), data, out, shadow=shadow or None, calls=calls, dry_run=dry_run or None
    )
    run = JudgeArguments(
        data=data,
        model=model,
        method=method,
        order=order,
        asking=asking,
        selection=selection,
        reach=replace(reach, pricing_only=dry_run),
        directory=out or Path(),
        shots=shots,
        budget=budget,
    )
    if out is not None and out.suffix.lower() in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(
            f"{out}: verdicts are JSON Lines. Name a .jsonl file; pandas.read_json(FILE, lines=True) "
            "makes a table of it."
        )
    if part:
        return ask_shards(judge_shard, run, tasks, part)
    if out is not None:
        check_out(out, None if data == "-" else data, method)
    keeps = out is not None and (out.is_file() or not out.exists())  # no device, no pipe
    pool = calls or (out.with_name(f"{out.stem}.calls") if keeps and out is not None else None)
    held = recorded_calls(pool) if dry_run else pool
    arrived = arriving(data, selection)
    progress = None if out is None or dry_run else Progress()
    kept = held if isinstance(held, CallStore | Path) else None
    by = method_of(method, order)
    with run.judge(by, calls=kept, progress=progress, shadow=shadow) as judging:
        if dry_run:
            show_price(judging.price(chain.from_iterable(arrived)), json=False)
            return 0
        stream = _Stream(judging, str(model))
        try:
            stream.write(arrived, out, pool if keeps else None)
        except KeyboardInterrupt:
            if pool is not None:
                raise
            note("interrupted. No call was recorded: use --out or --calls to record them.")
            return 130
        finally:
            if progress is not None:
                progress.close()
            stream.summarise()
        for line in judging.drift_report():
            note(line)
        if stream.stopped is not None and judging.counts.budget_spent:
            told = replace(selection, on_bad_item="skip")
            again = iter(()) if data == "-" else arriving(data, told)
            needed = judging.budget_for(chain.from_iterable(again))
            note(f"to resume: {with_budget(command_line(), needed)}")
    return 3 if stream.failed else 0


def method_of(text: str | None, order: Literal["given", "canonical"]) -> str | Method | FittedFile:
    """Return the method that `--method` and `--order` name."""
    if order == "canonical":
        if text not in (None, BASE, order):
            raise UsageError(
                "--order canonical makes a single call and works only with --method direct, not "
                f"with {text}. Remove one of the two."
            )
        return order
    text = JUDGING if text is None else text
    if text.endswith(".json") or Path(text).is_file():
        return load_method(text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeArguments(RunArguments):
    """Arguments of a judge of data."""

    data: str
    model: str | None
    directory: Path
    method: str | None
    order: Literal["given", "canonical"]

    def judge(self, method: str | Method | FittedFile, **more: Any) -> Judge:
        """Return the judge of the run; `more` arguments are those of `Judge`."""
        return Judge(
            model_for(self.model, self.data),
            method=method,
            prompt=self.asking.prompts(examples_of(self.shots)),
            reask=self.asking.reask,
            budget=self.budget,
            backend=self.reach,
            **more,
        )


def judge_shard(run: JudgeArguments, shard: Shard) -> ShardAsked:
    """Judge the items of a shard, and write their calls and verdicts once all are judged; see `ask_shard`."""
    require("pyarrow", extra="parquet", feature="--shard")
    folder, method = ShardFolder(run.directory), method_of(run.method, run.order)
    path, named = folder.path(shard), str(method)
    if isinstance(method, FittedFile):
        named = f"sha256:{hashlib.sha256(msgspec.json.encode(method)).hexdigest()}"
    plan = plan_of(run, "judge", shard, method=named)
    if folder.is_done(shard, plan):
        return ShardAsked(path)
    own: list[Item] = []

    def kept() -> Iterator[Item]:
        for item in chain.from_iterable(arriving(run.data, run.selection)):
            own.extend([item] if shard.holds(item) else [])
            yield item

    whole = fingerprint(kept())
    progress = Progress()
    with (
        folder.open_local(shard) as store,
        run.judge(method, calls=store, progress=progress) as judging,
    ):
        prompt = prompt_fingerprint(judging.prompts)
        plan = plan.with_facts(judging.model, run.data, whole, prompt)
        folder.settle(plan)
        if path.exists():  # another process was faster
            return ShardAsked(path)
        stream, verdicts = _Stream(judging, str(run.model)), store.path.with_name(VERDICTS)
        try:
            stream.write(iter([own]), verdicts, verdicts.parent)
        finally:
            progress.close()
            stream.summarise()
        if not stream.failed:
            folder.write(shard, plan, store, verdicts)
            return ShardAsked(path, judging.counts)
        counts = replace(judging.counts, failed=stream.failed)
        needed = judging.budget_for(own) if counts.budget_spent else None
    left = f"{stream.failed:,} of {plural(len(own), 'item')} {agrees(stream.failed, 'has', 'have')} no verdict."
    return ShardAsked(path, counts, (left,), needed)


class _Plain:
    """Standard output, a device or a pipe: what was written is gone."""

    def __init__(self, device: IO[bytes] | None) -> None:
        self._device = device

    def check(self, items: Sequence[Item]) -> None:
        """Any items may come."""

    def write(self, line: bytes) -> bool:
        """Write at once; returns whether somebody reads it."""
        if self._device is None:
            return write_bytes(line)
        self._device.write(line)
        self._device.flush()
        return True

    def finish(self) -> None:
        """Nothing is left over."""


class _Stream:
    """Judges what has arrived, again and again, and counts what came of it.

    Attributes:
        failed: Items without a verdict.
        stopped: The failure after which nothing was asked any more.
    """

    def __init__(self, judge: Judge, model: str) -> None:
        self._judge = judge
        self._is_replay = model.startswith(REPLAYED)
        self._arrived = self._verdicts = self._ties = self._level = self.failed = 0
        self.stopped: JudgeFailure | None = None
        self._is_read = True

    def write(self, arrived: Iterator[list[Item]], out: Path | None, pool: Path | None) -> None:
        """Judge what arrives into a file that resumes if there is a pool, else a device or standard output."""
        if out is not None and pool is not None:
            with VerdictFile(out, self._judge, pool) as file:
                self.judge(arrived, file)
        else:
            with nullcontext() if out is None else out.open("wb") as device:
                self.judge(arrived, _Plain(device))

    def judge(self, arrived: Iterator[list[Item]], out: VerdictFile | _Plain) -> None:
        """Write the verdicts on items as they arrive."""
        encode = msgspec.json.Encoder().encode
        for lines in arrived:
            items = list(by_criterion(lines))
            out.check(items)
            self._arrived += len(items)
            for verdict in self._judge.verdicts(items):
                if isinstance(verdict, Verdict):
                    self._verdicts += 1
                    self._ties += verdict.choice == "tie"
                    ranking = verdict.ranking if isinstance(verdict.choice, int) else None
                    self._level += ranking is not None and len(ranking[0]) > 1
                    try:
                        self._is_read = out.write(encode(verdict) + b"\n")
                    except UnswayedError:  # nor are verdicts counted that the file refuses
                        self._is_read = False
                        raise
                    if not self._is_read:
                        return
                    continue
                self.failed += 1
                if verdict.fatal:
                    self.stopped = verdict
                    note(f"stopped at {verdict}")
                    return
                note(verdict)
        out.finish()

    def summarise(self) -> None:
        """Say what was judged and asked; nothing where nothing was, or where nobody reads."""
        counts, nulls = self._judge.counts, self._judge.null_reasons
        if not (self._verdicts or self.failed) or not self._is_read:
            return
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(nulls.items()))
        noun, verb = ("recorded answer", "read") if self._is_replay else ("call", "made")
        aside(
            f"{self._verdicts:,} of {plural(self._arrived, 'item')} "
            f"{agrees(self._verdicts, 'was', 'were')} judged: {plural(self._ties, 'tie')}, "
            f"{nulls.total():,} without a verdict{f' ({why})' if why else ''}\n"
            f"{plural(counts.made, noun)} {verb}, {counts.cached:,} reused, "
            f"{counts.failed:,} failed; ${counts.cost_usd:,.4f}"
        )
        if self._level:
            have = agrees(self._level, "has", "have")
            aside(
                f"{plural(self._level, 'verdict')} {have} equal scores, so a hash of id and text decides"
            )
        if counts.left_out:
            aside(
                f"{plural(counts.left_out, 'recorded second reply', 'recorded second replies')} ignored (--no-reask)"
            )
