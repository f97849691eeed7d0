"""Files of shards: the plan that all follow, the calls of each, and all calls gathered in one store."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from unswayed.auditing.run_directory import json_text, prepare_directory, read_as, write_text
from unswayed.base.arguments import Settings, options_of
from unswayed.base.counts import agrees, plural
from unswayed.base.errors import RunDirectoryError, StoreError, UsageError
from unswayed.base.files import whole_file
from unswayed.base.registry import require
from unswayed.base.version import VERSION
from unswayed.calls import CallPlan, RunCounts
from unswayed.calls.questions import logprobs_note
from unswayed.model.items import Item, ItemSet, Shard, batches_of, open_parquet, shard_of
from unswayed.store import CALL, CallStore, Totals, is_whole

FOLDER: Final = "shards"
PLAN_FILE: Final = "plan.json"
VERDICTS: Final = "verdicts.jsonl"
HEAD: Final = b"unswayed"
"""Key of a file's head in the metadata of Parquet."""
AT_ONCE: Final = 5_000
EXAMPLES: Final = 5
MERGING: Final = "Merging shards"


class ShardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`plan.json`: everything that the shards of one run have in common."""

    kind: Literal["audit", "judge"]
    shards: int
    asked: Mapping[str, Any]  # options as they were given; defaults are left out
    # of the first shard; others may differ
    reach: Mapping[str, Any] = {}  # options of the connection or device
    command: str = ""  # without --shard and keys
    version: str = VERSION
    # what the options led to; empty until the model is open
    model: str = ""  # with revision
    data: str = ""  # name
    fingerprint: str = ""  # of the data
    prompt: str = ""  # fingerprint
    method: str = ""  # of `judge`: its name, or the sum of a fitted file

    @property
    def common(self) -> dict[str, Any]:
        """Everything that no shard may differ in, options by the names that are typed."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in ("asked", "reach", "command"):
            del fields[name]
        typed = {f"--{name.replace('_', '-')}": value for name, value in self.asked.items()}
        return fields | typed

    def with_facts(self, model: str, data: str, fingerprint: str, prompt: str) -> ShardPlan:
        """Return the plan with the results of its options in this process."""
        return msgspec.structs.replace(
            self, version=VERSION, model=model, data=data, fingerprint=fingerprint, prompt=prompt
        )

    @property
    def digest(self) -> str:
        """Sum of the fields in common, which each shard's file carries."""
        return hashlib.sha256(msgspec.json.encode(self.common, order="deterministic")).hexdigest()


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Head of a shard's file."""

    plan: str  # digest
    shard: Shard
    logprobs: str  # whether calls ask for log-probabilities, as the store notes it
    paid: Totals
    unknown_usage: int
    id: str  # of this very file
    verdicts: str | None = None  # sum of the file of verdicts beside it


