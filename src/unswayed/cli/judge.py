"""`unswayed judge`: streaming, one item in, one verdict out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from unswayed.cli.options import (
    BaseUrl,
    Labels,
    MaxConnections,
    Model,
    OnBadItem,
    Prompt,
    Template,
    is_built_in,
    model_for,
    prompts_from,
)
from unswayed.errors import RunDirectoryError, UnswayedError

if TYPE_CHECKING:
    from unswayed.items import Item
    from unswayed.judge import Judge
    from unswayed.methods import Method
    from unswayed.methods.files import FittedFile


def judge(
    data: Annotated[str, typer.Argument(help="Items, one per line; - for standard input.")],
    method: Annotated[
        str, typer.Option(help="A method, or the file that calibrate wrote.")
    ] = "average",
    model: Model = None,
    out: Annotated[
        Path | None, typer.Option(help="Verdicts file [default: standard output]")
    ] = None,
    shadow: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of items to ask again in all orders (drift check)."),
    ] = 0.0,
    prompt: Prompt = "direct",
    template: Template = None,
    labels: Labels = None,
    base_url: BaseUrl = None,
    max_connections: MaxConnections = 64,
    calls: Annotated[
        Path | None, typer.Option(help="Directory of recorded calls to use and fill.")
    ] = None,
    on_bad_item: OnBadItem = "stop",
) -> int:
    """Judge items as they come: one line in, one verdict out, in the same order."""
    from unswayed.backends import BackendSettings
    from unswayed.judge import Judge

    with Judge(
        model_for(model, data),
        method=_method(method),
        prompts=prompts_from(prompt, template, labels),
        backend=BackendSettings(base_url=base_url, max_connections=max_connections),
        store=calls,
        shadow=shadow,
    ) as made:
        failed = _stream(made, _items(data, on_bad_item), out)
        for line in made.drift_report():
            typer.echo(f"unswayed: {line}", err=True)
    return 3 if failed else 0


def _method(text: str) -> str | Method | FittedFile:
    if text.endswith(".json"):
        from unswayed.methods.files import load_method

        return load_method(text)
    return text


def _items(data: str, on_bad_item: Literal["stop", "skip"]) -> Iterator[Item]:
    """Items one by one, as they arrive."""
    from unswayed.errors import ItemError
    from unswayed.items import decode_item, iter_lines

    if is_built_in(data):
        from unswayed.api import load_data

        yield from load_data(data)
        return
    for number, line in iter_lines(data):
        try:
            yield decode_item(line)
        except ItemError as error:
            if on_bad_item == "stop":
                raise ItemError(f"{data}:{number}: {error}") from None
            typer.echo(f"unswayed: {data}:{number}: {error} (left out)", err=True)


def _stream(judge: Judge, items: Iterator[Item], out: Path | None) -> int:
    import msgspec

    from unswayed.decisions import Verdict

    encode = msgspec.json.Encoder().encode
    failed = 0
    target = _open(out)
    try:
        for verdict in judge.verdicts(items):
            if isinstance(verdict, Verdict):
                target.write(encode(verdict) + b"\n")
                target.flush()
            else:
                failed += 1
                typer.echo(f"unswayed: {verdict}", err=True)
    except OSError as error:
        raise UnswayedError(f"cannot write verdicts: {error.strerror or error}.") from None
    finally:
        if out is not None:
            target.close()
    return failed


def _open(out: Path | None) -> IO[bytes]:
    if out is None:
        return sys.stdout.buffer
    try:
        return out.open("wb")
    except OSError as error:
        raise RunDirectoryError(f"cannot write {out}: {error.strerror or error}.") from None
