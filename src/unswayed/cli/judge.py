"""`unswayed judge`: streaming, one item in, one verdict out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unswayed.cli.options import (
    BaseUrl,
    Labels,
    MaxConnections,
    Model,
    OnBadItem,
    Prompt,
    Template,
    check_out,
    is_built_in,
    model_for,
    prompts_from,
)
from unswayed.cli.output import note, write_bytes
from unswayed.errors import ItemError, RunDirectoryError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from unswayed.items import Item
    from unswayed.judge import Judge
    from unswayed.methods import Method
    from unswayed.methods.files import FittedFile

CHUNK = 1 << 16
"""Most bytes taken at once; a pipe gives what has arrived, however little."""


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

    if out is not None:
        check_out(out, None if data == "-" else data, method)
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
            note(line)
    return 3 if failed else 0


def _method(text: str) -> str | Method | FittedFile:
    if text.endswith(".json") or Path(text).is_file():
        from unswayed.methods.files import load_method

        return load_method(text)
    return text


def _items(data: str, on_bad_item: Literal["stop", "skip"]) -> Iterator[list[Item]]:
    """Items in lists of those that have arrived.

    Raises:
        ItemError: If a line is bad (after the items before it), or a file has none.
    """
    from unswayed.items import decode_item, is_table

    if is_built_in(data) or is_table(data) or data.removesuffix(".gz").endswith(".json"):
        from unswayed.api import load_data

        loaded = load_data(data, on_bad_item=on_bad_item)
        for bad in loaded.bad_lines:
            note(f"{bad} (left out)")
        yield list(loaded)
        return
    some = False
    for lines in _lines(data):
        items = []
        for number, line in lines:
            try:
                items.append(decode_item(line))
            except ItemError as error:
                if on_bad_item == "stop":
                    yield items
                    raise ItemError(
                        f"{data}:{number}: {error}. Mend the line, or leave bad lines out with "
                        "--on-bad-item skip."
                    ) from None
                note(f"{data}:{number}: {error} (left out)")
        some = some or bool(items)
        yield items
    if not some and data != "-":  # a stream may well be empty
        raise ItemError(f"{data}: no items.")


def _lines(data: str) -> Iterator[list[tuple[int, bytes]]]:
    """Non-empty lines with their numbers, each list as soon as it is there."""
    import gzip

    from unswayed.items import open_text

    rest, number = b"", 0
    with open_text(data) as file:
        while True:
            try:
                chunk: bytes = file.read1(CHUNK)  # type: ignore[attr-defined]  # both kinds have it
            except (gzip.BadGzipFile, EOFError, OSError) as error:
                raise UsageError(f"cannot read {data}: {error}.") from None
            *whole, rest = (rest + chunk).split(b"\n") if chunk else (rest, b"")
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


def _stream(judge: Judge, arrived: Iterator[list[Item]], out: Path | None) -> int:
    """Judge what has arrived, again and again; returns how many items failed."""
    import msgspec

    from unswayed.decisions import Verdict

    encode = msgspec.json.Encoder().encode
    failed = unread = judged = 0
    with _target(out) as write:
        for items in arrived:
            for verdict in judge.verdicts(items):
                if isinstance(verdict, Verdict):
                    judged += 1
                    unread += verdict.choice is None
                    if not write(encode(verdict) + b"\n"):
                        return failed
                    continue
                failed += 1
                note(verdict)
                if verdict.fatal:
                    note("stopped: every other call would fail as well.")
                    return failed
    if unread:
        note(
            f"{unread:,} of {judged:,} verdicts are null: the answers could not be read, or came "
            "without the label probabilities that the method needs."
        )
    return failed


@contextmanager
def _target(out: Path | None) -> Iterator[Callable[[bytes], bool]]:
    """Where verdicts go, line by line: a function that says whether anybody reads them."""
    if out is None:
        yield write_bytes
        return
    try:
        file = out.open("wb")
    except OSError as error:
        raise _unwritable(out, error) from None

    def write(line: bytes) -> bool:
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            raise _unwritable(out, error) from None
        return True

    try:
        yield write
    finally:
        with suppress(OSError):  # it was reported when the line was written
            file.close()


def _unwritable(out: Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError(f"cannot write {out}: {error.strerror or error}.")
