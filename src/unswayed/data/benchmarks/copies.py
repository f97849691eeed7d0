"""The files of a benchmark: fetched from where it is published or found in a folder, and read.

Hugging Face keeps its own cache and takes `HF_TOKEN` from the environment; files of GitHub are kept
beside it. Only data files are read (Parquet, JSON, CSV): no code of a data set ever runs.
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec

from unswayed.base.errors import ItemError, UsageError, first_line
from unswayed.base.files import whole_file
from unswayed.base.redaction import without_keys
from unswayed.base.registry import require
from unswayed.data.benchmarks.benchmark import Benchmark
from unswayed.data.importers.protocol import Record
from unswayed.data.importers.reading import records_of, whole
from unswayed.model.items import (
    BadFieldError,
    batches_of,
    is_parquet,
    is_table,
    open_parquet,
    read_table,
)

SUFFIXES: Final = (".parquet", ".jsonl", ".json", ".csv")
"""In which a local copy may be; each but the first also as `.gz`."""
TIMEOUT_S: Final = 60.0
LONGEST_S: Final = 3600.0
"""Seconds for all files of a part."""
LARGEST: Final = 1_000_000_000
"""Most bytes of a downloaded file."""
RAW: Final = "https://raw.githubusercontent.com"
_APART: Final = """
import pickle, sys
sys.path, most = pickle.load(sys.stdin.buffer)
fault_of, sys.stdout, out = pickle.load(sys.stdin.buffer), sys.stderr, sys.stdout
try:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
except (ImportError, ValueError):  # none on this system, or a lower one
    pass
out.buffer.write(fault_of().encode())
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """The files of a benchmark on this machine."""

    files: Mapping[str, tuple[Path, ...]]  # by part
    commit: str | None  # the commit that was fetched, or None if it is not told
    place: str | None  # the folder of a local copy as it was given, or None if it was fetched


def files_of(
    name: str, benchmark: Benchmark[Any], parts: Sequence[str], data_dir: str | Path | None
) -> Copy:
    """Fetch the files of some parts, or find them in a folder."""
    wanted = {part: benchmark.files[part] for part in parts}
    if data_dir is not None:
        folder = Path(data_dir)
        if not folder.is_dir():
            raise UsageError(f"--data-dir {data_dir} is not a folder. Name the data set's folder.")
        own = {part: _local(folder, patterns) for part, patterns in wanted.items()}
        there = [f"{name}:{part}" for part, files in own.items() if files]
        for part, files in own.items():
            if not files:
                alone = f"; or take a part that is there: {' or '.join(there)}" if there else ""
                raise UsageError(
                    f"{name}: {data_dir} has no file {wanted[part][0]}, neither in itself nor up to two folders "
                    f"below, nor under its bare name, also as {', '.join(SUFFIXES[1:])} or .gz. Put the files of "
                    f"{_at(benchmark)} ({benchmark.address}) there, under the same names{alone}."
                )
        if len(set(own.values())) < len(own):
            raise UsageError(
                f"{name}: {data_dir} has one file, {next(iter(own.values()))[0].name}, for several parts. "
                f"Put the parts into the folders of {benchmark.address}, or name the part: {there[0]}, …"
            )
        return Copy(own, None, str(data_dir))
    paths = {part: patterns[0] for part, patterns in wanted.items()}
    if benchmark.hub == "github":
        kept = {part: (_github(name, benchmark, path),) for part, path in paths.items()}
        return Copy(kept, benchmark.revision if benchmark.is_pinned else None, None)
    folder = _snapshot(name, benchmark, tuple(paths.values()))
    fetched = {part: tuple(sorted(folder.glob(path))) for part, path in paths.items()}
    for part, files in fetched.items():
        if not files:
            raise UsageError(
                f"{name}: {_at(benchmark)} has no file {paths[part]}: the data set was moved or "
                f"changed; {_copy(paths.values())}"
            )
    return Copy(fetched, folder.name, None)


def _at(benchmark: Benchmark[Any]) -> str:
    return f"{benchmark.repository} at revision {benchmark.revision}"


def _copy(paths: Iterable[str]) -> str:
    return f"give a copy of {', '.join(paths)} with --data-dir FOLDER."


