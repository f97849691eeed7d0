"""Items as they arrive: of a file, a pipe or standard input, a few lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from unswayed.base.errors import ItemError
from unswayed.cli.output import note
from unswayed.data.benchmarks import is_benchmark
from unswayed.model.items import Item, decode_item, is_foreign, is_parquet, is_table, open_text
from unswayed.sources import DataOptions
from unswayed.tiny import is_built_in

CHUNK = 1 << 16
"""Most bytes taken at once; a pipe gives what has arrived, however little."""


def arriving(data: str, selection: DataOptions) -> Iterator[list[Item]]:
    """Yield items in lists of those that have arrived."""
    whole = is_built_in(data) or is_benchmark(data)
    whole = whole or is_table(data) or is_parquet(data) or selection.columns is not None
    whole = whole or data.lower().removesuffix(".gz").endswith(".json")
    arrived = iter(()) if whole else _lines(data)
    first = next(arrived, [])
    if whole or any(is_foreign(line) for _, line in first[:1]):
        rest = chain(first, chain.from_iterable(arrived))
        loaded = selection.load(data) if whole else selection.load_lines(rest, data)
        for bad in loaded.bad_lines:
            note(f"{bad} (left out)")
        yield list(loaded)
        return
    some, task = False, selection.task
    marks: set[int] = set()
    for lines in chain([first], arrived):
        items = []
        for number, line in lines:
            try:
                item = decode_item(line)
                if (mark := hash(item.id)) in marks:
                    raise ItemError(f"id {item.id!r} occurs more than once. Give each item its own")
                marks.add(mark)
                items.append(item)
            except ItemError as error:
                if selection.on_bad_item == "stop":
                    yield [own for own in items if task in (None, own.task)]
                    raise ItemError(
                        f"{data}:{number}: {error}. Fix the line, or skip invalid lines with "
                        "--on-bad-item skip."
                    ) from None
                note(f"{data}:{number}: {error} (left out)")
        kept = [item for item in items if task in (None, item.task)]
        some = some or bool(kept)
        yield kept
    if not some and (marks or data != "-"):  # a stream may well be empty
        raise ItemError(
            f"{data}: no items{f' of task {task}' if marks else ''}. Give at least one line."
        )


def _lines(data: str) -> Iterator[list[tuple[int, bytes]]]:
    """Yield lists of non-empty lines with their numbers, as soon as they arrive."""
    parts: list[bytes] = []  # of a line that is still to end
    number = 0
    with open_text(data) as file:
        while True:
            chunk: bytes = file.read1(CHUNK)  # type: ignore[attr-defined]  # BufferedReader has it
            parts.append(chunk)
            if chunk and b"\n" not in chunk:
                continue
            whole = b"".join(parts).split(b"\n")
            parts = [whole.pop()] if chunk else []
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
