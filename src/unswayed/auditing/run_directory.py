"""The run directory: run.json, calls.sqlite, metrics.json, report.html."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from unswayed.base.errors import RunDirectoryError
from unswayed.base.files import whole_file
from unswayed.base.version import versions_of
from unswayed.prompts import PromptSettings

T = TypeVar("T")

SUMS_FILE = "SHA256SUMS"
SUMMED = ("run.json", "metrics.json", "answers.json", "flipped.json", "decisions.jsonl")
"""The files of figures and of what reports are made from."""

KEPT = (*SUMMED, "report.html", SUMS_FILE)
"""The files of an audit but its calls, which other audits of the directory share."""

PACKAGES = ("unswayed", "numpy", "scipy", "torch", "transformers", "peft", "aiohttp", "msgspec")


def default_directory(data: str, model: str, prompts: PromptSettings | None = None) -> Path:
    """`runs/<data>-<model>`, in characters that every file system takes.

    Another prompt, template, label set or examples than the default ones are named behind.
    """
    parts = [data, model]
    if prompts is not None and prompts.template is not None:
        parts.append(Path(prompts.template).stem)
    elif prompts is not None and prompts.style != PromptSettings().style:
        parts.append(prompts.style)
    if prompts is not None:
        parts.extend(prompts.label_set or ())
        parts.extend(["shots"] if prompts.shots else [])
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-.")
    return Path("runs") / (name[:120] or "run")


def prepare_directory(path: Path) -> Path:
    """Make the directory and check that it can be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (FileExistsError, NotADirectoryError):
        raise RunDirectoryError(
            f"{path} is a file, not a directory. Choose another --out."
        ) from None
    except OSError as error:
        raise RunDirectoryError.cannot(f"write to {path}", error) from None
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text whole or not at all."""
    write_bytes(path, text.encode("utf-8", errors="replace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    _write(path, [data])


def write_lines(path: Path, blocks: Iterable[Sequence[bytes]]) -> None:
    """Write blocks of lines without their newlines, as they come, the whole file or nothing."""
    _write(path, (b"\n".join([*lines, b""]) for lines in blocks))


def _write(path: Path, parts: Iterable[bytes]) -> None:
    try:
        with whole_file(path) as file:
            file.writelines(parts)
    except OSError as error:  # disk full, read-only
        raise RunDirectoryError.cannot(
            f"write {path}", error, "Make it writable or free some space."
        ) from None


def write_sums(directory: Path) -> None:
    """Write the sha256 of every file of figures, as `sha256sum --check` reads them."""
    present = [name for name in SUMMED if (directory / name).is_file()]
    lines = []
    for name in present:
        with (directory / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    write_text(directory / SUMS_FILE, "".join(lines))


def keep_files(directory: Path, created: str) -> Path | None:
    """Keep the files of an audit in `earlier/CREATED`, all or none, until others take their place.

    Return None if a stopped run has kept them there.
    """
    name = re.sub(r"[^0-9T-]", "", created[:19]) or "undated"
    target, number = directory / "earlier" / name, 1
    try:
        run = (directory / "run.json").read_bytes()
        while target.exists():
            if (target / "run.json").read_bytes() == run:
                return None
            number += 1
            target = target.with_name(f"{name}-{number}")
        target.parent.mkdir(exist_ok=True)
        partial = target.with_name(f".{name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for path in filter(Path.exists, map(directory.joinpath, KEPT)):
            try:
                (partial / path.name).hardlink_to(path)  # it is replaced later, never written
            except OSError:  # the file system has no links
                shutil.copyfile(path, partial / path.name)
        partial.rename(target)
    except OSError as error:
        raise RunDirectoryError.cannot(
            f"keep the audit of {directory} in {target}", error
        ) from None
    return target


def read_bytes(path: Path) -> bytes:
    """Return a file of a run directory, checked against its sum where there is one."""
    try:
        data = path.read_bytes()
        sums = path.with_name(SUMS_FILE)
        lines = sums.read_bytes().splitlines() if sums.exists() else None
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(
            f"{path} does not exist: {path.parent} is not a finished run. Run the audit first."
        ) from None
    except OSError as error:
        raise RunDirectoryError.cannot(f"read {path}", error, "Make it readable.") from None
    if (
        lines is not None
        and f"{hashlib.sha256(data).hexdigest()}  {path.name}".encode() not in lines
    ):
        raise RunDirectoryError(
            f"{path} has changed since the audit wrote it (its sum is not in {SUMS_FILE}). Run the audit "
            f"again: it reuses recorded calls. If you changed it, remove {SUMS_FILE}."
        )
    return data


def belongs(path: Path) -> bool:
    """Return True if a file is there, or was when the sums were written."""
    try:
        return path.exists() or f"  {path.name}\n" in path.with_name(SUMS_FILE).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def json_text(value: object) -> str:
    """Readable JSON; not-a-number never appears in it."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_as(path: Path, kind: type[T], *, remedy: str = "Run the audit again.") -> T:
    """Read a JSON file of a run directory."""
    try:
        return msgspec.json.decode(read_bytes(path), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}. {remedy}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object from a run directory; see `read_as`."""
    value = read_as(path, object)
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path} is not a JSON object. Run the audit again.")
    return value


def package_versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    return {"python": platform.python_version(), **versions_of(PACKAGES)}
