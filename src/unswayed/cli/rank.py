"""`unswayed rank`: a ranking of models by a biased judge."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from unswayed.auditing.rows import as_json
from unswayed.auditing.run_directory import json_text
from unswayed.cli.options import with_options
from unswayed.cli.output import note, show, write_bytes
from unswayed.ranking import RankOptions
from unswayed.ranking import rank as ranked
from unswayed.report.board import board_report


@with_options
def rank(
    *,
    source: Annotated[
        str,
        typer.Argument(help="Run directory, decisions, or a log that import reads.", metavar="RUN"),
    ],
    items: Annotated[
        str | None, typer.Option(help="Items with candidates_by, if RUN does not hold them.")
    ] = None,
    options: RankOptions,
    json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> None:
    """Rank the models that wrote the answers, free of the position effect."""
    ranking = ranked(source, items, **asdict(options))
    if json:
        for warning in ranking.warnings:
            note(warning)
        write_bytes(json_text(as_json(ranking)).encode())
    else:
        show(board_report(ranking))
