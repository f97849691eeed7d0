"""`unswayed import`: recorded outputs of other tools become our formats."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from unswayed.auditing.run_directory import write_text
from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.base.visible import one_line
from unswayed.cli.options import check_out, with_options
from unswayed.cli.output import note, write
from unswayed.data.importers import Imported, import_files, line_of, parse_map
from unswayed.model.items import encode_item
from unswayed.sources import DataOptions


@with_options
def import_(
    *,
    kind: Annotated[str, typer.Argument(help="Format, such as judgebench or jsonl, or auto.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Files: .jsonl, .json, .csv or .tsv (also .gz), .parquet or .eval."),
    ],
    out: Annotated[Path | None, typer.Option(help="Decisions file to write (.jsonl).")] = None,
    items: Annotated[Path | None, typer.Option(help="Items file to write (.jsonl).")] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            "--map",
            help="Meaning of the fields of a jsonl log, as field=yours,... (docs/your-data.md).",
        ),
    ] = None,
    selection: Annotated[DataOptions, "on_bad_item"],
) -> None:
    """Convert logs of other tools to items and decisions."""
    if out is None and items is None:
        raise UsageError("nothing to write. Give --items FILE, --out FILE (decisions) or both.")
    for file in (out, items):
        if file is not None:
            check_out(file, *files)
    if out is not None and items is not None and items.absolute() == out.absolute():
        raise UsageError(f"--out and --items are both {out}. Give two files.")
    imported = import_files(
        kind,
        files,
        on_bad_item=selection.on_bad_item,
        fields=None if fields is None else parse_map(fields),
    )
    if items is not None and not imported.items:
        raise UsageError(
            "the files name their items without their texts. Remove --items, or add the file with "
            "the items."
        )
    if out is not None and not imported.decisions:
        raise UsageError(
            "the files hold items without answers. Give --items without --out, or add the files "
            "with the answers."
        )
    for bad in imported.bad_records[:5]:
        note(f"{bad} (left out)")
    if imported.warning:
        note(f"warning: {imported.warning}")
    if out is not None:
        lines = [line_of(decision).decode() for decision in imported.decisions]
        write_text(out, "".join(f"{line}\n" for line in lines))
        write(f"{plural(len(lines), 'decision')} -> {out}")
    for name, count in imported.counts.items():
        write(f"  {one_line(name)}: {count:,}")
    if out is not None:
        write(f"  first record as read: {one_line(_first(imported))}")
        unread = [own.item_id for own in imported.decisions if own.choice is None]
        more = ", ..." if len(unread) > 3 else ""
        if unread:
            write(f"  unparsed: items {one_line(', '.join(unread[:3]))}{more}")
    if items is not None:
        write_text(items, "".join(f"{encode_item(item).decode()}\n" for item in imported.items))
        write(f"{plural(len(imported.items), 'item')} -> {items}")
    data = [] if items is None else [str(items)]
    source = ["--model", "MODEL"] if out is None else ["--decisions", str(out)]
    models = dict.fromkeys(decision.model for decision in imported.decisions if decision.model)
    if out is not None and len(models) > 1:
        source += ["--model", next(iter(models))]
    write(f"next: {shlex.join(['unswayed', 'audit', *data, *source])}")
    if out is None:
        filtered = shlex.join(["unswayed", "filter", *data, "--model", "MODEL"])
        write(f"  or, to train on them: {filtered} --out train.jsonl")


def _first(imported: Imported) -> str:
    """Return what the first decision says, candidates counted from 0."""
    decision = imported.decisions[0]
    gold = {item.id: item.gold for item in imported.items}.get(decision.item_id)
    parts = {
        "item": decision.item_id,
        "order": list(decision.order),
        "choice": decision.choice,
        "gold": gold,
    }
    return ", ".join(f"{name} {part}" for name, part in parts.items() if part is not None)