def _local(folder: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of a part: under their path or their bare name, or under their path in a folder below."""
    for below in ("", "*/", "*/*/"):
        for path, form in product(map(Path, patterns), ("", *SUFFIXES)):
            for own in (path,) if below else (path, Path(path.name)):
                name = str(own.with_suffix(form) if form else own)
                for written in (name, f"{name}.gz"):
                    if files := tuple(sorted(folder.glob(below + written))):
                        first, *others = sorted({f.parents[written.count("/")] for f in files})
                        if others:
                            raise UsageError(
                                f"--data-dir: {written} is in {first} and in {others[0]}. Give one of these folders."
                            )
                        return files
    return ()


def _snapshot(name: str, benchmark: Benchmark[Any], patterns: Sequence[str]) -> Path:
    """Return the folder of the hub's cache with these files; it is called after the commit.

    What is pinned and cached is taken without asking the hub.
    """
    require("huggingface_hub", extra="benchmarks", feature=name)
    from huggingface_hub import errors, snapshot_download

    fetch = partial(
        snapshot_download,
        benchmark.repository,
        repo_type="dataset",
        revision=benchmark.revision,
        allow_patterns=list(patterns),
    )
    if benchmark.is_pinned:
        with suppress(errors.LocalEntryNotFoundError):
            folder = Path(fetch(local_files_only=True))
            if all(any(folder.glob(pattern)) for pattern in patterns):
                return folder
    fault = _apart(fetch)
    if not fault:
        with suppress(errors.LocalEntryNotFoundError):
            return Path(fetch(local_files_only=True))
        fault = "it has none of the files"
    if fault.startswith("GatedRepoError"):
        raise UsageError(
            f"{name}: {_at(benchmark)} requires permission. Request access at {benchmark.address} "
            f"and set HF_TOKEN to your token, or {_copy(patterns)}"
        )
    if fault.startswith(("RepositoryNotFoundError", "RevisionNotFoundError")):
        raise UsageError(f"{name}: the hub has no {_at(benchmark)} ({fault}); {_copy(patterns)}")
    raise _unreachable(name, benchmark, patterns, fault)


def _unreachable(
    name: str, benchmark: Benchmark[Any], paths: Sequence[str], fault: str
) -> UsageError:
    return UsageError(
        f"{name}: {_at(benchmark)} is not cached and cannot be fetched from {benchmark.address} "
        f"({fault}). Connect, or {_copy(paths)}"
    )


def _apart(fetch: Callable[[], object]) -> str:
    """Run a download in its own process, limited to `LARGEST` bytes per file and `LONGEST_S` seconds.

    Returns:
        The fault, as text; empty if the download succeeded.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _APART],
            input=pickle.dumps((sys.path, LARGEST)) + pickle.dumps(partial(_fault, fetch)),
            stdout=subprocess.PIPE,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the download takes longer than {LONGEST_S / 60:g} minutes"
    return done.stdout.decode() if done.returncode == 0 else f"exit code {done.returncode}"


def _fault(fetch: Callable[[], object]) -> str:
    """Run a download and return its fault, as text; empty if it succeeded."""
    try:
        fetch()
    except Exception as error:  # whatever the hub's transport raises, offline among it
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            return f"a file is larger than {LARGEST / 1e9:g} GB"
        return f"{type(error).__name__}: {without_keys(first_line(error))}"
    return ""


def _save(address: str, file: Path) -> None:
    with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer, whole_file(file) as kept:
        shutil.copyfileobj(answer, kept)


def _github(name: str, benchmark: Benchmark[Any], path: str) -> Path:
    """One file of a repository: a pinned one is fetched once, another each time it can be."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unswayed"
    kept = base / "benchmarks" / benchmark.repository / benchmark.revision / path
    if benchmark.is_pinned and kept.is_file():
        return kept
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError.cannot(
            f"write {kept}", error, "Set XDG_CACHE_HOME to another folder."
        ) from None
    fault = _apart(
        partial(_save, f"{RAW}/{benchmark.repository}/{benchmark.revision}/{path}", kept)
    )
    if fault.startswith("HTTPError"):
        raise UsageError(
            f"{name}: {_at(benchmark)} has no file {path} ({fault}): it was moved or changed; "
            f"{_copy([path])}"
        )
    if fault and not kept.is_file():  # of a revision that moves the newest that could be had
        raise _unreachable(name, benchmark, [path], fault)
    return kept


def rows_of(name: str, benchmark: Benchmark[Any], file: Path) -> Iterator[Record | BadFieldError]:
    """Yield the rows of a file, its columns checked before the first."""
    republished = benchmark.republished or (lambda row: row)
    if is_parquet(file):
        feature = f"{name}, a Parquet file,"
        with open_parquet(file, extra="benchmarks", feature=feature) as table:
            there = table.schema_arrow.names
            _check(name, benchmark, file, there)
            fields = msgspec.structs.fields(benchmark.schema)
            columns = [field.encode_name for field in fields if field.encode_name in there]
            for batch in batches_of(table, file, columns):
                yield from map(republished, batch.to_pylist())
        return
    given = benchmark.header if is_table(file) else ()
    records: Iterable[tuple[object, Record | BadFieldError]] = (
        read_table(file, given) if given else map(whole, records_of(str(file)))
    )
    for number, (_, record) in enumerate(records):
        row = record if isinstance(record, BadFieldError) else republished(record)
        if number == 0 and not isinstance(row, BadFieldError):
            _check(name, benchmark, file, list(row))
        yield row


def _check(name: str, benchmark: Benchmark[Any], file: Path, there: Sequence[str]) -> None:
    """Refuse a file that lacks a field which every row needs."""
    for field in msgspec.structs.fields(benchmark.schema):
        if field.required and field.encode_name not in there:
            raise ItemError(
                f"{name}: {_at(benchmark)} has no field {field.encode_name!r} in {file.name}, which has "
                f"{', '.join(there) or 'none'}. Give a copy of {benchmark.address} with --data-dir FOLDER."
            )
