"""Options of commands: those of settings, and what a file that is written must be."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import typer
from msgspec import Meta

from unswayed.base.arguments import Option, Settings, options_of
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.model.items import Shard

R = TypeVar("R")

Model = Annotated[str | None, typer.Option(help="Judge, such as openai/gpt-4.1-mini or hf/PATH.")]
Shots = Annotated[Path | None, typer.Option(help="Items with gold to show as examples.")]
Budget = Annotated[
    float | None, typer.Option(min=0, help="Spending limit in USD, including earlier runs.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print calls and price, then stop.")]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard", help="Ask only part K of N, such as 0/4, for `unswayed merge`.", metavar="K/N"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTasks(Settings):
    """Options of shards that are asked together."""

    shards: (
        Annotated[int, Meta(ge=1, description="Ask N parts on --engine, then merge.")] | None
    ) = None
    engine: Annotated[Literal["ray"] | None, Meta(description="Engine that runs --shards.")] = None
    gpus_per_shard: (
        Annotated[
            float,
            Meta(
                ge=0,
                description="GPUs per shard [default: 1 for hf/ and vllm/, if there is a GPU].",
            ),
        ]
        | None
    ) = None

    def first(self, shard: str | None) -> str | None:
        """Return `--shard`, or the first part of `--shards`."""
        if (self.shards is None) != (self.engine is None) or (shard and self.shards):
            raise UsageError(
                "--shards needs --engine and excludes --shard. Use --shards N --engine ray, or --shard K/N."
            )
        return f"0/{self.shards}" if self.shards else shard


Calls = Annotated[
    Path | None,
    typer.Option(help="Directory of recorded calls to reuse and extend [default: next to --out]"),
]


def with_options(command: Callable[..., R]) -> Callable[..., R]:
    """Return a command whose parameters that are settings are their options on the command line.

    `Annotated[Settings, "limit", ...]` takes these options alone.
    """
    signature = inspect.signature(command, eval_str=True)
    shown: list[inspect.Parameter] = []
    settings: dict[str, tuple[type[Settings], list[Option]]] = {}
    for parameter in signature.parameters.values():
        kind, *names = get_args(parameter.annotation) or (parameter.annotation,)
        if not isinstance(kind, type) or not issubclass(kind, Settings):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = [option for option in options_of(kind) if not names or option.name in names]
        settings[parameter.name] = kind, options
        shown.extend(map(_parameter, options))

    @functools.wraps(command)
    def parsed(*values: object, **given: Any) -> R:
        own = {name: given[name] for name in signature.parameters if name in given}
        told = {name: value for name, value in given.items() if name not in own}
        for _, options in settings.values():
            told |= {o.name: not given[o.name] for o in options if o.is_off_switch}
        return command(*values, **own, **{n: kind.of(told) for n, (kind, _) in settings.items()})

    vars(parsed)["__signature__"] = signature.replace(parameters=shown)
    parsed.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return parsed


def _parameter(option: Option) -> inspect.Parameter:
    flag = f"--{'no-' if option.is_off_switch else ''}{option.name.replace('_', '-')}"
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if option.is_off_switch else option.typed_default,
        annotation=Annotated[
            option.typed_kind, typer.Option(flag, help=option.help, min=option.least)
        ],
    )


def shard_of_options(
    text: str | None, data: str | None, out: Path | None, **others: object
) -> Shard | None:
    """Read `--shard`, which needs `--out` and excludes the other options."""
    if text is None:
        return None
    shard = Shard.of(text)
    if out is None:
        raise UsageError("--shard needs --out: give the directory that all shards share.")
    if data == "-":
        raise UsageError(
            "--shard cannot read standard input. Give a file that all shards can read."
        )
    for name, value in others.items():
        if value is not None:
            raise UsageError(
                f"--shard excludes --{name.replace('_', '-')}: a shard only makes its part of the calls. "
                f"Leave out --{name.replace('_', '-')}."
            )
    return shard


def check_out(out: Path, *inputs: str | Path | None) -> None:
    """Check, before anything is paid for, that a file can be written and is none that is read.

    Its folder is made if it is not there, but none at the root of the file system.
    """
    for name in inputs:
        if name is not None and out.exists() and Path(name).exists() and out.samefile(name):
            raise UsageError(f"{out} is both input and output. Choose another --out.")
    if out.is_dir():
        raise RunDirectoryError(f"{out} is a directory. Choose a file name for --out.")
    if out.name.lower().endswith(".gz"):
        raise UsageError(f"cannot write {out} compressed. Remove .gz from the name.")
    missing = [folder for folder in out.absolute().parents if not folder.exists()]
    if missing and str(missing[-1].parent) == missing[-1].anchor:
        raise RunDirectoryError(
            f"the folder {missing[-1]} does not exist. Create it, or correct --out."
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError.cannot(f"make {out.parent}", error) from None
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise RunDirectoryError(f"cannot write {out}: no permission. Choose another --out.")