@dataclass(frozen=True)
class ShardFolder:
    """The files of the shards of a run directory."""

    directory: Path

    @property
    def plan_file(self) -> Path:
        """Path of the plan."""
        return self.directory / FOLDER / PLAN_FILE

    def path(self, shard: Shard, suffix: str = "parquet") -> Path:
        """Return the path of a shard's file; the shard is done if it exists."""
        return self.directory / FOLDER / f"{shard.name}.{suffix}"

    def local(self, shard: Shard) -> Path:
        """Return the folder of a shard's calls on this machine; the journal of SQLite needs a local disk."""
        path = str(self.path(shard).absolute()).encode("utf-8", "surrogateescape")
        digest = hashlib.blake2b(path, digest_size=8).hexdigest()
        return Path(tempfile.gettempdir()) / f"unswayed-{digest}"

    def open_local(self, shard: Shard) -> CallStore:
        """Open the calls of a shard on this machine, in a folder that other users cannot read."""
        local = self.local(shard)
        local.mkdir(mode=0o700, parents=True, exist_ok=True)
        return CallStore.open(local)

    def plan(self) -> ShardPlan:
        """Read the plan."""
        if not self.plan_file.exists():
            raise RunDirectoryError(
                f"{self.directory} holds no shards ({FOLDER}/{PLAN_FILE} is missing). Give the "
                "--out of the commands with --shard."
            )
        remedy = "Remove it and run the command of any shard again."
        return read_as(self.plan_file, ShardPlan, remedy=remedy)

    def is_done(self, shard: Shard, plan: ShardPlan) -> bool:
        """Return True if the shard's file is there, of this plan; a plan that was lost is settled again."""
        if not (self.path(shard).exists() and self.plan_file.exists()):
            return False
        self.check(plan)
        return True

    def settle(self, plan: ShardPlan) -> None:
        """Write the plan, or check that earlier shards follow the same one."""
        prepare_directory(self.plan_file.parent)
        if not self.plan_file.exists():
            write_text(self.plan_file, json_text(msgspec.to_builtins(plan)))
        self.check(plan)

    def check(self, plan: ShardPlan) -> None:
        """Check the known part of a plan against the plan of earlier shards."""

        def shown(settings: Mapping[str, Any], name: str) -> str:
            return "not set" if settings.get(name) is None else repr(settings[name])

        before, now = self.plan().common, plan.common
        differ = [
            f"{name} is {shown(before, name)} there and {shown(now, name)} here"
            for name in sorted(before.keys() | now.keys())
            if before.get(name) != now.get(name) and now.get(name) != ""
        ]
        if differ:
            raise RunDirectoryError(
                f"{self.plan_file} is of other shards: {'; '.join(differ)}. Use the command of the "
                "first shard, or choose another --out."
            )

    def write(
        self, shard: Shard, plan: ShardPlan, store: CallStore, verdicts: Path | None = None
    ) -> None:
        """Write the calls of a shard as one file, whole or not at all, and remove the local ones.

        A file of `verdicts` is copied before, beside it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        lines = None if verdicts is None else verdicts.read_bytes()
        head = Head(
            plan=plan.digest,
            shard=shard,
            logprobs=store.noted(logprobs_note(plan.model)) or "",
            paid=store.totals(),
            unknown_usage=sum(not call.response.usage_known for call in store.calls()),
            id=secrets.token_hex(8),
            verdicts=None if lines is None else hashlib.sha256(lines).hexdigest(),
        )
        kinds = (pa.binary(), pa.float64(), pa.binary(), pa.binary(), pa.bool_())
        schema = pa.schema(zip(CALL, kinds, strict=True), {HEAD: msgspec.json.encode(head)})
        path, local = self.path(shard), self.local(shard)
        try:
            if lines is not None:
                with whole_file(self.path(shard, "jsonl")) as beside:
                    beside.write(lines)
            with (
                whole_file(path) as file,
                pq.ParquetWriter(file, schema, compression="zstd") as out,
            ):
                for rows in store.encoded(AT_ONCE):
                    *columns, truncated = zip(*rows, strict=True)
                    cells = (*columns, map(bool, truncated))
                    arrays = [pa.array(own, kind) for own, kind in zip(cells, kinds, strict=True)]
                    out.write_table(pa.table(arrays, schema=schema))
        except OSError as error:
            raise RunDirectoryError.cannot(
                f"write {path}",
                error,
                f"The calls are kept in {local}. Free some space and run the same command again.",
            ) from None
        shutil.rmtree(local, ignore_errors=True)

    def gather(self, plan: ShardPlan, *, partial: bool) -> Gathered:
        """Put the calls of all shards into the store of the run directory; a file adds them once.

        Raises:
            RunDirectoryError: If shards are missing and not `partial`, if a file is damaged or of other
                shards, or if shards asked for log-probabilities differently; nothing is written then.
        """
        require("pyarrow", extra="parquet", feature=MERGING)
        import pyarrow

        shards = [Shard(number, plan.shards) for number in range(plan.shards)]
        there = [shard for shard in shards if self.path(shard).exists()]
        missing = tuple(sorted({*shards} - {*there}))
        if missing and not (partial and there):
            raise RunDirectoryError(f"{count_missing(missing)}. Run their commands.")
        heads = {shard: self._head(shard, plan) for shard in there}
        with CallStore.open(self.directory) as store:
            if store.model not in (None, plan.model):
                raise RunDirectoryError(
                    f"{self.directory} holds calls of model {store.model!r}, not {plan.model!r}. "
                    "Move calls.sqlite aside."
                )
            note = logprobs_note(plan.model)
            ways = {head.logprobs: self.path(shard) for shard, head in heads.items()}
            ways |= {store.noted(note) or "": store.path, "": store.path}
            ways.pop("")  # nothing was asked
            if len(ways) > 1:
                said = "; ".join(f"{path}: {way}" for way, path in sorted(ways.items()))
                raise RunDirectoryError(
                    f"shards differ in whether log-probabilities were asked for ({said}). Remove the "
                    "files of one kind and run their commands again."
                )
            for way in ways:
                store.note(note, way)
            store.note("model", plan.model)
            for shard, head in heads.items():
                name = f"shard {shard.name}"
                if store.noted(name) != head.id:
                    store.adopt(_rows(self.path(shard)), head.paid, (name, head.id))
        pyarrow.default_memory_pool().release_unused()  # the audit needs the memory
        paid = zip(*(head.paid for head in heads.values()), strict=True)
        unknown = sum(head.unknown_usage for head in heads.values())
        return Gathered(self, plan, Totals(*map(sum, paid)), unknown, missing)

    def _head(self, shard: Shard, plan: ShardPlan) -> Head:
        """Return the head of a shard's file, once the whole file was read and checked."""
        path = self.path(shard)
        again = f"Remove {path.name} and run the command of shard {shard} again."
        try:
            with open_parquet(path, feature=MERGING) as table:
                head = msgspec.json.decode((table.schema_arrow.metadata or {})[HEAD], type=Head)
            whole = all(
                is_whole(request, key) and is_whole(response, key)
                for rows in _rows(path)
                for key, _, request, response, _ in rows
            )
            lines = self.path(shard, "jsonl").read_bytes() if head.verdicts else b""
        except OSError as error:
            raise RunDirectoryError.cannot(f"read {error.filename}", error, f"{again}") from None
        except (KeyError, msgspec.MsgspecError):
            raise RunDirectoryError(f"{path} is not the file of a shard. {again}") from None
        except UsageError as error:
            raise RunDirectoryError(f"{error} {again}") from None
        if not whole:
            raise RunDirectoryError(f"{path} is damaged: a call is not as written. {again}")
        if head.verdicts and hashlib.sha256(lines).hexdigest() != head.verdicts:
            raise RunDirectoryError(
                f"{self.path(shard, 'jsonl')} has changed since the shard wrote it. {again}"
            )
        if (head.plan, head.shard) != (plan.digest, shard):
            raise RunDirectoryError(f"{path} is of another run or another shard. {again}")
        return head


