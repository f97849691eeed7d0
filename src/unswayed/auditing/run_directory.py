"""The run directory: run.json, calls.sqlite, metrics.json, report.html."""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from unswayed.errors import RunDirectoryError
from unswayed.prompts import PromptSettings

__all__ = [
    "check_finished",
    "check_kind",
    "default_directory",
    "json_text",
    "package_versions",
    "prepare_directory",
    "read_json",
    "write_text",
]

SECTIONS = ("data", "protocol", "calls", "protocols", "methods", "recommendation")
"""What every `metrics.json` has."""

PACKAGES = ("unswayed", "numpy", "scipy", "torch", "transformers", "peft", "aiohttp", "msgspec")


def default_directory(data: str, model: str, prompts: PromptSettings | None = None) -> Path:
    """`runs/<data>-<model>`, in characters that every file system takes.

    Another prompt, template, label set or examples than the default ones are named behind.
    """
    parts = [data, model]
    if prompts is not None and prompts.template is not None:
        parts.append(Path(prompts.template).stem)
    elif prompts is not None and prompts.prompt != "direct":
        parts.append(prompts.prompt)
    if prompts is not None:
        parts.extend(prompts.label_set or ())
        parts.extend(["shots"] if prompts.shots else [])
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-.")
    return Path("runs") / (name[:120] or "run")


def prepare_directory(path: Path) -> Path:
    """Make the directory and check that it can be written.

    Raises:
        RunDirectoryError: If it is a file, or cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (FileExistsError, NotADirectoryError):
        raise RunDirectoryError(f"{path} is a file, not a directory. Give another --out.") from None
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write to {path}: {error.strerror or error}. Give another --out."
        ) from None
    return path


def check_kind(
    path: Path, *, recorded: bool, model: str, data: str, prompt: str | None = None
) -> None:
    """Check that a run directory is not that of another kind of run; `calls.sqlite` checks calls.

    Args:
        path: The run directory; it may not exist.
        recorded: Whether recorded decisions are audited.
        model: Whose decisions they are.
        data: Name of the data.
        prompt: Fingerprint of the prompt; None for recorded decisions.

    Raises:
        RunDirectoryError: If the directory holds a run of the other kind or with another prompt,
            or recorded decisions of another model or other data.
    """
    try:
        run = json.loads((path / "run.json").read_text(encoding="utf-8"))
        before = run["model"], run["data"]["name"]
        was_recorded = bool(run.get("recorded"))
        asked_with = prompt if was_recorded else run["prompt"]["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        was_recorded = False  # no finished run
        if not (recorded and (path / "calls.sqlite").exists()):
            return
        before, asked_with = ("a model", "its data"), prompt
    if was_recorded != recorded:
        held, asked = ("a model's calls", "recorded decisions")[:: 1 if recorded else -1]
        raise RunDirectoryError(
            f"{path} holds an audit of {held}, this one is of {asked}. Give another --out."
        )
    if recorded and before != (model, data):
        raise RunDirectoryError(
            f"{path} holds recorded decisions of {before[0]} on {before[1]}, not of {model} on "
            f"{data}. Give another --out."
        )
    if not recorded and asked_with != prompt:
        raise RunDirectoryError(
            f"{path} holds an audit with another prompt, template, label set or examples, which "
            "this one would overwrite. Give another --out."
        )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        RunDirectoryError: If it cannot be written (disk full, read-only).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written, not replaced
            path.write_text(text, encoding="utf-8", errors="replace")
            return
        temporary.write_text(text, encoding="utf-8", errors="replace")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunDirectoryError(f"cannot write {path}: {error.strerror or error}.") from None


def json_text(value: object) -> str:
    """Readable JSON; not-a-number never appears in it."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a run directory.

    Raises:
        RunDirectoryError: If it is missing or not JSON.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(
            f"{path} does not exist: {path.parent} is not a finished run. Run the audit first."
        ) from None
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}.") from None
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path} is not a JSON object.")
    return value


def check_finished(path: Path) -> None:
    """Check that a run directory holds a finished run that this version can read.

    Raises:
        RunDirectoryError: If a file is missing, damaged or of something else.
    """
    read_json(path / "run.json")
    metrics = read_json(path / "metrics.json")
    missing = [name for name in SECTIONS if not isinstance(metrics.get(name), dict)]
    if missing:
        raise RunDirectoryError(
            f"{path / 'metrics.json'} has no section {missing[0]!r}: it is not that of an audit. "
            "Run the audit again."
        )


def package_versions() -> dict[str, str]:
    """Versions of what the figures depend on; packages that are not installed are left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
