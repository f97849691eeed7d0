"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import typer

from unswayed.backends import BackendSettings, backend_settings
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
Device = Annotated[
    str | None,
    typer.Option(help="Local models: cpu, cuda, cuda:1, mps [default: a GPU if there is one]"),
]
DeviceMap = Annotated[
    str | None, typer.Option(help="hf/: auto lays the model over several devices.")
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="Local models: float32, bfloat16, float16; becomes part of the model's name "
        "[default: float32 on a CPU, bfloat16 on a GPU; vllm/: as it was saved]"
    ),
]
AttnImplementation = Annotated[
    str | None,
    typer.Option(help="hf/: sdpa, eager, flash_attention_2 [default: as transformers chooses]"),
]
MemoryGb = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Local models: GB that they may take beside their weights (vllm/: for keys and values "
        "on each GPU) [default: half of what is free; vllm/: as vLLM chooses]",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="hf/: threads on a CPU [default: OMP_NUM_THREADS, or 1]"),
]
TensorParallel = Annotated[
    int, typer.Option(min=1, help="vllm/: GPUs over which every layer is laid.")
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Local models: run code that the model brings, with your rights.",
    ),
]


def _reach(
    base_url: BaseUrl = None,
    max_connections: MaxConnections = DEFAULTS.max_connections,
    timeout: Timeout = DEFAULTS.timeout,
    max_retries: MaxRetries = DEFAULTS.max_retries,
    patience: Patience = DEFAULTS.patience,
    device: Device = None,
    device_map: DeviceMap = None,
    dtype: Dtype = None,
    attn_implementation: AttnImplementation = None,
    memory_gb: MemoryGb = None,
    threads: Threads = None,
    tensor_parallel: TensorParallel = DEFAULTS.tensor_parallel,
    trust_remote_code: TrustRemoteCode = False,
) -> BackendSettings:
    """How to reach a model, or to run it here."""
    local = BackendSettings(
        device=device,
        device_map=device_map,
        dtype=dtype,
        attn_implementation=attn_implementation,
        memory_gb=memory_gb,
        threads=threads,
        tensor_parallel=tensor_parallel,
        trust_remote_code=trust_remote_code,
    )
    return backend_settings(
        local,
        base_url=base_url,
        max_connections=max_connections,
        timeout=timeout,
        max_retries=max_retries,
        patience=patience,
    )


def with_reach(command: Callable[..., R]) -> Callable[..., R]:
    """A command whose parameter `reach` is the options of `_reach` on the command line."""
    options = inspect.signature(_reach, eval_str=True).parameters
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        option
        for parameter in signature.parameters.values()
        for option in (options.values() if parameter.name == "reach" else [parameter])
    ]

    @functools.wraps(command)
    def reaching(*values: object, **given: object) -> R:
        own = {name: given.pop(name) for name in options if name in given}
        return command(*values, **given, reach=_reach(**own))  # type: ignore[arg-type]

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