class Gathered(NamedTuple):
    """Calls of shards in the store of their run directory."""

    folder: ShardFolder
    plan: ShardPlan
    paid: Totals
    unknown_usage: int
    missing: tuple[Shard, ...]  # without a file

    def check(self, model: str, items: ItemSet, prompt: str, priced: CallPlan) -> None:
        """Check that the shards made every call that is measured."""
        self.folder.check(self.plan.with_facts(model, items.name, items.fingerprint, prompt))
        if priced.n_to_make and not self.missing:
            are = agrees(priced.n_to_make, "is", "are")
            raise StoreError(
                f"{priced.n_to_make:,} of {plural(priced.n_distinct, 'call')} {are} in no file of "
                f"{self.folder.plan_file.parent}. Remove the files and run their commands again."
            )

    def paid_for(self, counts: RunCounts) -> RunCounts:
        """Return counts with the recorded calls as made, at the cost that the shards have paid."""
        return replace(
            counts,
            made=counts.cached,
            cached=0,
            input_tokens=self.paid.input_tokens,
            output_tokens=self.paid.output_tokens,
            cost_usd=self.paid.cost_usd,
            unknown_usage=self.unknown_usage,
        )

    def lacking(self, items: Sequence[Item]) -> Iterator[str]:
        """Yield a sentence on the items of missing shards, if there are any."""
        if self.missing:
            numbers, total = {shard.number for shard in self.missing}, self.plan.shards
            n = sum(shard_of(item.asked_as, total) in numbers for item in items)
            have = agrees(n, "has", "have")
            yield f"{count_missing(self.missing)}: {n:,} of {plural(len(items), 'item')} {have} no answer."


def count_missing(missing: Sequence[Shard]) -> str:
    """Return the words that count missing shards."""
    some = ", ".join(str(shard.number) for shard in missing[:EXAMPLES])
    return (
        f"{len(missing):,} of {plural(missing[0].total, 'shard')} "
        f"{agrees(len(missing), 'is', 'are')} missing ({some}{', …' if missing[EXAMPLES:] else ''})"
    )


def _rows(path: Path) -> Iterator[list[tuple[bytes, float, bytes, bytes, int]]]:
    """Yield the calls of a file, in lists."""
    with open_parquet(path, feature=MERGING) as table:
        for batch in batches_of(table, path):
            yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def given(*settings: Settings) -> dict[str, Any]:
    """Return the options that were given in settings, as JSON has them; defaults are left out."""
    values = {
        option.name: getattr(own, option.name)
        for own in settings
        for option in options_of(type(own))
        if getattr(own, option.name) != option.default
    }
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values, enc_hook=str))
    return told
