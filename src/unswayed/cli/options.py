"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_type_hints

import typer

from unswayed.backends import BackendSettings, checked_settings
from unswayed.errors import RunDirectoryError, UsageError
from unswayed.tiny import is_built_in, judge_of

if TYPE_CHECKING:
    from unswayed.items import Item

R = TypeVar("R")

Model = Annotated[
    str | None, typer.Option(help="provider/model, such as openai/gpt-4.1-mini or hf/PATH.")
]
Prompt = Annotated[
    str | None,
    typer.Option(
        help="How items are asked: `unswayed list prompts` [default: the model's own, or direct]"
    ),
]
Template = Annotated[Path | None, typer.Option(help="Your own prompt template file.")]
Labels = Annotated[str | None, typer.Option(help="Label symbols, such as X,Y [default: A,B,...]")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use the first N items.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Use N items, drawn by the seed and their ids.")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with a copy of the files of a benchmark.")
]
Shots = Annotated[Path | None, typer.Option(help="Items with gold to show as examples.")]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0, help="Spend no more USD than this, earlier runs in the directory included."
    ),
]
Prices = Annotated[Path | None, typer.Option(help="Price table of your own (TOML or JSON).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Price the calls and stop.")]
NoReask = Annotated[
    bool, typer.Option("--no-reask", help="Do not ask again if a reply cannot be read.")
]
TaskName = Annotated[
    str | None, typer.Option(help="Take the items of this task from a mixed file.")
]
OnBadItem = Annotated[
    Literal["stop", "skip"], typer.Option(help="stop at a bad line, or skip and count it.")
]
DEFAULTS: Final = BackendSettings()

REACH: Final[Mapping[str, Any]] = {  # Any: typer's options
    "base_url": typer.Option(help="Address of an OpenAI-compatible server."),
    "max_connections": typer.Option(min=1, help="Most requests in flight."),
    "timeout": typer.Option(min=0.001, help="Seconds one attempt of a call may take."),
    "max_retries": typer.Option(
        min=0, help="Most attempts of a call that fails, beyond the first."
    ),
    "patience": typer.Option(
        min=0.001, help="Seconds to wait for a server that is down or turns every call away."
    ),
    "device": typer.Option(
        help="Local models: cpu, cuda, cuda:1, mps [default: a GPU if there is one]"
    ),
    "device_map": typer.Option(help="hf/: auto lays the model over several devices."),
    "dtype": typer.Option(
        help="Local models: float32, bfloat16, float16; becomes part of the model's name "
        "[default: float32 on a CPU, bfloat16 on a GPU; vllm/: as it was saved]"
    ),
    "attn_implementation": typer.Option(
        help="hf/: sdpa, eager, flash_attention_2 [default: as transformers chooses]"
    ),
    "memory_gb": typer.Option(
        min=0.001,
        help="Local models: GB that they may take beside their weights (vllm/: for keys and values "
        "on each GPU) [default: half of what is free; vllm/: as vLLM chooses]",
    ),
    "threads": typer.Option(min=1, help="hf/: threads on a CPU [default: OMP_NUM_THREADS, or 1]"),
    "tensor_parallel": typer.Option(min=1, help="vllm/: GPUs over which every layer is laid."),
    "trust_remote_code": typer.Option(
        "--trust-remote-code",
        help="Local models: run code that the model brings, with your rights.",
    ),
}
"""The fields of `BackendSettings` that are options."""


def with_reach(command: Callable[..., R]) -> Callable[..., R]:
    """A command whose parameter `reach` is the options of `REACH` on the command line."""
    kinds = get_type_hints(BackendSettings)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(DEFAULTS, name),
            annotation=Annotated[kinds[name], option],
        )
        for name, option in REACH.items()
    ]
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        option
        for parameter in signature.parameters.values()
        for option in (options if parameter.name == "reach" else [parameter])
    ]

    @functools.wraps(command)
    def reaching(*values: object, **given: object) -> R:
        own: dict[str, Any] = {name: given.pop(name) for name in REACH if name in given}
        return command(*values, **given, reach=checked_settings(replace(DEFAULTS, **own)))

    shown = signature.replace(parameters=[p.replace(kind=p.KEYWORD_ONLY) for p in parameters])
    reaching.__signature__ = shown  # type: ignore[attr-defined]
    reaching.__annotations__ = {p.name: p.annotation for p in parameters}
    return reaching


def check_out(out: Path, *inputs: str | Path | None) -> None:
    """Check, before anything is paid for, that a file can be written and is none that is read.

    Its folder is made if it is not there.

    Raises:
        UsageError: If it is an input, or its name promises what it would not be.
        RunDirectoryError: If it is a directory, or lies in none that can be written.
    """
    for name in inputs:
        if name is not None and out.exists() and Path(name).exists() and out.samefile(name):
            raise UsageError(f"{out} would be read and written at once. Give another --out.")
    if out.is_dir():
        raise RunDirectoryError(f"cannot write {out}: it is a directory. Give a file name.")
    if out.name.lower().endswith(".gz"):
        raise UsageError(f"cannot write {out}: it would not be compressed. Leave out .gz.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot make {out.parent}: {error.strerror or error}.") from None
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise RunDirectoryError(f"cannot write {out}: no permission.")


def model_for(model: str | None, data: str | None) -> str:
    """The model to use: a built-in set's tiny judge, else it must be given.

    Raises:
        UsageError: If it is not given.
    """
    if model is not None:
        return model
    if is_built_in(data):
        return judge_of(data)
    raise UsageError(
        f"which model should judge {data}? Give --model provider/model, such as "
        "--model openai/gpt-4.1-mini or --model hf/PATH."
    )


def shots_from(shots: Path | None) -> tuple[Item, ...]:
    """The examples of a file; none where there is none."""
    if shots is None:
        return ()
    from unswayed.items import load_items

    return tuple(load_items(shots))
