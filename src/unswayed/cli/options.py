"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unswayed.errors import RunDirectoryError, UsageError
from unswayed.tiny import SETS

if TYPE_CHECKING:
    from unswayed.items import Item

__all__ = [
    "BaseUrl",
    "Budget",
    "DryRun",
    "Labels",
    "Limit",
    "MaxConnections",
    "MaxRetries",
    "Model",
    "OnBadItem",
    "Patience",
    "Prices",
    "Prompt",
    "Shots",
    "TaskName",
    "Template",
    "Timeout",
    "check_out",
    "is_built_in",
    "model_for",
    "shots_from",
]

Model = Annotated[
    str | None, typer.Option(help="provider/model, such as openai/gpt-4.1-mini or hf/PATH.")
]
Prompt = Annotated[str, typer.Option(help="direct, reasoning, modified, ...")]
Template = Annotated[Path | None, typer.Option(help="Your own prompt template file.")]
Labels = Annotated[str | None, typer.Option(help="Label symbols, such as X,Y [default: A,B,...]")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use the first N items.")]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server.")]
Shots = Annotated[Path | None, typer.Option(help="Items with gold to show as examples.")]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0, help="Spend no more USD than this, earlier runs in the directory included."
    ),
]
Prices = Annotated[Path | None, typer.Option(help="Price table of your own (TOML or JSON).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Price the calls and stop.")]
TaskName = Annotated[
    str | None, typer.Option(help="Take the items of this task from a mixed file.")
]
OnBadItem = Annotated[
    Literal["stop", "skip"], typer.Option(help="stop at a bad line, or skip and count it.")
]
MaxConnections = Annotated[int, typer.Option(min=1, help="Most requests in flight.")]
Timeout = Annotated[float, typer.Option(min=0.001, help="Seconds one attempt of a call may take.")]
MaxRetries = Annotated[
    int, typer.Option(min=0, help="Most attempts of a call that fails, beyond the first.")
]
Patience = Annotated[
    float,
    typer.Option(
        min=0.001, help="Seconds to wait for a server that is down or turns every call away."
    ),
]


def is_built_in(data: str | None) -> bool:
    """Whether DATA is missing or the name of a built-in set."""
    return data is None or data in SETS


def check_out(out: Path, *inputs: str | Path | None) -> None:
    """Check, before anything is paid for, that a file can be written and is none that is read.

    Its folder is made if it is not there.

    Raises:
        UsageError: If it is an input.
        RunDirectoryError: If it is a directory, or lies in none that can be written.
    """
    for name in inputs:
        if name is not None and out.exists() and Path(name).exists() and out.samefile(name):
            raise UsageError(f"{out} would be read and written at once. Give another --out.")
    if out.is_dir():
        raise RunDirectoryError(f"cannot write {out}: it is a directory. Give a file name.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot make {out.parent}: {error.strerror or error}.") from None
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise RunDirectoryError(f"cannot write {out}: no permission.")


def model_for(model: str | None, data: str | None) -> str:
    """The model to use: the tiny judge for the built-in sets, else it must be given.

    Raises:
        UsageError: If it is not given.
    """
    if model is not None:
        return model
    if is_built_in(data):
        return "tiny/judge"
    raise UsageError(
        f"which model should judge {data}? Give --model provider/model, such as "
        "--model openai/gpt-4.1-mini or --model hf/PATH."
    )


def shots_from(shots: Path | None) -> tuple[Item, ...]:
    """The examples of a file; none where there is none."""
    if shots is None:
        return ()
    from unswayed.items import load_items

    return load_items(shots).items
