"""`unswayed judge`: streaming, one item in, one verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Literal

import msgspec
import typer

from unswayed.auditing.opening import recorded_calls
from unswayed.backends import BackendSettings
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import ItemError, UnswayedError, UsageError
from unswayed.calls import Progress
from unswayed.calls.judge import Judge
from unswayed.calls.judging import JudgeFailure
from unswayed.cli.command import command_line, with_budget
from unswayed.cli.options import Budget, Calls, DryRun, Model, Shots, check_out, with_options
from unswayed.cli.output import aside, note, write_bytes
from unswayed.cli.results import show_price
from unswayed.cli.verdict_file import VerdictFile
from unswayed.data.benchmarks import is_benchmark
from unswayed.methods import BASE, JUDGING, Method
from unswayed.methods.fitted_file import FittedFile, load_method
from unswayed.model.decisions import Verdict
from unswayed.model.items import (
    Item,
    by_criterion,
    decode_item,
    is_foreign,
    is_parquet,
    is_table,
    open_text,
)
from unswayed.prompts import AskOptions
from unswayed.sources import DataOptions, examples_of, model_for
from unswayed.store import CallStore
from unswayed.tiny import is_built_in

CHUNK = 1 << 16
"""Most bytes taken at once; a pipe gives what has arrived, however little."""
Shadow = Annotated[
    float,
    typer.Option(min=0, max=1, help="Share of questions to ask again in all orders, for drift."),
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
    if out is not None:
        check_out(out, None if data == "-" else data, method)
    keeps = out is not None and (out.is_file() or not out.exists())  # no device, no pipe
    pool = calls or (out.with_name(f"{out.stem}.calls") if keeps and out is not None else None)
    held = recorded_calls(pool) if dry_run else pool
    arrived = _items(data, selection)
    progress = None if out is None or dry_run else Progress()
    with Judge(
        model_for(model, data),
        method=method_of(method, order),
        prompt=asking.prompts(examples_of(shots)),
        reask=asking.reask,
        budget=budget,
        calls=held if isinstance(held, CallStore | Path) else None,
        shadow=shadow,
        backend=replace(reach, pricing_only=dry_run),
        progress=progress,
    ) as judging:
        if dry_run:
            show_price(judging.price(item for items in arrived for item in items), json=False)
            return 0
        stream = _Stream(judging)
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
            again: Iterator[list[Item]] = iter(())
            if data != "-":
                again = _items(data, replace(selection, on_bad_item="skip"))
            needed = judging.budget_for(item for items in again for item in items)
            note(f"to go on: {with_budget(command_line(), needed)}")
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
    text = text or JUDGING
    if text.endswith(".json") or Path(text).is_file():
        return load_method(text)
    return text


def _items(data: str, selection: DataOptions) -> Iterator[list[Item]]:
    """Items in lists of those that have arrived."""
    whole = is_built_in(data) or is_benchmark(data)
    whole = whole or is_table(data) or is_parquet(data) or selection.columns is not None
    whole = whole or data.lower().removesuffix(".gz").endswith(".json")
    arrived = iter(()) if whole else _lines(data)
    first = next(arrived, [])
    if whole or any(is_foreign(line) for _, line in first[:1]):
        rest = chain(first, chain.from_iterable(arrived))
        loaded = selection.load(data) if whole else selection.load_lines(rest, data)
        for bad in loaded.bad_lines:
            note(f"{bad} (left out)")
        yield list(loaded)
        return
    some, task = False, selection.task
    for lines in chain([first], arrived):
        items = []
        for number, line in lines:
            try:
                items.append(decode_item(line))
            except ItemError as error:
                if selection.on_bad_item == "stop":
                    yield [item for item in items if task in (None, item.task)]
                    raise ItemError(
                        f"{data}:{number}: {error}. Fix the line, or skip invalid lines with "
                        "--on-bad-item skip."
                    ) from None
                note(f"{data}:{number}: {error} (left out)")
        some = some or bool(items)
        yield [item for item in items if task in (None, item.task)]
    if not some and data != "-":  # a stream may well be empty
        raise ItemError(f"{data}: no items.")


def _lines(data: str) -> Iterator[list[tuple[int, bytes]]]:
    """Yield lists of non-empty lines with their numbers, as soon as they arrive."""
    parts: list[bytes] = []  # of a line that is still to end
    number = 0
    with open_text(data) as file:
        while True:
            chunk: bytes = file.read1(CHUNK)  # type: ignore[attr-defined]  # BufferedReader has it
            parts.append(chunk)
            if chunk and b"\n" not in chunk:
                continue
            whole = b"".join(parts).split(b"\n")
            parts = [whole.pop()] if chunk else []
            lines = []
            for line in whole:
                number += 1
                plain = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if plain.strip():
                    lines.append((number, plain))
            if lines:
                yield lines
            if not chunk:
                return


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

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._arrived = self._verdicts = self._ties = self.failed = 0
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
        aside(
            f"{self._verdicts:,} of {plural(self._arrived, 'item')} "
            f"{agrees(self._verdicts, 'has', 'have')} a verdict: {plural(self._ties, 'tie')}, "
            f"{nulls.total():,} null{f' ({why})' if why else ''}\n"
            f"{plural(counts.made, 'call')} made, {counts.cached:,} reused, "
            f"{counts.failed:,} failed; ${counts.cost_usd:,.4f}"
        )
        if counts.left_out:
            aside(
                f"{plural(counts.left_out, 'recorded second reply', 'recorded second replies')} ignored (--no-reask)"
            )
